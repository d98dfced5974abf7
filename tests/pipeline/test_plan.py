"""The plan: fits and their settings, what each product needs, and which changes alter which jobs."""

import json
import os

import pytest

from fairclust.metrics.table import METRICS
from fairclust.pipeline import plan as module
from fairclust.pipeline.config import ConfigError, laid_over, load_config
from fairclust.pipeline.plan import Plan, all_plain
from fairclust.pipeline.reported import load_reported
from small import GENERATED, small_config, small_paper

CLASS = "fairclust.methods.VariationalFairKMeans"
KMEANS = {"class": "fairclust.methods.KMeans"}
VFC = {"class": CLASS, "grid": {"lam": [1, 10]}}
DEAR = {"kmedians_cost", "dunn_index", "ncut"}


def two_by_two(run=None, **changes):
    """Return the plan of two data sets and two methods."""
    raw = {
        "run": {"datasets": ["a", "b"], "methods": ["vfc"], "seeds": 2, **(run or {})},
        "datasets": {"a": {**GENERATED, "n_clusters": 3}, "b": {**GENERATED, "n_clusters": 3}},
        "methods": {
            "vfc": VFC | {"params": {"tol": 1e-4}},
            "plain": {"class": CLASS},
        },
        "report": {"fronts": []},
    }
    return Plan(load_config(laid_over(raw, changes)))


def of_paper(*experiments, run=None, **changes):
    """Return such a plan, with a paper of these experiments alone."""
    papers = {"doe": small_paper(experiments=list(experiments))}
    run = {"papers": ["doe"], "datasets": [], "seeds": None, **(run or {})}
    return two_by_two(run, papers=papers, **changes)


# Fits


@pytest.mark.parametrize("change", ["data_hash", "class_path", "code"])
def test_the_key_of_a_fit_depends_on_all_that_its_result_depends_on(change):
    what = {"data_hash": "d", "class_path": CLASS, "code": "f"}
    cells = of_paper({"datasets": ["a"], "methods": ["vfc"], "n_clusters": [3, 4]}).fits["a/vfc"].cells()
    keys = [cell.key(**what) for cell in cells]
    assert len({*keys, cells[0].key(**{**what, change: "other"})}) == 1 + 2 * 2 * 5


def test_settings_of_experiments_override_those_of_data_sets_and_these_those_of_methods():
    own = {"vfc": {"params": {"tol": 1e-3}, "grid": {"lam": [7]}}, "mine": {"params": {"tol": 2}}}
    # One method uses the settings of another one.
    b = {"datasets": {"b": {"settings": own}}, "methods": {"mine": {"class": CLASS, "settings_of": "vfc"}}}
    changed = two_by_two({"methods": ["vfc", "mine"], "seeds": 1}, **b)
    assert [c.params for c in changed.fits["b/vfc"].cells()] == [{"tol": 1e-3, "lam": 7}]
    assert [c.params for c in changed.fits["b/mine"].cells()] == [{"tol": 2, "lam": 7}]
    assert len(changed.fits["a/vfc"].cells()) == 2
    experiment = {"datasets": ["b"], "methods": ["vfc"], "settings": {"vfc": {"params": {"lam": 9}}}}
    asked = of_paper(experiment, **b)
    assert [c.params for c in asked.fits["b/vfc"].cells()] == [{"tol": 1e-3, "lam": 9}] * 5


@pytest.mark.parametrize(("seeds", "expected"), [(2, {0, 1}), (None, set(range(5))), ([3, 1], {1, 3})])
def test_seeds_are_a_number_or_a_list(seeds, expected):
    fits = two_by_two({"seeds": seeds}).fits
    assert {c.seed for c in fits["a/vfc"].cells()} == expected


EXPERIMENT = {"datasets": ["a"], "methods": ["vfc"], "n_clusters": [4, 5], "seeds": 7}


@pytest.mark.parametrize(
    "run, ks, n_cells",
    [({}, [4, 5], 28), ({"seeds": 1}, [4, 5], 4), ({"seeds": 1, "n_clusters": {"a": [2]}}, [2], 2)],
)
def test_seeds_and_n_clusters_of_the_run_win(run, ks, n_cells):
    plan = of_paper(EXPERIMENT, run=run)
    assert [grid.n_clusters for grid in plan.fits["a/vfc"].grids] == ks
    assert len(plan.fits["a/vfc"].cells()) == n_cells


