"""Labels of whole rows against the cheapest ones, by enumeration and by matching."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from fairclust import fair_assignment
from fairclust.methods.price.tables import integer_tables
from fairclust.metrics import contingency
from fairclust.solvers.criteria import share_bounds


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


def test_a_table_of_millions_is_brought_within_its_bounds():
    """The error of the prices is a fraction of all points, which can be more points than rounding first moves."""
    shares = np.array([0.5, 0.3, 0.2])
    criterion = share_bounds(0.8 * shares, shares / 0.9)
    soft = np.outer(shares, [3e5, 2e5, 4e5, 1e5])
    # With 37,500 more points the first group is at its upper bound in the first cluster.
    soft[0, [0, 2]] += [37_600, -37_600]
    assert criterion.excess(soft).max() > 30
    tables = integer_tables(soft, np.zeros(soft.shape), criterion, np.zeros((len(criterion.rows), 4)))
    found = min(tables, key=lambda table: criterion.excess(table).max())
    assert criterion.excess(found.astype(float)).max() == 0
    np.testing.assert_array_equal(found.sum(axis=1), soft.sum(axis=1))
    assert np.abs(found - soft).max() < 100
