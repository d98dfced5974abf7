from itertools import product

import numpy as np
import pytest

from fairclust.kernels.prices import cheapest_columns


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
