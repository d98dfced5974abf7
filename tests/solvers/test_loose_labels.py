"""Labels that can be off the bounds by a point, compared with the cheapest of all such labels."""

from itertools import product

import numpy as np
import pytest

from fairclust.methods.price.criteria import make_criterion
from fairclust.methods.price.loose_labels import move_dearest

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table_of(labels, codes, n_clusters):
    return np.array([np.bincount(labels[codes == j], minlength=n_clusters) for j in range(2)], dtype=float)


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_moves_reach_nearly_the_cheapest_labels(tolerance):
    excess_of_best = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = np.arange(8) % 2
        costs = rng.lognormal(sigma=2, size=(8, 2))
        criterion = make_criterion(np.arange(2), np.array([4, 4]), tolerance=tolerance)
        start = np.repeat([0, 1], 4)
        labels, cost, counts = move_dearest(costs, codes, start, table_of(start, codes, 2), criterion)
        np.testing.assert_array_equal(counts, table_of(labels, codes, 2))
        assert cost == pytest.approx(sum(costs[p, labels[p]] for p in range(8)))
        shares = 0.5 * counts.sum(axis=0)
        off = np.maximum(counts - shares / (1 - tolerance), (1 - tolerance) * shares - counts)
        assert off.max() <= 1 + 1e-6
        allowed = [
            every
            for every in map(np.array, product(range(2), repeat=8))
            if criterion.excess(table_of(every, codes, 2)).max() <= 1
        ]
        least = min(costs[np.arange(8), every].sum() for every in allowed)
        assert least - 1e-9 <= cost <= costs[np.arange(8), start].sum() + 1e-9
        excess_of_best.append(cost / least - 1)
    assert np.median(excess_of_best) < 1e-9