def test_run_only_restricts_the_papers_and_nothing_else():
    experiment = {"datasets": ["a", "b"], "methods": ["vfc", "plain"]}
    only = {"datasets": ["a"], "methods": ["plain"]}
    run = {"only": only, "datasets": ["b"], "methods": ["vfc"]}
    assert list(of_paper(experiment, run=run).fits) == ["a/plain", "b/vfc"]


def test_what_two_experiments_ask_for_is_fitted_once_and_a_sweep_is_a_job_of_its_own():
    first = {"datasets": ["a"], "methods": ["vfc"], "seeds": 3}
    second = first | {"seeds": 1, "settings": {"vfc": {"grid": {"lam": [10.0, 20]}}}}
    dense = second | {"sweep": "fig"}
    fits = of_paper(first, second, dense).fits
    assert [(c.params["lam"], c.seed) for c in fits["a/vfc"].cells()] == [
        (1, 0), (1, 1), (1, 2), (10, 0), (10, 1), (10, 2), (20, 0)
    ]  # fmt: skip
    assert [c.params["lam"] for c in fits["a/vfc.fig"].cells()] == [10, 20]
    assert all(cell in fits["a/vfc"].cells() for cell in fits["a/vfc.fig"].cells())


def test_a_figure_of_fronts_has_no_panel_for_a_k_that_only_a_sweep_has():
    sweep = {"datasets": ["a", "b"], "methods": ["vfc"], "n_clusters": [2, 5], "sweep": "fig"}
    plan = of_paper(EXPERIMENT, sweep, report={"fronts": ["balance"]})
    ks = {
        name: {asked["n_clusters"] for asked in plan.product("fronts", "figures", name)["asked"]}
        for name in "ab"
    }
    assert ks == {"a": {4, 5}, "b": {2, 5}}
    assert {one["sweep"] for one in plan.product("fronts", "figures", "a")["asked"]} == {"", "fig"}


def test_the_job_gets_rows_to_drop_by_the_position_of_a_column():
    rows = {"drop_rows": {2: [0], "city": ["x"]}, "reader": {"header": False}}
    own = {"title": "C", "source": {"path": "c.csv"}, "sensitive": {"column": 1}, "n_clusters": 2} | rows
    assert two_by_two(datasets={"c": own}).dataset("c")["drop_rows"] == {2: ("0",), "city": ("x",)}


@pytest.mark.parametrize(
    ("k", "seeds", "rows", "expected"),
    [(10, 1, 2_000_000, 4), (20, 1, 2_000_000, 8), (10, 3, 2_000_000, 12), (10, 1, 10_000, 4 / 200)],
)
def test_the_estimate_grows_with_rows_cells_and_clusters(k, seeds, rows, expected):
    plan = two_by_two(
        {"n_clusters": {"a": [k], "b": [k]}, "seeds": seeds},
        methods={"vfc": {"jobs": {"seconds_per_million": 60}}},
        datasets={"a": {"rows": rows}},
    )
    assert plan.minutes(plan.fits["a/vfc"]) == pytest.approx(expected)  # two settings


def test_a_large_plan_is_made_without_listing_its_fits(monkeypatch):
    """100,000 planned fits: what the rules ask for grows with the axes of the grids and not with their product."""

    def no_list(*_):
        raise AssertionError("the plan lists every fit")

    grid = {"lam": list(range(1000)), "tol": [10.0**-i for i in range(10)]}
    plan = two_by_two({"seeds": 5}, methods={"vfc": {"grid": grid, "params": {}}}, datasets={"a": GENERATED})
    monkeypatch.setattr(module, "cells_of_grids", no_list)
    monkeypatch.setattr(module.Grid, "settings", no_list)
    plan.check()
    found = all_params(plan)
    assert sum(len(grid) for fit in plan.fits.values() for grid in fit.grids) == 100_000
    assert len(json.dumps(found)) < 100_000


# What tables, figures and claims need

