"""The certified optimum against dynamic programming over all subsets."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairclust.base import NotSupported
from fairclust.metrics import sse
from fairclust.solvers.optimum import optimal_clustering


def slow_optimum(X, n_clusters, codes, allowed):
    """Find the least cost of every set of points in at most `n_clusters` clusters that are all within the bounds."""
    n = len(X)
    cost = np.full(2**n, np.inf)
    for mask in range(1, 2**n):
        inside = [p for p in range(n) if mask >> p & 1]
        if allowed(np.bincount(codes[inside], minlength=codes.max() + 1)):
            cost[mask] = ((X[inside] - X[inside].mean(axis=0)) ** 2).sum()
    best = cost.copy()
    best[0] = 0
    for _ in range(n_clusters - 1):
        old = best.copy()
        for mask in range(1, 2**n):
            part = mask
            while part:
                best[mask] = min(best[mask], cost[part] + old[mask ^ part])
                part = (part - 1) & mask
    return best[-1]


EQUAL, UNEQUAL = np.arange(8) % 2, np.repeat([0, 1], [5, 3])


@pytest.mark.parametrize(
    "n_clusters, codes, bounds",
    [
        *((n_clusters, EQUAL, {}) for n_clusters in (1, 2, 3)),
        *((3, EQUAL, {"min_balance": low}) for low in (1 / 2, 1 / 3)),
        (3, np.arange(8) % 3, {"min_balance": 1 / 4}),
        (3, UNEQUAL, {"tolerance": 0.3}),
    ],
)
def test_agrees_with_the_search_through_all_subsets(n_clusters, codes, bounds):
    # The groups are apart, so the bounds change the best clusters.
    X, shares = np.random.default_rng(7).normal(size=(8, 2)) + 2 * codes[:, None], np.bincount(codes) / 8
    low, least = bounds.get("min_balance", 0), 1 - bounds.get("tolerance", 1 - 1e-9)

    def allowed(counts):
        own = counts / counts.sum() / shares
        within = least - 1e-9 <= own.min() and own.max() <= 1 / least + 1e-9
        return within and counts.min() >= low * counts.max() - 1e-9

    found = optimal_clustering(X, n_clusters, codes if bounds else None, **bounds)
    assert found.is_optimal
    assert found.cost == pytest.approx(slow_optimum(X, n_clusters, codes, allowed))
    assert found.cost == pytest.approx(sse(X, found.labels))
    assert found.lower_bound <= found.cost == pytest.approx(found.lower_bound, rel=1e-4)


def test_by_hand():
    found = optimal_clustering([[0], [1], [8], [9]], 2, ["a", "a", "b", "b"], min_balance=1)
    assert found.cost == 64.0
    assert_array_equal(found.labels, [0, 1, 0, 1])
    assert optimal_clustering([[3.0, 4.0]], 2).cost == 0.0
    assert optimal_clustering(np.ones((4, 1)), 2).cost == 0.0


@pytest.mark.parametrize(
    "arguments, options, error, message",
    [
        ((np.zeros((31, 1)), 2), {}, NotSupported, "at most 30 rows, X has 31"),
        (([[np.nan]], 1), {}, ValueError, "finite"),
        (([[1.0]], 0), {}, ValueError, "n_clusters must be at least 1"),
        (([[1.0]], 1), {"min_balance": 0.5}, ValueError, "sensitive_features is missing"),
        (([[1.0]], 1, ["a"]), {"min_balance": 2}, ValueError, "min_balance must be in"),
        (([[1.0]], 1, ["a"]), {"tolerance": 1}, ValueError, "tolerance must be in"),
    ],
)
def test_bad_input(arguments, options, error, message):
    with pytest.raises(error, match=message):
        optimal_clustering(*arguments, **options)


def test_bounds_that_nothing_keeps():
    with pytest.raises(RuntimeError, match="found no clustering"):
        optimal_clustering([[0.0], [1.0], [2.0]], 2, [0, 0, 1], min_balance=1)
