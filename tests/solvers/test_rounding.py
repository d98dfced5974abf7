"""Labels of whole rows against the cheapest ones, by enumeration and by matching."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import criterion_of
from scipy.optimize import linear_sum_assignment

from fairclust import fair_assignment
from fairclust.kernels.prices import cheapest_columns
from fairclust.methods.price.tables import integer_tables, tables_near
from fairclust.metrics import contingency
from fairclust.sensitive import read_sensitive
from fairclust.solvers.criteria import exact_shares


@given(st.integers(0, 2**20), st.integers(2, 40), st.integers(1, 5), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_no_labels_with_the_same_table_are_cheaper(seed, n_samples, n_clusters, n_groups, ties):
    rng = np.random.default_rng(seed)
    n_groups = min(n_groups, n_samples)
    codes = np.r_[np.arange(n_groups), rng.integers(n_groups, size=n_samples - n_groups)]
    shape = n_samples, n_clusters
    costs = rng.integers(3, size=shape).astype(float) if ties else rng.random(shape)
    found = fair_assignment(costs, codes, tolerance=0.1)
    least = 0.0
    for j, counts in enumerate(contingency(found.labels, codes, n_clusters)):
        places = np.repeat(costs[codes == j], counts, axis=1)
        least += places[linear_sum_assignment(places)].sum()
    assert found.cost == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
@pytest.mark.parametrize("seed", range(6))
def test_no_labels_of_few_rows_are_cheaper_at_the_same_violation(seed, tolerance):
    codes = np.arange(10) % 2
    costs = np.random.default_rng(seed).lognormal(sigma=1.5, size=(10, 2))
    found = fair_assignment(costs, codes, tolerance=tolerance)
    every = np.array(list(product(range(2), repeat=10)))
    tables = np.stack([[(every[:, codes == j] == k).sum(axis=1) for k in range(2)] for j in range(2)])
    due = tables.sum(axis=0) / 2
    off = np.maximum((1 - tolerance) * due - tables, tables - due / (1 - tolerance)).max(axis=(0, 1))
    least = costs[np.arange(10), every].sum(axis=1)[off <= found.slack + 1e-9].min()
    assert found.cost == pytest.approx(least)


@pytest.mark.parametrize("seed", range(5))
def test_no_nearby_table_is_closer_to_the_shares_of_two_groups(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(30, 90, size=2)
    criterion = exact_shares(sizes / sizes.sum())
    soft = np.outer(sizes, rng.dirichlet(np.full(3, 5.0)))
    table = tables_near(soft, np.zeros(soft.shape), criterion)[-1]
    np.testing.assert_array_equal(table.sum(axis=1), sizes)
    # All tables with these row sums are tried whose cells are at most about four points from the fractional ones.
    windows = [np.arange(max(value - 3, 0), value + 5) for value in np.floor(soft[:, :2]).astype(int).ravel()]
    first = np.array(list(product(*windows))).reshape(-1, 2, 2)
    tables = np.concatenate([first, sizes[None, :, None] - first.sum(axis=2, keepdims=True)], axis=2)
    near = np.abs(tables[:, :, 2] - soft[:, 2]).max(axis=1) <= 4
    excess = np.abs(tables - criterion.high[:, None] * tables.sum(axis=1, keepdims=True)).max(axis=(1, 2))
    least = excess[near & (tables >= 0).all(axis=(1, 2))].min()
    assert criterion.excess(table.astype(float)).max() <= least + 1e-9


@pytest.mark.parametrize("seed", range(5))
def test_tables_of_one_column_and_bounded_sizes_are_whole(seed):
    rng = np.random.default_rng(seed)
    codes, n_clusters, bounds = (
        rng.choice(4, 3000, p=[0.4, 0.3, 0.2, 0.1]),
        30,
        {"size_min": 0.9, "size_max": 1.1},
    )
    sizes = np.bincount(codes).astype(float)
    criterion = criterion_of(n_clusters, read_sensitive(codes, 3000), sizes, tolerance=0.2, **bounds)
    soft = np.outer(sizes / 30, rng.uniform(0.95, 1.05, n_clusters)) * rng.uniform(
        0.95, 1.05, (4, n_clusters)
    )
    soft *= (sizes / soft.sum(axis=1))[:, None]
    # They save less than a cell that is farther from the soft table costs.
    prices = rng.normal(scale=0.005, size=soft.shape)
    (table,) = integer_tables(soft, prices, criterion, np.zeros(criterion.limits.shape))
    np.testing.assert_array_equal(table.sum(axis=1), sizes)
    assert criterion.excess(table).max() <= 1e-9
    assert np.abs(table - soft).max() < 2


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_columns_are_the_cheapest_with_their_sums(seed, n_groups):
    rng = np.random.default_rng(seed)
    n_columns, options = 3, np.array(list(product(range(-1, 2), repeat=n_groups)))
    costs = rng.random((n_columns, len(options)))
    costs[rng.random(costs.shape) < 0.5] = np.inf
    wanted = rng.integers(-1, 2, size=(n_columns, n_groups)).cumsum(axis=0)
    chosen, cost = cheapest_columns(costs, options, wanted, 6)
    least = min(
        sum(costs[k, o] for k, o in enumerate(columns))
        for columns in product(range(len(options)), repeat=n_columns)
        if (options[list(columns)].sum(axis=0) == wanted[-1]).all()
    )
    assert cost == pytest.approx(least)
    if np.isfinite(cost):
        np.testing.assert_array_equal(options[chosen].sum(axis=0), wanted[-1])
        assert sum(costs[k, o] for k, o in enumerate(chosen)) == pytest.approx(cost)
