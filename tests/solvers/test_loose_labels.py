"""Labels that can be off the bounds by a point, compared with the cheapest of all such labels."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fairclust import PriceFairKMeans, fair_assignment
from twins import counts_of


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