CLAIM = {"text": "x", "check": "reaches", "datasets": ["b"], "methods": ["vfc"], "metrics": ["dunn_index"]}


def doe(
    folder, *, reported="1,a,2,vfc,kmedians_cost,5.0\n1,b,2,vfc,kmedians_cost,5.0\n", more=None, **changes
):
    """Return the plan of two data sets, two methods, and a paper with a table and two figures."""
    (folder / "doe.csv").write_text("table,dataset,n_clusters,method,metric,value\n" + reported)
    match = {"fairness": "balance", "order": "lam"}
    experiment = {"datasets": ["a", "b"], "methods": ["vfc", "kmeans"], "n_clusters": [2, 5], "seeds": 2}
    dense = {"datasets": ["b"], "methods": ["vfc"], "n_clusters": [5], "seeds": 1, "sweep": "fig"}
    layout = {"rows": {"All": {}}, "columns": [{"Cost": {"metric": "sse"}}]}
    products = {
        "reported": str(folder / "doe.csv"),
        "tables": {
            "t": {"number": "1", "title": "T", "layout": layout, "ours": ["kmeans"], "match": match}
        },
        "figures": {
            "front": {"plot": "front", "title": "F", "datasets": ["a"], "n_clusters": [5], "x": "dunn_index",
                      "y": ["delta"]},
            "points": {"plot": "clusters", "title": "P", "datasets": ["b"], "methods": ["vfc"]},
            "dense": {"plot": "front", "title": "D", "datasets": ["b"], "x": "sse", "y": ["delta"],
                      "sweep": "fig"},
        },
    }  # fmt: skip
    raw = {
        "run": {"papers": ["doe"]},
        "datasets": {"a": GENERATED, "b": GENERATED},
        "methods": {"vfc": VFC, "kmeans": KMEANS},
        "papers": {"doe": small_paper(experiments=[experiment, dense], **{**products, **(more or {})})},
        "report": {"fronts": []},
        "score": {"expensive_max_rows": 0},
    }
    load_reported.cache_clear()
    return Plan(load_config(laid_over(raw, changes)))


def files(*names):
    return [f"results/fits/{name}.parquet" for name in names]


def test_products_read_the_fits_that_they_show_and_no_others(tmp_path):
    plan = doe(tmp_path, more={"claims": {"c": CLAIM}})
    assert list(plan.fits) == ["a/vfc", "a/kmeans", "b/vfc", "b/kmeans", "b/vfc.fig"]
    # The table needs its rows and those of our method, with the K of the rows.
    assert plan.fits_shown("doe", "tables", "t") == files("a/vfc", "a/kmeans", "b/vfc", "b/kmeans")
    assert {one["n_clusters"] for one in plan.product("doe", "tables", "t")["asked"]} == {2}
    assert plan.fits_shown("doe", "figures", "front") == files("a/vfc", "a/kmeans")
    assert plan.fits_shown("doe", "figures", "points") == files("b/vfc")
    assert plan.fits_shown("doe", "figures", "dense") == files("b/vfc.fig")
    assert plan.unscaled("doe", "points") == ["results/data/unscaled/b"] and not plan.unscaled("doe", "front")
    assert plan.fits_shown("doe", "claims") == files("b/vfc")
    # A comparison with another data set needs the fits there, too.
    other = doe(tmp_path, more={"claims": {"c": {**CLAIM, "options": {"other_dataset": "a"}}}})
    assert other.fits_shown("doe", "claims") == files("a/vfc", "b/vfc")
    data = {path for fit in plan.fits.values() for path in plan.fit_inputs(fit).values()}
    assert {*plan.fit_files(), *data} < set(plan.targets())
    own = plan.files("tables", "figures", "claims", papers=["doe"])
    assert "results/tables/doe/claims.csv" in own and set(own) < set(plan.targets())
    with pytest.raises(ConfigError, match="this run has no table 'doe/tt'; did you mean 'doe/t'"):
        plan.fits_shown("doe", "tables", "tt")
    with pytest.raises(ConfigError, match="this run has no fit 'a/vfcc'; did you mean 'a/vfc'"):
        plan.fit("a", "vfcc")


