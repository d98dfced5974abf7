"""MS-FlowFC: its flows against a linear program, its steps against a plain transcription."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from fairclust.methods import KMeans, MultiStageFlowKMeans
from fairclust.methods.programs.multi_stage_flow import _size_bounds, assign_within_sizes
from fairclust.metrics import balance, data_balance, sse
from twins import cheapest_shares


@pytest.mark.parametrize("seed", range(20))
def test_assignment_is_the_cheapest_within_the_sizes(seed):
    rng = np.random.default_rng(seed)
    n, k = rng.integers(5, 40), rng.integers(1, 5)
    distances = rng.random((n, k)) + rng.random(k)
    even = rng.multinomial(n, np.ones(k) / k)
    lower, upper = np.maximum(even - rng.integers(3, size=k), 0), even + rng.integers(3, size=k)
    labels = assign_within_sizes(distances, lower, upper)
    sizes = np.bincount(labels, minlength=k)
    assert (lower <= sizes).all() and (sizes <= upper).all()
    best = cheapest_shares(distances, np.stack([np.ones(n), -np.ones(n)]), np.stack([upper, -lower]))
    assert distances[np.arange(n), labels].sum() == pytest.approx(best)


@pytest.mark.parametrize(
    "table, n_points, lower, upper",
    [
        # The lower bounds are 4/5 of the sizes 10 and 5, and the upper bounds 5/4 of them.
        ([[10, 5]], 12, [8, 4], [12, 6]),
        # The larger of the two groups decides the lower bound, and the smaller one the upper bound.
        ([[10, 5], [9, 6]], 14, [8, 5], [11, 6]),
        # There are two points too few. The lower bounds fall where the best balance is left: 7/10 before 3/5.
        ([[10, 5]], 10, [6, 4], [12, 6]),
        # There are two points too many. The upper bounds are raised where the balance stays highest: 10/13 before 5/7,
        # then the first of 10/14 and 5/7, which are equal.
        ([[10, 5]], 20, [8, 4], [14, 6]),
    ],
)
def test_size_bounds_by_hand(table, n_points, lower, upper):
    assert_array_equal(_size_bounds(np.array(table), n_points, 0.8), [lower, upper])


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_keeps_the_balance_and_costs_more(grouped_blobs, n_groups):
    X, codes = grouped_blobs(n_groups=n_groups)
    plain = KMeans(4, n_init=10, random_state=0).fit(X, sensitive_features=codes)
    costs = []
    for tolerance in (0.9, 0.1, 0.0):
        model = MultiStageFlowKMeans(4, tolerance=tolerance, n_init=5, random_state=0)
        labels = model.fit_predict(X, sensitive_features=codes)
        target = (1 - tolerance) * data_balance(labels, sensitive_features=codes)
        assert model.target_balance_ == pytest.approx(target)
        reached = balance(labels, sensitive_features=codes)
        # Counts are whole points, so a small count can miss its target by up to a tenth.
        assert reached >= target * (1 if tolerance == 0.9 else 0.9)
        assert model.cost_ == pytest.approx(sse(X, labels))
        costs.append(model.cost_)
        objectives = [step["objective"] for step in model.history_[:-1]]
        assert objectives == sorted(objectives, reverse=True)
    assert costs[0] >= plain.inertia_ * 0.999
    if n_groups > 1:
        assert costs[0] < costs[2]


def test_a_balance_that_more_than_whole_points_miss_is_announced(grouped_blobs):
    # In both clusters together, the larger of two groups has 1275 points. The third group would need 574.
    X = np.repeat([0.0, 10, 10, 0], [500, 500, 1000, 500])[:, None]
    groups = np.repeat(["a", "b", "c"], [1000, 1000, 500])
    model = MultiStageFlowKMeans(2, random_state=0)
    with pytest.warns(
        ConvergenceWarning, match=r"balance is 0\.392, below .*=0\.45, .* c short of 74 points"
    ):
        labels = model.fit_predict(X, sensitive_features=groups)
    assert balance(labels, sensitive_features=groups) == pytest.approx(0.392)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        for seed in range(5):
            X, codes = grouped_blobs(n_samples=150, seed=seed)
            MultiStageFlowKMeans(10, tolerance=0, random_state=seed).fit(X, sensitive_features=codes)
