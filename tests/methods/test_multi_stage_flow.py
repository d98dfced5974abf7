"""MS-FlowFC: its flows against a linear program, its steps against a plain transcription."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import linprog

from fairclust.methods import KMeans, MultiStageFlowKMeans
from fairclust.methods.programs.bounded_sizes import assign_within_sizes
from fairclust.methods.programs.multi_stage_flow import _size_bounds
from fairclust.metrics import balance, data_balance, sse


def program(distances, lower, upper):
    n, k = distances.shape
    columns = np.tile(np.eye(k), n)
    return linprog(
        distances.ravel(),
        A_ub=np.vstack([columns, -columns]),
        b_ub=np.r_[upper, -np.asarray(lower)],
        A_eq=np.kron(np.eye(n), np.ones(k)),
        b_eq=np.ones(n),
    ).fun


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
    assert distances[np.arange(n), labels].sum() == pytest.approx(program(distances, lower, upper))


def test_sizes_that_leave_room_are_those_of_the_nearest():
    distances = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    assert_array_equal(assign_within_sizes(distances, [0, 0], [3, 3]), [0, 0, 1])
    assert_array_equal(np.sort(assign_within_sizes(distances, [0, 2], [3, 3])), [0, 1, 1])
    for lower, upper in ([2, 2], [3, 3]), ([0, 0], [1, 1]), ([2, 0], [1, 3]):
        with pytest.raises(ValueError, match="3 points cannot form clusters"):
            assign_within_sizes(distances, lower, upper)


def test_size_bounds_by_hand():
    # The lower bounds are 4/5 of the sizes 10 and 5, and the upper bounds 5/4 of them.
    lower, upper = _size_bounds(np.array([[10, 5]]), 12, 0.8)
    assert_array_equal(lower, [8, 4])
    assert_array_equal(upper, [12, 6])
    # The larger of the two groups decides the lower bound, and the smaller one the upper bound.
    lower, upper = _size_bounds(np.array([[10, 5], [9, 6]]), 14, 0.8)
    assert_array_equal(lower, [8, 5])
    assert_array_equal(upper, [11, 6])
    # There are two points too few for the lower bounds, so these fall where the best balance is left: 7/10 before 3/5.
    lower, _ = _size_bounds(np.array([[10, 5]]), 10, 0.8)
    assert_array_equal(lower, [6, 4])
    # There are two points too many for the upper bounds. They are raised where the balance stays highest: 10/13 before
    # 5/7, then the first of 10/14 and 5/7, which are equal.
    _, upper = _size_bounds(np.array([[10, 5]]), 20, 0.8)
    assert upper.sum() == 20
    assert_array_equal(upper, [14, 6])


def test_one_step_by_hand():
    """Group a has three points at 0 and three at 10, and group b has two points at 0, so one b must move to 10."""
    X = np.array([0.0, 0, 0, 10, 10, 10, 0, 1])[:, None]
    groups = np.array(list("aaaaaabb"))
    model = MultiStageFlowKMeans(2, init=[[0.0], [10.0]], tolerance=0.0).fit(X, sensitive_features=groups)
    assert model.target_balance_ == pytest.approx(1 / 3)
    assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 1, 0, 1])
    assert model.cost_ == pytest.approx(sse(X, model.labels_))


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
