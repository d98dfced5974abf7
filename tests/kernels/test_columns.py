from itertools import product

import numpy as np
import pytest

from fairclust.kernels.columns import cheapest_columns


@pytest.mark.parametrize("seed", range(10))
def test_columns_are_the_cheapest_with_their_sums(seed):
    rng = np.random.default_rng(seed)
    n_columns, n_options = 3, 4
    costs = rng.random((n_columns, n_options, n_options))
    costs[rng.random(costs.shape) < 0.5] = np.inf
    wanted = rng.integers(n_options, size=(n_columns, 2)).cumsum(axis=0)
    entries, cost = cheapest_columns(costs, wanted, 2 * n_options * n_columns)
    pairs = list(product(range(n_options), repeat=2))
    least = min(
        sum(costs[k][pair] for k, pair in enumerate(chosen))
        for chosen in product(pairs, repeat=n_columns)
        if (np.sum(chosen, axis=0) == wanted[-1]).all()
    )
    assert cost == pytest.approx(least)
    if np.isfinite(cost):
        np.testing.assert_array_equal(entries.sum(axis=0), wanted[-1])
        assert sum(costs[k, i, j] for k, (i, j) in enumerate(entries)) == pytest.approx(cost)


def test_sums_on_the_way_stay_near_the_wanted_ones():
    costs = np.full((2, 3, 3), np.inf)
    costs[0, 2, 0] = costs[1, 0, 2] = 1.0
    wanted = np.array([[0, 2], [2, 2]])
    assert np.isinf(cheapest_columns(costs, wanted, 1)[1])
    assert cheapest_columns(costs, wanted, 2)[1] == 2.0