@pytest.mark.parametrize(
    "reported, needs",
    [
        ("1,a,,vfc,sse,5.0\n", {("a", 2), ("a", 5)}),
        ("1,far,2,vfc,sse,5.0\n", None),
    ],
)
def test_a_row_without_k_needs_every_k_and_a_table_without_fits_is_not_made(tmp_path, reported, needs):
    plan = doe(tmp_path, reported=reported)
    table = plan.shown.get(("doe", "tables", "t"))
    assert (table and {(job[0], k) for job, k in table}) == needs
    assert any("/doe/t." in file for file in plan.targets()) == bool(needs)


def test_a_paper_shows_its_own_fits(tmp_path):
    """Another paper asks for further lambdas of the same method on the same data set, which are in the same file."""
    theirs = small_paper(
        experiments=[{"datasets": ["a"], "methods": ["vfc"], "n_clusters": [2, 9], "seeds": 1,
                      "settings": {"vfc": {"grid": {"lam": [7]}}}}]
    )  # fmt: skip

    def lams(plan):
        return {
            (one["n_clusters"], lam)
            for one in plan.product("doe", "figures", "all")["asked"]
            for grid in one["grids"]
            for lam in grid["axes"]["lam"]
        }

    front = {"plot": "front", "title": "A", "datasets": ["a"], "methods": ["vfc"], "x": "sse", "y": ["delta"]}
    more = {"figures": {"all": front}}
    with_theirs = {"run": {"papers": ["doe", "roe"]}, "papers": {"roe": theirs}}
    alone = doe(tmp_path, more=more, **with_theirs)
    assert lams(alone) == {(k, lam) for k in (2, 5) for lam in (1, 10)}
    assert len(alone.fits["a/vfc"].cells()) == 2 * 2 * 2 + 2
    wide = doe(tmp_path, more=more | {"cells_of": ["roe"]}, **with_theirs)
    assert lams(wide) == lams(alone) | {(2, 7), (9, 7)}


def metrics(plan, fit, k):
    return set(plan.metrics(plan.fits[fit])[k])


def test_expensive_metrics_are_scored_only_where_something_shows_them(tmp_path):
    plan = doe(tmp_path, more={"claims": {"c": CLAIM}})
    for fit in ("a/vfc", "a/kmeans", "b/vfc", "b/kmeans"):
        claimed = {"dunn_index"} if fit == "b/vfc" else set()
        assert metrics(plan, fit, 2) & DEAR == {"kmedians_cost"} | claimed
        assert metrics(plan, fit, 5) & DEAR == ({"dunn_index"} if fit[0] == "a" else claimed)
    assert not metrics(plan, "b/vfc.fig", 5) & DEAR
    cheap = {name for name, metric in METRICS.items() if metric.needs == "table"}
    assert all(cheap | {"sse"} <= metrics(plan, f"{d}/vfc", k) for d in "ab" for k in (2, 5))


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"score": {"metrics": ["ncut"]}}, {"kmedians_cost", "ncut"}),
        ({"score": {"expensive_max_rows": 400}, "datasets": {"b": {"rows": 400}}}, DEAR),
        ({"score": {"expensive_max_rows": 100}, "datasets": {"b": {"rows": 400}}}, {"kmedians_cost"}),
    ],
)
def test_other_metrics_are_scored_for_small_data_or_on_request(tmp_path, changes, expected):
    assert metrics(doe(tmp_path, **changes), "b/vfc", 2) & DEAR == expected


# The parameters of jobs


def all_params(plan):
    """Return what the rules ask the plan for, by job."""
    found = {"scores": [plan.settings()], "targets": plan.targets()}
    for name, fit in plan.fits.items():
        asked = (plan.grids, plan.metrics, plan.fit_code, plan.scorer_code, plan.fit_inputs)
        found[f"fit {name}"] = [answer(fit) for answer in asked] + [
            plan.method(fit).jobs.model_dump(),
            plan.minutes(fit),
        ]
    for name in plan.datasets:
        found[f"data {name}"] = [
            plan.dataset(name),
            all_plain(plan.sources_of(name)),
            plan.prepare_code(name),
        ]
    for product in plan.shown:
        asked = [plan.product(*product), plan.fits_shown(*product), plan.reported_files(product[0])]
        found[" ".join(product[1:])] = asked
    return json.loads(json.dumps(found, default=str))


