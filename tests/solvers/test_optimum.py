"""The certified optimum against dynamic programming over all subsets."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairclust.base import NotSupported
from fairclust.metrics import balance, sse
from fairclust.solvers.optimum import optimal_clustering


def drawn(seed, n=8, n_groups=2):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=n - n_groups)])
    return rng.normal(size=(n, 2)), codes


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


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_without_bounds(seed, n_clusters):
    X, codes = drawn(seed)
    found = optimal_clustering(X, n_clusters)
    assert found.is_optimal
    assert found.cost == pytest.approx(slow_optimum(X, n_clusters, codes, lambda counts: True))
    assert found.cost == pytest.approx(sse(X, found.labels))
    assert found.lower_bound == pytest.approx(found.cost, rel=1e-4)
    assert found.lower_bound <= found.cost


@pytest.mark.parametrize("n_groups, min_balance", [(2, 0.5), (2, 1 / 3), (3, 0.25)])
def test_with_a_balance(n_groups, min_balance):
    X, codes = drawn(n_groups)[0], np.arange(8) % n_groups
    found = optimal_clustering(X, 3, codes, min_balance=min_balance)
    slow = slow_optimum(X, 3, codes, lambda counts: counts.min() >= min_balance * counts.max() - 1e-9)
    assert found.cost == pytest.approx(slow)
    assert balance(found.labels, sensitive_features=codes) >= min_balance - 1e-9


def test_with_shares():
    X, _ = drawn(5)
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    tolerance, wanted = 0.3, np.array([5, 3]) / 8
    found = optimal_clustering(X, 3, codes, tolerance=tolerance)

    def allowed(counts):
        shares = counts / counts.sum()
        return (shares >= (1 - tolerance) * wanted - 1e-9).all() and (
            shares <= wanted / (1 - tolerance) + 1e-9
        ).all()

    assert found.cost == pytest.approx(slow_optimum(X, 3, codes, allowed))


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
