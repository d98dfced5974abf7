"""Labels that can be off the bounds by a point, compared with the cheapest of all such labels."""

from itertools import product

import numpy as np
import pytest

from fairclust import PriceFairKMeans, fair_assignment
from fairclust.methods.price.criteria import make_criterion
from fairclust.methods.price.rounding import move_dearest
from twins import counts_of


def table_of(labels, codes):
    return counts_of(labels, codes, 2).astype(float)


@pytest.mark.parametrize("tolerance", [0.0, 0.2])
def test_moves_reach_nearly_the_cheapest_labels(tolerance):
    excess_of_best = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        codes = np.arange(8) % 2
        costs = rng.lognormal(sigma=2, size=(8, 2))
        criterion = make_criterion(np.arange(2), np.array([4, 4]), tolerance=tolerance)
        start = np.repeat([0, 1], 4)
        labels, cost, counts = move_dearest(costs, codes, start, table_of(start, codes), criterion)
        np.testing.assert_array_equal(counts, table_of(labels, codes))
        assert cost == pytest.approx(sum(costs[p, labels[p]] for p in range(8)))
        shares = 0.5 * counts.sum(axis=0)
        off = np.maximum(counts - shares / (1 - tolerance), (1 - tolerance) * shares - counts)
        assert off.max() <= 1 + 1e-6
        allowed = [
            every
            for every in map(np.array, product(range(2), repeat=8))
            if criterion.excess(table_of(every, codes)).max() <= 1
        ]
        least = min(costs[np.arange(8), every].sum() for every in allowed)
        assert least - 1e-9 <= cost <= costs[np.arange(8), start].sum() + 1e-9
        excess_of_best.append(cost / least - 1)
    assert np.median(excess_of_best) < 1e-9


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


def test_the_certificate_is_that_of_the_best_assignment_to_the_centres():
    rng = np.random.default_rng(4)
    X, codes = rng.lognormal(sigma=2.5, size=(1000, 3)), rng.integers(4, size=1000)
    model = PriceFairKMeans(4, tolerance=0.05, n_init=1, precision="double", random_state=0)
    with pytest.warns(UserWarning, match="off the bounds by up to"):
        model.fit(X, sensitive_features=codes)
    distances = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    best = fair_assignment(distances, codes, tolerance=0.05)
    assert model.lower_bound_ == pytest.approx(best.lower_bound, rel=1e-5)