@pytest.mark.parametrize(
    "change, jobs",
    [
        (
            {"methods": {"vfc": {"grid": {"lam": [1, 10, 100]}}}},
            "fit a/vfc, fit b/vfc, fit b/vfc.fig, tables t, figures front, figures points, figures dense, scores",
        ),
        ({"datasets": {"b": {"settings": {"kmeans": {"params": {"n_init": 3}}}}}}, "fit b/kmeans, tables t, scores"),
        ({"methods": {"kmeans": {"label": "K"}}}, "tables t, figures front"),
        ({"datasets": {"a": {"shown": "400 rows"}}}, "tables t, figures front, figures points, figures dense"),
        ({"same_digits": False}, "fit a/vfc, fit b/vfc, fit b/vfc.fig, fit a/kmeans, fit b/kmeans"),
    ],
    ids=["lambda", "setting of a data set", "label", "what is shown", "instructions"],
)  # fmt: skip
def test_a_change_alters_the_parameters_of_its_own_jobs(tmp_path, change, jobs):
    """Of other changes, tests/workflow/test_run.py runs the jobs."""
    before, after = all_params(doe(tmp_path)), all_params(doe(tmp_path, **change))
    assert {job for job in before if before[job] != after[job]} == set(filter(None, jobs.split(", ")))


def test_a_file_of_the_user_that_is_replaced_by_an_older_one_changes_its_job(tmp_path):
    own = tmp_path / "own.csv"
    table = {"title": "A", "source": {"path": str(own)}, "sensitive": {"column": "sex"}, "n_clusters": 2}
    codes = []
    for text in ("one", "two", "one"):
        own.write_text(text)
        os.utime(own, (1e9, 1e9))
        codes.append(Plan(load_config(small_config(datasets={"a": table}))).prepare_code("a"))
    assert codes[0] == codes[2] != codes[1]


@pytest.mark.parametrize(
    "method, message",
    [
        ({"class": "fairclust.methods.KMean"}, r"\.class: .*does not define 'KMean'; it defines"),
        ({"class": "nowhere.KMeans"}, r"\.class: .*no Python module 'nowhere'"),
        ({**VFC, "params": {"lamm": 1}}, ": .* takes no parameter 'lamm'; .*'lam'"),
        ({**KMEANS, "grid": {"n_clusters": [2]}}, ": the parameter 'n_clusters' is set for you"),
        ({**KMEANS, "params": {"random_state": 3}}, ": the parameter 'random_state' is set for you; see run.seeds"),
    ],
)  # fmt: skip
def test_a_class_that_does_not_exist_stops_the_plan(method, message):
    with pytest.raises(ConfigError, match=f"methods.m{message}"):
        Plan(load_config(small_config(methods={"m": method}))).check()


def test_a_generator_that_does_not_exist_stops_the_plan():
    data = {**GENERATED, "generator": "nowhere.make"}
    with pytest.raises(ConfigError, match=r"^datasets\.a\.generator: .*no Python module 'nowhere'"):
        Plan(load_config(small_config(datasets={"a": data}))).check()


@pytest.mark.parametrize(
    "run, message",
    [
        ({"methods": []}, "run: nothing is left to fit"),
        ({"n_clusters": {"a": [2, 401]}}, r"datasets\.a: it has 400 rows; lower K = 401"),
    ],
)
def test_a_run_that_cannot_be_made_stops_the_plan(run, message):
    raw = small_config(datasets={"a": {**GENERATED, "rows": 400}})
    raw["run"] = raw["run"] | run
    with pytest.raises(ConfigError, match=message):
        Plan(load_config(raw)).check()


def test_provenance_has_a_digest_of_what_is_used(tmp_path):
    kept = doe(tmp_path, mirror="/secret/place", methods={"x": VFC}).settings()
    assert kept == doe(tmp_path).settings() and kept["run"]["papers"] == ["doe"]
    assert kept["digest"] != doe(tmp_path, datasets={"a": {"scale": "minmax"}}).settings()["digest"]
