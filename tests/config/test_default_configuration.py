"""The shipped configuration plans everything that its tables, figures and claims show, under the right names."""

import inspect
import re
from collections import defaultdict
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from documentation import keys_of
from fairclust.pipeline import config, papers
from fairclust.pipeline.config import json_schema, laid_over, load_config, read_yaml
from fairclust.pipeline.plan import Plan
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.report.checks import CHECKS
from fairclust.report.figures import PLOTS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def planned(plan):
    """Return the parameters of the cells of every data set, method and K."""
    found = defaultdict(list)
    for fit in plan.fits.values():
        for grid in fit.grids:
            found[fit.dataset, fit.method, grid.n_clusters] += list(grid.settings())
    return found


def products(config, kind):
    for paper in config.run.papers:
        for name, spec in getattr(config.papers[paper], kind).items():
            yield paper, name, spec


def rows_of(config, paper, table):
    """Yield data set, method, K and lambda of every row of a table with a value. K and lambda can be None."""
    reported = load_reported(config.papers[paper].reported)
    of_table = reported[(reported.table == table.number) & reported.value.notna()]
    keys = of_table[["dataset", "method", "n_clusters", "lam"]].drop_duplicates()
    for row in keys.itertuples(index=False):
        k = None if pd.isna(row.n_clusters) else int(row.n_clusters)
        yield row.dataset, row.method, k, None if pd.isna(row.lam) else float(row.lam)


def is_excused(table, dataset, method):
    """Tell whether a reason says that exactly this row cannot be run."""
    return any(
        reason.kind == "not_comparable" and (reason.dataset, reason.method) == (dataset, method)
        for reason in table.reasons
    )


def test_schema_is_that_of_the_model():
    assert (ROOT / "workflow/schemas/config.schema.json").read_text() == json_schema(), "run `make schema`"


def test_readme_names_every_key_plot_and_check():
    text = (ROOT / "config/README.md").read_text()
    names = {*CHECKS, *PLOTS, *keys_of(config, papers)}
    assert sorted(name for name in names if f"`{name}" not in text and f".{name}`" not in text) == []


def test_every_reported_row_is_planned_as_published_or_excused(catalogue, planned):
    for paper, name, table in products(catalogue, "tables"):
        for dataset, method, k, lam in rows_of(catalogue, paper, table):
            settings = [
                params
                for (of, ran, at), every in planned.items()
                if of == dataset and method in (ran, "data") and k in (None, at)
                for params in every
            ]
            row = (paper, name, dataset, method, k, lam)
            if is_excused(table, dataset, method):
                continue
            assert settings, row
            assert lam is None or any(params.get("lam") == lam for params in settings), row
            published = table.settings.get(method)
            if published is not None:
                # A lambda that the paper prints is in its CSV, and one that it does not print is not published.
                assert "lam" not in published, row
                assert any(published.items() <= params.items() for params in settings), row
                assert published or len({str(params) for params in settings}) == 1, row


def test_every_figure_has_all_its_methods_on_all_its_data_sets(catalogue, planned):
    lacking = []
    for paper, name, figure in products(catalogue, "figures"):
        if figure.x == "n_rows":  # not every method can fit the largest data set
            for method in figure.methods:
                assert len([at for at in planned if at[0] in figure.datasets and at[1] == method]) >= 3
            continue
        for dataset in figure.datasets:
            for method in figure.methods or [None]:
                ks = {k for of, ran, k in planned if of == dataset and method in (None, ran)}
                wanted = set(figure.n_clusters or ks)
                if not ks or not wanted <= ks:
                    lacking.append((paper, name, dataset, method, sorted(wanted - ks)))
    assert lacking == []


def test_every_claim_has_cells(catalogue, planned):
    for paper, name, claim in products(catalogue, "claims"):
        for method in claim.methods:
            ran = [
                at for at in planned
                if at[1] == method
                and at[0] in (*claim.datasets, claim.options.get("other_dataset"))
                and not at[0].startswith("census_ii")
                and (claim.n_clusters is None or at[2] in claim.n_clusters)
            ]  # fmt: skip
            assert ran, (paper, name, method)


def test_a_papers_rows_have_the_papers_own_solver(catalogue, planned):
    for (_, method, _), settings in planned.items():
        for params in settings:
            if method in ("vfc_kmeans", "vfc_kmedians", "vfc_ncut"):
                assert params["match_reference"] is True
            if method.startswith(("fmc_em", "fmc_gd")):
                is_last = method.endswith(("_last", "_diag"))
                assert params["match_reference"] == (True if is_last else "best_balance")
                from_em = "program" in method or "mixed" in method
                assert params.get("init", "k-means") == ("em" if from_em else "k-means")
            if method in ("frkm", "bfkm"):
                assert params["match_reference"] is True


