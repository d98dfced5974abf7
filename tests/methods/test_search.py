"""The search for good centres, in data where single starts end in local optima."""

import numpy as np
import pytest

from fairclust.methods import KMeans, PriceFairKMeans
from fairclust.metrics import sse

SIDE = 6


@pytest.fixture(scope="module")
def grid():
    """Clusters of 60 points that touch, each with both groups in equal parts, and the cost of these clusters."""
    rng = np.random.default_rng(5)
    centers = 10.0 * np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE)), axis=-1).reshape(-1, 2)
    labels = np.repeat(np.arange(SIDE**2), 60)
    X = centers[labels] + 2 * rng.normal(size=(len(labels), 2))
    return X, np.arange(len(X)) % 2, sse(X, labels)


def fit(cls, grid, **params):
    X, groups, _ = grid
    return cls(SIDE**2, **{"n_init": 2, "random_state": 0} | params).fit(X, sensitive_features=groups)


@pytest.mark.parametrize("cls, cost, part", [(KMeans, "inertia_", 0.966), (PriceFairKMeans, "cost_", 0.982)])
def test_the_search_finds_clusters_that_starts_miss(grid, cls, cost, part):
    """All seeds end at the best clusters known, which without the search some miss by more than 5 %."""
    costs = {
        search: [getattr(fit(cls, grid, search=search, random_state=seed), cost) for seed in range(4)]
        for search in (True, False)
    }
    assert max(costs[True]) <= part * grid[2]
    assert max(costs[False]) > 1.05 * max(costs[True])


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("tolerance", [0.0, 0.1])
def test_with_many_clusters_the_search_ends_below_single_starts_and_within_its_work(tolerance):
    """Exact shares once ended here with a warning, because inverses counted for too much work."""
    rng = np.random.default_rng(0)
    z = rng.integers(60, size=12_000)
    X = 2 * rng.normal(size=(60, 8))[z] + rng.normal(size=(12_000, 8))
    groups = rng.random(12_000) < 0.3 + 0.3 * (z % 2)
    fits = [
        PriceFairKMeans(200, tolerance=tolerance, search=search, random_state=0).fit(
            X, sensitive_features=groups
        )
        for search in (True, False)
    ]
    assert fits[0].cost_ < 0.993 * fits[1].cost_


def test_one_start_and_given_centres_are_not_searched_from(grid):
    for params in ({"n_init": 1}, {"init": grid[0][: SIDE**2]}):
        with_search, without = (fit(PriceFairKMeans, grid, search=value, **params) for value in (True, False))
        np.testing.assert_array_equal(with_search.labels_, without.labels_)
        assert with_search.cost_ == without.cost_


@pytest.mark.parametrize("least, most", [(60, 60), (1.0, 1.0), ([90, *[30] * (SIDE**2 - 1)], None)])
def test_sizes_hold_after_the_search(grid, least, most):
    """The search also has runs with more clusters, for which the sizes cannot be the user's."""
    model = fit(PriceFairKMeans, grid, tolerance=0.2, size_min=least, size_max=most)
    sizes = np.bincount(model.labels_)
    if most:
        assert (sizes == 60).all()
        assert model.cost_ <= grid[2]
    else:
        assert (sizes >= least).all()


def test_equal_rows_change_neither_bounds_nor_cost():
    """The search takes steps on one point for all equal rows, and on all rows if they differ by a little."""
    rng = np.random.default_rng(0)
    X = rng.integers(8, size=(4000, 2)).astype(float)
    groups = (rng.random(4000) < 0.2 + 0.05 * X[:, 0]).astype(int)
    for bounds in ({"tolerance": 0.0}, {"min_balance": 0.4, "size_min": 300, "size_max": 700}):
        costs = []
        for noise in (1e-6, 0.0):
            rows = X + noise * rng.random(X.shape)
            model = PriceFairKMeans(8, random_state=0, **bounds).fit(rows, sensitive_features=groups)
            assert model.violation_ < 1 and model.converged_
            costs.append(model.cost_)
        assert costs[1] <= 1.005 * costs[0]
