"""The results in docs/results are among those that the present configuration plans."""

import json
import re
import warnings
from pathlib import Path

import pandas as pd
import pytest

import run_crate
from fairclust.pipeline.grids import canonical_json, derive_random_state
from fairclust.report.leaderboard import place_labels
from fairclust.report.selection import best_starts

PUBLISHED_MB = 8


@pytest.fixture(scope="module")
def folder(root):
    found = root / "docs" / "results"
    if not found.is_dir():
        pytest.skip("no results are published yet: run snakemake, then tools/publish.py")
    return found


def test_what_is_published_is_in_the_plan(folder, plan):
    """Another plan is a warning and no failure, because a complete run takes an hour: it is published later."""
    scores = pd.read_parquet(folder / "scores/scores.parquet")
    names = scores[["dataset", "method", "n_clusters", "params", "seed"]]
    published = set(names.itertuples(index=False, name=None))
    planned = {
        (fit.dataset, fit.method, cell.n_clusters, canonical_json(cell.params), cell.seed)
        for fit in plan.fits.values()
        for cell in fit.cells()
    }
    assert published & planned, "the published results are of another configuration"
    for what, fits in (
        ("planned, not published", planned - published),
        ("published, not planned", published - planned),
    ):
        if fits:
            at = sorted({one[:2] for one in fits})
            text = f"{len(fits)} fits are {what}, as {at[:5]}. Fix: run snakemake, then tools/publish.py"
            warnings.warn(text, stacklevel=1)
    states = {
        at: derive_random_state(*at)
        for at in set(zip(scores.dataset, scores.n_clusters, scores.seed, strict=True))
    }
    assert [
        states[row.dataset, row.n_clusters, row.seed] for row in scores.itertuples()
    ] == scores.random_state.tolist()


def test_labels_can_be_placed_among_the_published_benchmark_of_the_field(folder):
    """The file has fewer columns than the scores of a run; `fairclust score` reads it."""
    cells = pd.read_parquet(folder / "scores/field.parquet")
    cells = cells[(cells.dataset == "german") & (cells.n_clusters == 5)]
    levels = place_labels(cells, "sse", 1e9, 0.0)
    assert levels.reached.all() and (levels.cheaper == levels.methods).all() and levels.methods.min() > 5
    assert {"fairness_error", "balance", "params", "objective", "data_hash"} <= set(best_starts(cells))


def test_every_published_table_is_in_the_plan_and_has_rows(folder, plan):
    planned = {Path(file).relative_to(plan.results) for file in plan.table_files() if file.endswith(".md")}
    published = {path.relative_to(folder) for path in folder.glob("tables/**/*.md")}
    assert published <= planned
    if planned - published:
        warnings.warn(f"not published: {sorted(map(str, planned - published))}", stacklevel=1)
    for name in published:
        assert "| " in (folder / name).read_text(), name
    assert (folder / "tables/scoreboard.md").is_file() and (folder / "report/index.html").is_file()


def test_the_crate_names_every_file_and_every_source(folder, plan):
    crate = run_crate.checked(folder)
    assert crate["./"]["license"] == {"@id": "https://spdx.org/licenses/MIT"}
    read = run_crate.inputs_of(crate)
    for name in (Path(place).name for place in plan.source_folders(*plan.datasets)):
        stated = plan.source(name)
        digest = stated.member_sha256 if stated.member else stated.sha256
        assert name not in read or digest in ("unknown", read[name])
    papers = json.loads((folder / "provenance.json").read_text())["config"]["run"]["papers"]
    assert {Path(path).name for paper in papers for path in plan.config.papers[paper].files} <= set(read)


def test_the_published_files_are_small_and_name_no_folder_of_a_machine(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < PUBLISHED_MB * 1e6
    for path in files:
        if path.suffix != ".png":
            is_text = path.suffix != ".parquet"
            text = path.read_text() if is_text else pd.read_parquet(path).to_csv()
            assert not re.search(r"(?<![\w.])/(home|root|Users|work|tmp|srv|mnt)/|[A-Z]:\\\w", text), path
