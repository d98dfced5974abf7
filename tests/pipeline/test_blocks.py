"""From the configuration to blocks and cells."""

import pytest

from fairclust.pipeline.blocks import count_cells, derive_random_state, estimated_minutes, plan_blocks
from fairclust.pipeline.config import load_config
from small import GENERATED, small_paper

CLASS = "fairclust.methods.VariationalFairKMeans"
VFC = {"class": CLASS, "params": {"tol": 1e-4}, "grid": {"lam": [1, 10]}}


def config(run=None, **changes):
    raw = {
        "run": {"datasets": ["a", "b"], "methods": ["vfc"], "seeds": 2, **(run or {})},
        "datasets": {"a": {**GENERATED, "n_clusters": 3}, "b": {**GENERATED, "n_clusters": 3}},
        "methods": {"vfc": VFC, "plain": {"class": CLASS, "deterministic": True}},
        "papers": {},
    }
    for key, value in changes.items():
        raw[key] = {**raw[key], **value} if isinstance(raw.get(key), dict) else value
    return load_config(raw)


def one(config, dataset="a", method="vfc"):
    (found,) = [block for block in plan_blocks(config) if (block.dataset, block.method) == (dataset, method)]
    return found


def keys(block):
    what = {"data_hash": "d", "class_path": CLASS, "fingerprint": "f", "n_clusters": block.n_clusters}
    return [cell.key(**what) for cell in block.cells()]


def paper(*experiments):
    return {
        "run": {"papers": ["doe"], "datasets": [], "seeds": None},
        "papers": {"doe": small_paper(experiments=list(experiments))},
    }


@pytest.mark.parametrize("change", ["data_hash", "class_path", "fingerprint", "n_clusters"])
def test_a_key_depends_on_all_that_the_result_depends_on(change):
    what = {"data_hash": "d", "class_path": CLASS, "fingerprint": "f", "n_clusters": 3}
    cell = one(config()).cells()[0]
    assert cell.key(**what) != cell.key(**{**what, change: 4 if change == "n_clusters" else "other"})


def test_settings_of_experiments_override_those_of_data_sets_and_methods():
    b = {**GENERATED, "n_clusters": 3, "settings": {"vfc": {"params": {"tol": 1e-3}, "grid": {"lam": [7]}}}}
    changed = config(datasets={"b": b})
    assert [c.params for c in one(changed, "b").cells()] == [{"tol": 1e-3, "lam": 7}] * 2
    assert len(one(changed, "a").cells()) == 4
    experiment = {"datasets": ["b"], "methods": ["vfc"], "settings": {"vfc": {"params": {"lam": 9}}}}
    asked = config(**paper(experiment), datasets={"b": b})
    assert [c.params for c in one(asked, "b").cells()] == [{"tol": 1e-3, "lam": 9}] * 5


def test_a_method_can_use_the_settings_of_another_method():
    b = {
        **GENERATED,
        "n_clusters": 3,
        "settings": {"vfc": {"grid": {"lam": [7]}}, "mine": {"params": {"tol": 2}}},
    }
    mine = {"class": CLASS, "settings_of": "vfc"}
    changed = config(datasets={"b": b}, methods={"mine": mine}, run={"methods": ["mine"], "seeds": 1})
    assert [c.params for c in one(changed, "b", "mine").cells()] == [{"tol": 2, "lam": 7}]


def test_every_method_gets_the_same_number_of_starts_and_a_deterministic_one_gets_one():
    starts = {
        b.method: {c.seed for c in b.cells()} for b in plan_blocks(config(run={"methods": ["vfc", "plain"]}))
    }
    assert starts == {"vfc": {0, 1}, "plain": {0}}
    default = plan_blocks(config(run={"methods": ["vfc", "plain"], "seeds": None}))
    assert {b.method: len({c.seed for c in b.cells()}) for b in default} == {"vfc": 5, "plain": 1}


def test_seeds_and_n_clusters_of_the_run_win():
    experiment = {"datasets": ["a"], "methods": ["vfc"], "n_clusters": [4, 5], "seeds": 7}
    assert [(b.n_clusters, count_cells(b)) for b in plan_blocks(config(**paper(experiment)))] == [
        (4, 14),
        (5, 14),
    ]
    given = paper(experiment)
    given["run"] |= {"seeds": 1, "n_clusters": {"a": [2]}}
    assert [(b.n_clusters, count_cells(b)) for b in plan_blocks(config(**given))] == [(2, 2)]


def test_run_only_restricts_the_papers_and_nothing_else():
    experiment = {"datasets": ["a", "b"], "methods": ["vfc", "plain"]}
    given = paper(experiment)
    given["run"] |= {"only": {"datasets": ["a"], "methods": ["plain"]}, "datasets": ["b"], "methods": ["vfc"]}
    assert [b.stem for b in plan_blocks(config(**given))] == ["a/plain/k3", "b/vfc/k3"]


def test_cells_that_two_experiments_ask_for_are_fitted_once():
    first = {"datasets": ["a"], "methods": ["vfc"], "seeds": 3}
    second = {
        "datasets": ["a"],
        "methods": ["vfc"],
        "seeds": 1,
        "settings": {"vfc": {"grid": {"lam": [10.0, 20]}}},
    }
    (block,) = plan_blocks(config(**paper(first, second)))
    assert [(c.params["lam"], c.seed) for c in block.cells()] == [
        (1, 0), (1, 1), (1, 2), (10, 0), (10, 1), (10, 2), (20, 0)
    ]  # fmt: skip
    assert count_cells(block) == 8


def test_long_work_is_cut_into_a_job_for_each_seed_with_the_same_cells():
    whole = one(config(run={"seeds": 3}))
    cut = [b for b in plan_blocks(config(run={"seeds": 3}, jobs={"minutes": 1e-6})) if b.dataset == "a"]
    assert [block.stem for block in cut] == ["a/vfc/k3-s0", "a/vfc/k3-s1", "a/vfc/k3-s2"]
    assert sorted(key for block in cut for key in keys(block)) == sorted(keys(whole))


def test_the_estimate_grows_with_rows_cells_and_clusters():
    big = {**GENERATED, "rows": 2_000_000}
    slow = {**VFC, "jobs": {"seconds_per_million": 60}}
    changed = config(datasets={"b": big}, methods={"vfc": slow})
    assert estimated_minutes(changed, "b", "vfc", 10, 3) == pytest.approx(6)
    assert estimated_minutes(changed, "b", "vfc", 20, 3) == pytest.approx(12)
    assert estimated_minutes(changed, "a", "vfc", 10, 3) == pytest.approx(6 / 200)


def test_random_state_depends_on_names_only():
    assert derive_random_state("adult", 10, 0) == derive_random_state("adult", 10, 0)
    states = {derive_random_state(d, k, s) for d in "ab" for k in (2, 3) for s in range(10)}
    assert len(states) == 40
    assert all(0 <= state < 2**31 for state in states)
