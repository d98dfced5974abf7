"""Labels of whole rows against the cheapest ones, by enumeration, by matching and by moves of one or two points."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import criterion_of, from_blobs
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from fairclust import PriceFairKMeans, fair_assignment
from fairclust.group_encoding import read_sensitive
from fairclust.methods.price.rounding import round_prices
from fairclust.metrics import contingency
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.prices import solve, temperature_unit
from twins import counts_of


@given(st.integers(0, 2**20), st.integers(2, 40), st.integers(1, 5), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_no_labels_with_the_same_table_are_cheaper(seed, n_samples, n_clusters, n_groups, ties):
    rng = np.random.default_rng(seed)
    codes, shape = rng.integers(n_groups, size=n_samples), (n_samples, n_clusters)
    costs = rng.integers(3, size=shape).astype(float) if ties else rng.random(shape)
    found = fair_assignment(costs, codes, tolerance=0.1)
    least = 0.0
    for j, counts in enumerate(contingency(found.labels, codes, n_clusters)):
        places = np.repeat(costs[codes == j], counts, axis=1)
        least += places[linear_sum_assignment(places)].sum()
    assert found.cost == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("weights", [[1.0, 1.0], [2.0, 2.0], [1.0, 1.01]], ids=str)
@pytest.mark.parametrize("times", [1, 2, 100])
def test_equal_rows_are_split_between_clusters(times, weights):
    """All rows of "f" cost the same, and the argmin puts them into one cluster."""
    costs = np.repeat([[0.0, 1.0], [0.0, 9.0], [9.0, 0.0]], [136 * times, 22 * times, 22 * times], axis=0)
    groups = np.repeat(["f", "m"], [136 * times, 44 * times])
    found = fair_assignment(costs, groups, sample_weight=np.resize(weights, len(groups)))
    assert found.cost == pytest.approx(68 * times * np.mean(weights), rel=0.01)
    assert found.slack <= max(weights)


def least_at(costs, weights, tolerance, slack):
    """The least cost of labels for two clusters that are off the bounds by no more than `slack`, by enumeration."""
    n = len(costs)
    codes, every = np.arange(n) % 2, np.array(list(product(range(2), repeat=n)))
    shares = np.array([weights[codes == j].sum() for j in range(2)]) / weights.sum()
    tables = np.array(
        [[((every == k) * weights)[:, codes == j].sum(axis=1) for k in range(2)] for j in range(2)]
    )
    due = shares[:, None, None] * tables.sum(axis=0)
    off = np.maximum((1 - tolerance) * due - tables, tables - due / (1 - tolerance)).max(axis=(0, 1))
    return (weights * costs[np.arange(n), every]).sum(axis=1)[off <= slack + 1e-9].min()


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(6))
def test_no_labels_of_few_rows_are_cheaper_at_the_same_violation(seed, tolerance):
    costs = np.random.default_rng(seed).lognormal(sigma=1.5, size=(10, 2))
    found = fair_assignment(costs, np.arange(10) % 2, tolerance=tolerance)
    assert found.cost == pytest.approx(least_at(costs, np.ones(10), tolerance, found.slack))


def test_few_labels_of_weighted_rows_are_cheaper_at_the_same_violation():
    """Points of a group with different weights change places, without which the mean is 1.018."""
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        weights, costs = rng.choice([0.5, 1.0, 2.0, 3.0], 10), rng.lognormal(size=(10, 2))
        found = fair_assignment(costs, np.arange(10) % 2, tolerance=0.1, sample_weight=weights)
        ratios.append(found.cost / least_at(costs, weights, 0.1, found.slack))
    assert np.mean(ratios) < 1.015


@pytest.mark.parametrize("asked", [{"tolerance": 0.1}, {"tolerance": 0.1, "size_min": 0.5}])
def test_prices_that_are_off_by_many_points_are_brought_within_the_bounds(asked):
    """The error of the prices is a fraction of all points, which can be more points than rounding first moves."""
    problem = from_blobs(n_samples=20_000, n_groups=3)
    points, shape = problem.potentials, (3, 4)
    criterion = criterion_of(4, read_sensitive(problem.codes, 20_000), points.group_sizes, **asked)
    exact = solve(points, criterion)
    prices = exact.prices + np.random.default_rng(0).normal(scale=0.01 * temperature_unit(points), size=shape)
    mass = points.priced(prices)[1]
    assert criterion.excess(mass).max() > 20
    labels, cost, counts = round_prices(points, criterion, exact._replace(prices=prices, mass=mass))
    assert criterion.excess(counts).max() <= 1e-9
    np.testing.assert_array_equal(counts, contingency(labels, problem.codes, 4))
    assert cost == pytest.approx(problem.a[np.arange(20_000), labels].sum())
    assert cost == pytest.approx(exact.cost, rel=1e-4)


def test_moves_are_tried_in_tables_that_fit_in_memory_and_again_only_for_clusters_that_changed(monkeypatch):
    sizes, plain, rng = [], Criterion.excess_of, np.random.default_rng(0)
    monkeypatch.setattr(Criterion, "excess_of", lambda *given: sizes.append(given[1].size) or plain(*given))
    fair_assignment(rng.random((400, 20)), np.arange(400) % 3, sample_weight=rng.uniform(0.5, 2, 400))
    assert len(sizes) > 50 and np.median(sizes) < max(sizes) / 5
    fair_assignment(rng.random((600, 2)), (np.arange(600) % 300).astype(str), tolerance=0.2)
    assert max(sizes) < 1 << 22


@pytest.mark.parametrize("n_clusters", [30, 80])
def test_bounded_sizes_and_shares_of_many_clusters_are_met(n_clusters):
    rng = np.random.default_rng(0)
    codes = rng.choice(4, 100 * n_clusters, p=[0.4, 0.3, 0.2, 0.1])
    X, centers = rng.normal(size=(len(codes), 3)), rng.normal(size=(n_clusters, 3))
    found = fair_assignment(cdist(X, centers), codes, tolerance=0.2, size_min=0.8, size_max=1.2)
    assert found.slack <= 1e-9
    assert found.gap < 0.01


@pytest.mark.parametrize("n_groups, tolerance", [(2, 0.1), pytest.param(3, 0.1, marks=pytest.mark.slow)])
def test_both_precisions_agree_on_a_long_tail(n_groups, tolerance):
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=3, size=(5000, 3))
    codes = rng.integers(n_groups, size=5000)
    found = []
    for precision in ("single", "double"):
        model = PriceFairKMeans(5, tolerance=tolerance, n_init=3, precision=precision, random_state=0)
        with pytest.warns(UserWarning, match="off the bounds by up to"):
            model.fit(X, sensitive_features=codes)
        counts = counts_of(model.labels_, codes, 5)
        expected = counts.sum(axis=1)[:, None] * counts.sum(axis=0) / 5000
        off = np.maximum(counts - expected / (1 - tolerance), (1 - tolerance) * expected - counts)
        assert off.max() <= 1 + 1e-6
        nearest = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2).min(axis=1).sum()
        assert model.cost_ >= nearest * (1 - 1e-6)
        assert model.gap_ < 0.15
        found.append(model.cost_)
    assert found[0] == pytest.approx(found[1], rel=0.01)


@pytest.mark.parametrize("far", [1e4, 1e6, 1e8])
def test_a_far_cluster_does_not_stop_moves_between_the_others(far):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2)) + 3 * (np.arange(200) < 100)[:, None]
    codes = (rng.random(200) < 0.3 + 0.4 * (X[:, 0] > 1.5)).astype(int)
    X[:2], codes[:2] = far, [0, 1]
    found = fair_assignment(cdist(X, [[0, 0], [3, 3], [far, far]], "sqeuclidean"), codes)
    assert found.slack < 0.1
    assert found.gap < 1e-3


@pytest.mark.parametrize("n_samples, size_min", [(100, 12), (20_000, 1000)])
def test_sizes_are_kept_although_a_far_cluster_makes_them_expensive(n_samples, size_min):
    X = np.random.default_rng(0).normal(size=(n_samples, 2))
    X[:3] *= 1e4
    found = fair_assignment(cdist(X, [X[0], [0, 0], [1, 1]], "sqeuclidean"), size_min=size_min)
    assert found.slack == 0
    assert np.bincount(found.labels).min() == size_min
    assert found.gap < 1e-6


@pytest.mark.parametrize("bound", [{"tolerance": 0.0}, {"max_gap": 0.005}, {"min_balance": 0.9}])
def test_bounds_on_groups_are_exceeded_where_two_far_points_make_them_expensive(bound):
    """Two points of one group lie together, 1e6 from all others, and a third one there would cost 1e12."""
    X = np.random.default_rng(1).normal(size=(200, 2))
    X[:2] += 1e6
    model = PriceFairKMeans(6, n_init=3, random_state=0, **bound)
    with pytest.warns(UserWarning, match="a few points lie far from all others"):
        model.fit(X, sensitive_features=np.arange(200) // 2 % 2)
    assert model.cost_ < 1e3
    assert model.violation_ >= 1


def test_a_search_among_runs_with_negative_bounds_ends_with_a_fit():
    """With points this far from all others, the lower bound of all rough runs is below zero."""
    rng = np.random.default_rng(1)
    X, codes = rng.lognormal(sigma=3, size=(300, 3)), rng.integers(2, size=300)
    model = PriceFairKMeans(5, tolerance=0.1, n_init=3, random_state=0).fit(X, sensitive_features=codes)
    assert model.violation_ < 1


@pytest.mark.parametrize("seed", [0, 1, 15])
def test_no_two_moves_make_labels_of_few_different_rows_cheaper(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(10, size=(50, 2))[rng.integers(50, size=400)].astype(float)
    columns = rng.integers(2, size=(400, 2))
    codes = 2 * columns[:, 0] + columns[:, 1]
    model = PriceFairKMeans(4, n_init=1, random_state=0).fit(X, sensitive_features=columns)
    costs = cdist(X, model.cluster_centers_, "sqeuclidean")
    found = fair_assignment(costs, columns)
    assert model.cost_ <= found.cost * (1 + 1e-6)
    assert model.violation_ <= found.slack + 1e-9

    def is_as_fair(moved, table):
        """Whether neither the largest excess nor the sum of all grows; those of a cluster's cells are the same."""
        off = []
        for of in (moved, table):
            of_values = np.array([of[2:].sum(axis=0), of[1::2].sum(axis=0)])
            off.append(np.abs(of_values - np.outer(columns.mean(axis=0), of.sum(axis=0))).max(axis=0))
        return off[0].max() <= off[1].max() + 1e-9 and off[0].sum() <= off[1].sum() + 1e-9

    for labels in (model.labels_, found.labels):
        table = np.array([np.bincount(labels[codes == j], minlength=4) for j in range(4)])
        change = np.full((4, 4, 4), np.inf)
        for j, k, m in np.ndindex(4, 4, 4):
            inside = costs[(codes == j) & (labels == k)]
            if k != m and len(inside):
                change[j, k, m] = (inside[:, m] - inside[:, k]).min()
        for (j, i), (k, m), way in product(permutations(range(4), 2), permutations(range(4), 2), (1, -1)):
            old, new = (k, m)[::way]
            moved = table.copy()
            moved[[j, i], [k, old]] -= 1
            moved[[j, i], [m, new]] += 1
            if is_as_fair(moved, table):
                assert change[j, k, m] + change[i, old, new] >= -1e-6 * found.cost