def test_methods_of_this_project_are_marked_as_ours(catalogue):
    reported = {
        method
        for paper in catalogue.papers.values()
        for method in load_reported(paper.reported).method.unique()
    }
    for name, method in catalogue.methods.items():
        own = (
            "PriceFair" in method.class_
            or bool(method.params.get("calibrate"))
            or ("Variational" in method.class_ and not method.params.get("match_reference"))
        )
        assert not own or method.ours, name
        assert not (method.ours and name in reported), f"{name} is ours and has reported values"
    for paper, name, table in products(catalogue, "tables"):
        assert [method for method in table.ours if not catalogue.methods[method].ours] == [], (paper, name)


def test_a_seed_is_one_start_of_every_method_and_up_to_ten_of_plain_clustering(catalogue, plan):
    for fit in plan.fits.values():
        method = catalogue.methods[fit.method]
        module, _, name = method.class_.rpartition(".")
        takes = inspect.signature(getattr(import_module(module), name)).parameters
        if "n_init" in takes:
            allowed = {1, 10} if method.family in {"reference", "spectral"} else {1}
            found = {
                params.get("n_init", takes["n_init"].default)
                for grid in fit.grids
                for params in grid.settings()
            }
            assert found <= allowed, fit.name


def test_rows_with_a_printed_setting_have_five_starts(catalogue, plan):
    seeds = defaultdict(set)
    for fit in plan.fits.values():
        for cell in fit.cells():
            seeds[fit.dataset, fit.method, cell.n_clusters, cell.params.get("lam")].add(cell.seed)
    for name, paper in catalogue.papers.items():
        reported = load_reported(ROOT / f"config/papers/{name}.csv")
        numbers = {table.number: table for table in paper.tables.values()}
        rows = reported[reported.lam.notna() & reported.table.isin(numbers) & reported.value.notna()]
        for row in rows.drop_duplicates(["dataset", "method", "n_clusters", "lam"]).itertuples():
            if row.dataset != "census_ii" and catalogue.methods[row.method].input != "graph":
                found = seeds.get((row.dataset, row.method, row.n_clusters, row.lam), set())
                assert len(found) >= 5, (name, row.dataset, row.method, row.lam)


def test_the_quickstart_needs_no_download_and_runs_every_method(shipped):
    quickstart = load_config(laid_over(shipped, read_yaml(ROOT / "config/quickstart.yaml")))
    fits = Plan(quickstart).fits.values()
    assert all(quickstart.datasets[fit.dataset].generator for fit in fits)
    ran = {fit.method for fit in fits if fit.dataset == "diabetes_sklearn"}
    assert ran >= set(quickstart.run.methods)


def test_the_page_of_standard_data_states_the_rows_of_the_catalogue(catalogue):
    text = (ROOT / "docs/data.md").read_text()
    listed = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            names, rows, *_ = (cell.strip() for cell in line.strip("|").split("|"))
            known = None if rows == "unknown" else int(rows.replace(",", ""))
            listed |= dict.fromkeys(re.findall(r"`(\w+)`", names), known)
    assert {name: catalogue.datasets[name].rows for name in listed} == listed
    files = ("standard", "kfc", "diabetes", "compas", "openml", "athletes", "hmda")
    for file in files:
        there = read_yaml(ROOT / f"config/datasets/{file}.yaml")["datasets"]
        assert set(there) <= set(listed), file


@pytest.mark.parametrize("paper", ["vfc", "fmc", "bfkm", "sfairsc"])
def test_the_shipped_values_of_programs_stand_beside_reported_ones(paper, catalogue):
    spec = catalogue.papers[paper]
    values = load_programs(ROOT / f"config/papers/{paper}_programs.csv", spec.programs)
    assert set(values.program) == set(spec.programs)
    assert set(values.kind) <= {"program", "labels"}
    assert (values.low <= values["mean"] + 1e-9).all() and (values["mean"] <= values.high + 1e-9).all()
    if paper == "sfairsc":  # its poster prints no values of its figures
        return
    known = load_reported(spec.reported)
    # A reading of a method, such as another start, stands beside the row of the method.
    of = {
        (table.number, other): name
        for table in spec.tables.values()
        for name, others in table.variants.items()
        for other in others
    }
    rows = {(r.table, r.dataset, r.method) for r in known.itertuples()}
    shown = {(r.table, r.dataset, of.get((r.table, r.method), r.method)) for r in values.itertuples()}
    assert shown <= rows
