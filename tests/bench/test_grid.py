import pytest
from fairclust.bench.config import ConfigError, canonical_json, load_config
from fairclust.bench.grid import Block, block_cells, block_params, blocks, derive_random_state

GENERATED = {"title": "Blobs", "generator": "fairclust.datasets.synthetic:make_synthetic", "n_clusters": 3}
CLASS = "fairclust.methods.variational_kmeans.VariationalFairKMeans"


def config(**changes):
    raw = {
        "run": {"datasets": ["a", "b"], "methods": ["vfc"], "seeds": 2},
        "datasets": {"a": GENERATED, "b": GENERATED},
        "methods": {"vfc": {"class": CLASS, "params": {"tol": 1e-4}, "grid": {"lam": [1, 10]}}},
    }
    for key, value in changes.items():
        raw[key] = {**raw[key], **value}
    return load_config(raw)


def keys(config, block):
    block_ = {"data_hash": "d", "class_path": CLASS, "fingerprint": "f", "n_clusters": block.n_clusters}
    return [cell.key(**block_) for cell in block_cells(config, block)]


def test_cells_are_the_product_of_grid_and_seeds():
    cells = block_cells(config(), Block("a", "vfc", 3))
    assert [(c.params, c.seed) for c in cells] == [
        ({"tol": 1e-4, "lam": 1}, 0),
        ({"tol": 1e-4, "lam": 1}, 1),
        ({"tol": 1e-4, "lam": 10}, 0),
        ({"tol": 1e-4, "lam": 10}, 1),
    ]


def test_widening_a_grid_keeps_the_keys_of_old_cells():
    narrow = keys(config(), Block("a", "vfc", 3))
    wide = config(
        methods={"vfc": {"class": CLASS, "params": {"tol": 1e-4}, "grid": {"lam": [0.5, 1.0, 10, 20]}}},
        run={"datasets": ["b", "a"], "methods": ["vfc"], "seeds": [4, 1, 0]},
    )
    assert set(narrow) < set(keys(wide, Block("a", "vfc", 3)))


def test_per_dataset_entries_win_over_general_ones():
    method = {
        "class": CLASS,
        "params": {"tol": 1e-4},
        "grid": {"lam": [1, 10]},
        "per_dataset": {"b": {"params": {"tol": 1e-3}, "grid": {"lam": [7]}}},
    }
    changed = config(methods={"vfc": method})
    assert [c.params for c in block_cells(changed, Block("b", "vfc", 3))] == [{"tol": 1e-3, "lam": 7}] * 2
    assert len(block_cells(changed, Block("a", "vfc", 3))) == 4


def test_parts_share_out_the_cells():
    split = config(run={"datasets": ["a"], "methods": ["vfc"], "seeds": 2, "parts": {"a": 3}})
    parts = blocks(split)
    assert [b.stem for b in parts] == ["a/vfc/k3-1of3", "a/vfc/k3-2of3", "a/vfc/k3-3of3"]
    together = [key for part in parts for key in keys(split, part)]
    assert sorted(together) == sorted(keys(config(), Block("a", "vfc", 3)))


def test_n_clusters_of_the_run_win():
    assert [
        b.n_clusters
        for b in blocks(config(run={"datasets": ["a", "b"], "methods": ["vfc"], "n_clusters": {"a": [2, 5]}}))
    ] == [2, 5, 3]


def test_data_sets_may_have_methods_of_their_own():
    both = {"vfc": {"class": CLASS}, "other": {"class": CLASS}}
    run = {"datasets": ["a", "b"], "methods": ["vfc"], "methods_of": {"b": ["other"]}}
    assert [b.stem for b in blocks(config(run=run, methods=both))] == ["a/vfc/k3", "b/other/k3"]
    with pytest.raises(ConfigError, match=r"run.methods_of.b: there is no 'othr'; did you mean 'other'"):
        config(run={**run, "methods_of": {"b": ["othr"]}}, methods=both)


def test_random_state_depends_on_names_only():
    assert derive_random_state("adult", 10, 0) == derive_random_state("adult", 10, 0)
    states = {derive_random_state(d, k, s) for d in "ab" for k in (2, 3) for s in range(10)}
    assert len(states) == 40
    assert all(0 <= state < 2**31 for state in states)


@pytest.mark.parametrize("left, right", [(10, 10.0), ({"b": 1, "a": [2]}, {"a": (2.0,), "b": 1})])
def test_canonical_json_writes_equal_values_alike(left, right):
    assert canonical_json(left) == canonical_json(right)


def test_canonical_json_tells_true_from_one():
    assert canonical_json(True) != canonical_json(1)


def test_a_block_is_told_only_of_itself():
    before = block_params(config(), Block("a", "vfc", 3))
    other = {"class": "fairclust.methods.kmeans.KMeans"}
    after = block_params(
        config(methods={"kmeans": other}, run={"datasets": ["a"], "methods": ["vfc", "kmeans"], "seeds": 2}),
        Block("a", "vfc", 3),
    )
    assert before == after
