"""Points with lists of clusters, against those with a table of all distances."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fairclust import open_chunks
from fairclust.chunks.engines import Threads
from fairclust.kernels import listed
from fairclust.kernels.listed import ListedPoints
from fairclust.kernels.points import TiledPoints
from fairclust.methods import PriceFairKMeans

K, J = 70, 3


def points(monkeypatch, n_listed, seed=0, n_features=5, n_clusters=K, dtype=np.float64):
    """The same points with lists and with a table, measured at the same centres, and prices."""
    monkeypatch.setattr(listed, "_LISTED", n_listed)
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(3000, n_features)) + 10, rng.integers(0, J, 3000).astype(np.int32)
    both = [kind.pack(X, codes, J, n_clusters, dtype=dtype) for kind in (ListedPoints, TiledPoints)]
    centers = X[rng.choice(len(X), n_clusters, replace=False)]
    for each in both:
        each.measure(centers)
    return *both, centers, rng.normal(scale=0.3, size=(J, n_clusters))


def assert_same(found, expected, rtol=1e-9):
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)


@pytest.mark.parametrize("n_listed", [1, 8, K])
def test_labels_and_the_dual_are_about_all_clusters(monkeypatch, n_listed):
    some, table, centers, prices = points(monkeypatch, n_listed)
    for at in (0 * prices, prices, 2 * prices[:, ::-1]):
        assert_same(some.priced(at), table.priced(at))
        assert_same(some.hard(0.5, at), table.hard(0.5, at))
        assert_same(some.sums(some.priced(at)[0]), table.sums(table.priced(at)[0]))
    # The lists of the last centres do not hide that other clusters are cheaper now.
    for each in (some, table):
        each.measure(centers[::-1])
    assert_same(some.priced(prices), table.priced(prices))


@pytest.mark.parametrize("seed", range(3))
def test_sums_over_lists_of_all_clusters_are_those_of_the_table(monkeypatch, seed):
    monkeypatch.setattr(listed, "_SMALL", 0.0)
    some, table, _, prices = points(monkeypatch, K, seed)
    assert some.reach == np.inf
    assert_same(some.soft(3.0, prices), table.soft(3.0, prices), 1e-7)
    assert_same(some.losses(prices), table.losses(prices))
    assert some.mean_gap() == pytest.approx(table.mean_gap())
    assert some.row_min_sum == pytest.approx(table.row_min_sum)
    np.testing.assert_array_equal(some.group_sizes, table.group_sizes)


def test_lists_tell_when_they_are_too_short(monkeypatch):
    some, _, centers, prices = points(monkeypatch, 4)
    some.priced(prices)
    assert some.fit_centers
    assert not some.outgrown(prices + 1e-6)
    before = some.priced(prices)[0]
    # A cluster that few points list becomes the cheapest for all.
    far = prices.copy()
    far[:, 0] -= 100
    assert some.outgrown(far)
    assert (some.priced(far)[0] == 0).all() and (before != 0).any()
    some.measure(centers[::-1])
    assert not some.fit_centers


def test_points_that_can_move_are_the_cheapest_of_each_cluster(monkeypatch):
    some, table, centers, prices = points(monkeypatch, 10)
    labels = some.priced(prices)[0]
    a = ((some.X[:, None] - centers) ** 2).sum(axis=2)
    for j, rows, excess, clusters in some.movable(prices, labels, np.full(J, 3)):
        chosen = a[rows[:, None], clusters]
        np.testing.assert_allclose(excess - excess[:, :1], chosen - chosen[:, :1], atol=1e-9)
        tiles = np.flatnonzero(table.layout.group == j)
        begin, number = table.layout.start[tiles], table.layout.count[tiles]
        own = np.concatenate([table.layout.order[i : i + n] for i, n in zip(begin, number, strict=True)])
        assert len(own) and len(np.unique(rows)) == len(rows)
        for k in np.unique(labels[rows]):
            inside = own[labels[own] == k]
            regret = a[inside] + prices[j] - (a[inside, k] + prices[j, k])[:, None]
            regret[:, k] = np.inf
            cheapest = inside[np.argsort(regret.min(axis=1))[:3]]
            assert np.isin(cheapest, rows).all()


@pytest.mark.parametrize(
    "bounds",
    [
        {"size_min": 0.8, "size_max": 1.2},
        {"tolerance": 0.2},
        {"tolerance": 0.0},
        {"tolerance": 0.3, "size_max": 1.3},
        {"max_gap": 0.01},
        {"min_balance": 0.4},
    ],
    ids=str,
)
def test_fits_with_lists_are_as_good_as_with_a_table(monkeypatch, bounds):
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(150, 6))
    X = centers[rng.choice(150, 5000, p=rng.dirichlet(np.ones(150)))] + 0.3 * rng.normal(size=(5000, 6))
    groups = np.where(X[:, 0] + rng.normal(size=5000) > 0, "a", "b")
    model = PriceFairKMeans(64, n_init=1, tol=1e-3, random_state=0, **bounds)
    costs = {}
    for per_cell in (1, 10**9):
        monkeypatch.setattr(listed, "_PER_CELL", per_cell)
        monkeypatch.setattr(listed, "_MANY_CLUSTERS", 64)
        model.fit(X, sensitive_features=groups)
        costs[per_cell] = model.cost_
        assert model.violation_ <= 1 and model.gap_ < 0.01
        changed = model.predict(X, sensitive_features=groups) != model.labels_
        assert changed.sum() == model.n_rounded_
    assert costs[1] == pytest.approx(costs[10**9], rel=0.02)


def test_a_search_goes_on_from_lists(monkeypatch):
    monkeypatch.setattr(listed, "_PER_CELL", 1)
    monkeypatch.setattr(listed, "_MANY_CLUSTERS", 64)
    X = np.random.default_rng(0).normal(size=(4000, 3))
    model = PriceFairKMeans(64, size_min=0.9, size_max=1.1, n_init=2, random_state=0)
    found = model.fit(X).cost_
    assert found < model.set_params(search=False).fit(X).cost_
    assert model.violation_ == 0


@pytest.mark.parametrize("bounds", [{"size_min": 0.8, "size_max": 1.2}, {"tolerance": 0.2}], ids=str)
def test_fits_of_rows_in_chunks_have_lists_too(monkeypatch, tmp_path, bounds):
    monkeypatch.setattr(listed, "_PER_CELL", 1)
    monkeypatch.setattr(listed, "_MANY_CLUSTERS", 64)
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(4000, 4)).astype(np.float16), rng.integers(0, 2, 4000)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "groups.npy", groups)
    model = PriceFairKMeans(64, n_init=1, tol=1e-3, random_state=0, **bounds)
    in_memory = model.fit(X, sensitive_features=groups).cost_
    rows = open_chunks(tmp_path / "X.npy", tmp_path / "groups.npy", chunk_rows=1500, sample_rows=3000)
    model.fit(rows)
    assert model.cost_ == pytest.approx(in_memory, rel=0.02)
    assert model.violation_ <= 1 and model.gap_ < 0.05
    counts = np.zeros((2, 64))
    np.add.at(counts, (groups, model.labels_), 1)
    if "size_max" in bounds:
        assert counts.sum(axis=0).max() <= np.ceil(1.2 * 4000 / 64)
    # Lists that are made anew in every pass, as in other processes, are those that are kept.
    labels, history = model.labels_, model.history_
    model.fit(replace(rows, engine=SimpleNamespace(run=Threads().run)))
    np.testing.assert_array_equal(model.labels_, labels)
    assert [record["objective"] for record in model.history_] == [record["objective"] for record in history]
