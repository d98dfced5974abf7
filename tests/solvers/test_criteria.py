import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import criterion_of
from scipy.optimize import linprog

from fairclust.group_encoding import read_sensitive
from fairclust.metrics import balance, delta, fairness_ratio
from fairclust.solvers.criteria import (
    gap_bound,
    ratio_bound,
    share_bounds,
)


def met(criterion, table):
    """Tell whether there are helper variables with which every cluster satisfies the rows of the criterion."""
    for column in table.T:
        left = criterion.rows @ column
        if criterion.shares is not None:
            if np.abs(left - criterion.limits[:, 0]).max(initial=0) > 1e-9:
                return False
        else:
            n = criterion.helpers.shape[1]
            done = linprog(
                np.zeros(n + 1),
                A_ub=np.c_[criterion.helpers, np.zeros(len(left))],
                b_ub=criterion.limits[:, 0] - left + 1e-9,
                bounds=[(None, None)] * (n + 1),
            )
            if done.status != 0:
                return False
    return True


@given(st.integers(2, 5), st.integers(0, 2**20), st.floats(0.05, 0.95))
@settings(max_examples=60)
def test_rows_agree_with_the_metrics(n_groups, seed, level):
    rng = np.random.default_rng(seed)
    table = rng.integers(1, 40, size=(n_groups, 3)).astype(float)
    sizes = table.sum(axis=1)
    shares = sizes / sizes.sum()
    for criterion, fair in (
        (share_bounds(level * shares, shares / level), fairness_ratio(table) >= level),
        (ratio_bound(level, n_groups), balance(table) >= level),
        (gap_bound(level / 3, sizes), delta(table) <= level / 3),
    ):
        assert met(criterion, table) == fair
        assert (criterion.excess(table).max() <= 1e-9) == fair


def test_gap_excess_is_in_points():
    # The cluster has 30 of 100 and 10 of 50 points, a gap of 0.1, of which 0.04 is allowed. In points of the smaller
    # group the excess is 0.06 * 50 = 3.
    table = np.array([[30.0, 70.0], [10.0, 40.0]])
    np.testing.assert_allclose(gap_bound(0.04, np.array([100.0, 50.0])).excess(table), [[0, 0], [3, 3]])


def test_bounds_that_can_just_be_met():
    sensitive, sizes = read_sensitive(["a", "b", "b", "b"], 4), np.array([10, 30])
    criterion_of(2, sensitive, sizes, min_balance=1 / 3)
    criterion_of(2, sensitive, sizes, target=[0.5, 0.5], tolerance=0.5)
    criterion_of(2, sensitive, sizes, max_gap=0)
    assert criterion_of(2, sensitive, sizes).shares is not None
