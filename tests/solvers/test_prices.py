import numpy as np
import pytest
from problems import from_blobs, from_matrix, optimum

from fairclust.solvers.criteria import exact_shares, gap_bound, ratio_bound
from fairclust.solvers.prices import Prices, certified_gap, dual_prices, step_of_rows

LEVELS = (0.2, 0.04, 0.008, 0.0016, 0.0003)


def test_prices_scale_with_the_potentials():
    problem = from_blobs(n_groups=3)
    criterion = exact_shares(problem.shares)
    small = from_matrix(problem.a * 1e-5, problem.codes)
    one, other = (dual_prices(p.potentials, criterion) for p in (problem, small))
    assert one.n_passes == other.n_passes
    np.testing.assert_allclose(other.prices * 1e5, one.prices, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "criterion",
    [exact_shares(np.full(3, 1 / 3)), ratio_bound(0.9, 3), gap_bound(0.01, np.full(3, 2.0))],
    ids=["shares", "balance", "gap"],
)
def test_prices_survive_saturated_softmax_rows(criterion):
    # No point is near a boundary, so there is no curvature at the temperatures that are tried.
    a = np.array([[0.0, 1e4], [0.0, 1e4], [1e4, 0.0], [0.0, 1.0], [1e4, 0.0], [0.0, 1e4]])
    problem = from_matrix(a, np.array([0, 1, 0, 1, 2, 2]))
    found = dual_prices(problem.potentials, criterion, levels=LEVELS, max_steps=30)
    assert np.isfinite(found.prices).all()
    # D(y) from its definition.
    reduced = (problem.a + found.prices[problem.codes]).min(axis=1).sum()
    bound = reduced - (criterion.limits * found.multipliers).sum()
    np.testing.assert_allclose(criterion.helpers.T @ found.multipliers, 0, atol=1e-12)
    assert bound <= optimum(a, problem.codes, criterion) * (1 + 1e-9)


def test_there_is_no_newton_step_where_there_is_no_curvature():
    slack = np.array([[1.0], [-1.0]])
    flat = np.zeros((1, 1, 2)), slack, np.ones((2, 1)), 0.0
    assert step_of_rows(np.eye(2), np.empty((2, 0)), *flat, np.zeros(2, bool)) is None


@pytest.mark.parametrize(("cost", "gap"), [(3.0, np.inf), (-1.0, 8 / 9), (-9.0, 0.0), (-10.0, 0.0)])
def test_no_gap_is_certain_where_the_optimum_may_cost_nothing(cost, gap):
    # The table is off its bound by one point in each cluster, which can save 10.
    criterion, table = exact_shares(np.full(2, 0.5)), np.diag([2.0, 2.0])
    solved = Prices(table, np.array([[5.0, -5.0]]), table, 0.0, 0.0, 0.0, 1, True)
    assert certified_gap(criterion, solved, cost, 1.0, table) == pytest.approx(gap)
