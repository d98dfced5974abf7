"""Fairness metrics: values computed by hand, edge cases, properties."""

from math import inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.stats import wasserstein_distance

from fairclust import metrics as fm

FAIRNESS = [of for of in fm.METRICS.values() if of.needs == "table" and of.direction != "none"]
GAPS = fm.fairness_error, fm.delta, fm.share_deviation

# N_1 = 10, N_2 = 5, N = 15, n = (5, 10), mu = (2/3, 1/3).
TWO = [[2, 8], [3, 2]]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        # Cluster 1: 2/3. Cluster 2: 2/8.
        (fm.balance, 1 / 4),
        (fm.average_balance, (2 / 3 + 1 / 4) / 2),
        (fm.data_balance, 5 / 10),
        # P_1 = (2/5, 3/5), P_2 = (8/10, 2/10).
        (fm.fairness_error, log(5 / 3) + log(5 / 9) / 3 + 2 / 3 * log(5 / 6)),
        # |2/5 - 2/3| = |3/5 - 1/3| = 4/15; |8/10 - 2/3| = |2/10 - 1/3| = 2/15.
        (fm.share_deviation, 4 / 15),
        # Cluster 1: (2/5)/(2/3) = 3/5 and (1/3)/(3/5) = 5/9. Cluster 2: (2/3)/(4/5) = 5/6 and (1/5)/(1/3) =
        # 3/5.
        (fm.fairness_ratio, 5 / 9),
    ],
)
def test_by_hand(function, expected):
    assert_allclose(function(TWO), expected, rtol=1e-14)


def test_means_of_a_column_in_any_form():
    ages, labels = np.array([1.0, 2.0, 3.0, 6.0]), [0, 0, 2, 2]
    assert fm.mean_deviation(labels, sensitive_features={"age": ages}) == 1.5 / ages.std()
    for wrong, numbers in ([0, 0, -1, 2], ages), (labels, np.ma.masked_equal(ages, 6)), (labels, ages[:3]):
        with pytest.raises(ValueError, match=r"labels|sensitive_features"):
            fm.mean_deviation(wrong, sensitive_features=numbers)


def test_a_cluster_that_lacks_a_group():
    table = [[5, 5], [10, 0]]
    assert fm.balance(table) == 0.0
    assert fm.average_balance(table) == 0.25  # (5/10 + 0) / 2
    assert fm.fairness_ratio(table) == 0.0
    assert fm.fairness_error(table) == inf
    assert fm.delta(table) == 0.5  # |5/10 - 10/10|


def test_an_empty_cluster_is_0_for_ratios_and_nothing_for_sums():
    full, with_empty = [[2, 8], [3, 2]], [[2, 0, 8], [3, 0, 2]]
    assert fm.balance(with_empty) == 0.0
    assert fm.fairness_ratio(with_empty) == 0.0
    assert_allclose(fm.average_balance(with_empty), (2 / 3 + 0 + 1 / 4) / 3, rtol=1e-14)
    for function in (*GAPS, fm.awd, fm.data_balance):
        assert function(with_empty) == function(full)
    assert_allclose(fm.delta_mean(with_empty), (0.4 + 0 + 0.4) / 3, rtol=1e-14)


@pytest.mark.parametrize("metric", FAIRNESS, ids=lambda metric: metric.name)
def test_a_group_without_points_is_left_out(metric):
    assert metric.function([[2, 8], [0, 0], [3, 2]]) == metric.function(TWO)


@pytest.mark.parametrize("metric", FAIRNESS, ids=lambda metric: metric.name)
def test_one_group_is_always_fair(metric):
    assert metric.function([[2, 8, 1]]) == (1.0 if metric.direction == "higher" else 0.0)


@pytest.mark.parametrize("metric", FAIRNESS, ids=lambda metric: metric.name)
@pytest.mark.parametrize(
    "table", [[[0]], [[1, -1]], [[1, np.nan]], [1, 2], [[[1]]], np.ma.array([[1]], mask=1)]
)
def test_malformed_table_raises(metric, table):
    with pytest.raises(ValueError, match="table"):
        metric.function(table)


TABLES = st.tuples(st.integers(1, 5), st.integers(1, 6)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 40)).filter(lambda table: table.any())
)


PARTS = st.lists(st.integers(1, 90), min_size=1, max_size=5)


@given(PARTS, PARTS)
def test_a_proportional_table_is_exactly_fair(group_parts, cluster_parts):
    """With n_jk = a_j b_k every cluster has the shares of the data."""
    table = np.outer(group_parts, cluster_parts)
    best = min(group_parts) / max(group_parts)
    assert fm.balance(table) == fm.data_balance(table) == best
    assert_allclose(fm.average_balance(table), best, rtol=1e-15)
    assert fm.fairness_ratio(table) == 1.0
    for function in (*GAPS, fm.delta_mean):
        assert function(table) == 0.0
    assert fm.awd(table) <= 1e-15


@given(TABLES)
def test_awd_is_the_wasserstein_distance_of_the_share_sets(table):
    table = table[table.sum(axis=1) > 0]
    shares = table.sum(axis=1) / table.sum()
    expected = sum(n.sum() * wasserstein_distance(n / n.sum(), shares) for n in table.T if n.any())
    assert_allclose(fm.awd(table), expected / table.sum(), rtol=1e-12, atol=1e-14)


@given(TABLES)
def test_gaps_against_loops(table):
    """The formulas are computed with explicit loops over clusters and pairs."""
    table = table[table.sum(axis=1) > 0]
    J, K = table.shape
    spread = [[table[j, k] / table[j].sum() for k in range(K)] for j in range(J)]
    pairs = [(s, t) for s in range(J) for t in range(s)]
    means = [
        sum(abs(spread[s][k] - spread[t][k]) for s, t in pairs) / len(pairs) if pairs else 0.0
        for k in range(K)
    ]
    assert_allclose(fm.delta(table), max(means), rtol=1e-12, atol=1e-15)
    assert_allclose(fm.delta_mean(table), sum(means) / K, rtol=1e-12, atol=1e-15)
