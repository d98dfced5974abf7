import numpy as np
import pytest
from problems import curved
from scipy.optimize import nnls

from fairclust.solvers.criteria import combine, exact_shares, gap_bound, ratio_bound, share_bounds
from fairclust.solvers.newton import (
    RowSystem,
    interior_step,
    step_of_rows,
    step_of_rows_that_bind,
)

A, B, K = 4, 3, 3
N_GROUPS = A * B
OF_A = (np.arange(N_GROUPS) // B == np.arange(A)[:, None]).astype(float)
OF_B = (np.arange(N_GROUPS) % B == np.arange(B)[:, None]).astype(float)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("sparse", [False, True])
def test_steps_of_bounds_on_shares_against_nnls(sparse, scale, seed):
    n_groups, n_clusters, damping = 5, 4, 0.3
    blocks, mass, shares = curved(n_groups, n_clusters, seed)
    criterion = share_bounds(0.8 * shares, shares / 0.8)
    rng = np.random.default_rng(seed)
    y = np.maximum(rng.normal(size=(2 * n_groups, n_clusters)), 0)
    slack = criterion.rows @ mass
    hessian = np.einsum("rj,sj,jkl->rksl", criterion.rows, criterion.rows, blocks).reshape(y.size, y.size)
    hessian += damping * np.eye(y.size)
    root = np.linalg.cholesky(hessian)
    best = nnls(root.T, np.linalg.solve(root, slack.ravel() + hessian @ y.ravel()))[0]
    # If the curvature is `scale` times as large, the multipliers are `scale` times as small.
    scaled = scale * blocks, slack, y / scale, scale * damping
    found = step_of_rows_that_bind(criterion.rows, *scaled, criterion.exact, sparse=sparse)
    np.testing.assert_allclose(scale * found.ravel(), best, atol=1e-8)


def test_pivoting_gives_up_where_there_is_no_curvature():
    slack = np.array([[1.0], [-1.0]])
    flat = np.zeros((2, 1, 1)), slack, np.ones((2, 1)), 0.0
    assert step_of_rows_that_bind(np.eye(2), *flat, np.zeros(2, bool)) is None


THIRDS = share_bounds(np.full(B, 0.3), np.full(B, 0.4)), OF_B
QUARTERS = share_bounds(np.full(A, 0.2), np.full(A, 0.3)), OF_A
# The criteria of the columns, and the least and the largest size of a cluster as multiples of the mean.
KINDS = {
    "shares": ([THIRDS, QUARTERS], 0, 9),
    "and sizes": ([THIRDS, QUARTERS], 0.9, 1.1),
    "sizes": ([], 0.9, 1.1),
    "balance": ([(ratio_bound(0.8, A), OF_A), THIRDS], 0, 1.1),
    "gap": ([(gap_bound(0.1, np.full(A, 30.0)), OF_A), THIRDS], 0, 1.1),
    "exact": ([(exact_shares(np.full(B, 1 / B), complete=True), OF_B), QUARTERS], 0, 9),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("step", [step_of_rows, interior_step])
def test_step_meets_the_conditions_of_the_optimum(kind, step):
    (columns, least, most), unit = KINDS[kind], np.full(K, N_GROUPS * 10 / K)
    criterion = combine(columns, np.full(N_GROUPS, 10.0), least * unit, most * unit)
    blocks, mass, _ = curved(N_GROUPS, K, 0)
    rng = np.random.default_rng(1)
    mass = mass * rng.uniform(0.5, 1.5, mass.shape)
    system = RowSystem(criterion.shape, blocks / mass.sum())
    slack = (criterion.rows @ mass - criterion.limits) / mass.sum()
    start = np.zeros(slack.shape)
    damping = 1e-3
    y = step(system, slack, start, damping, criterion.exact)
    left = slack - system.apply(y) - damping * y
    free = criterion.exact[:, None] | (y > 0)
    # The gradient that is left must be of the form B v, where B are the helper columns and v any numbers.
    helpers = criterion.helpers
    for k in range(K):
        if helpers.size:
            v = np.linalg.lstsq(helpers[free[:, k]], left[free[:, k], k], rcond=None)[0]
            left[:, k] -= helpers @ v
    np.testing.assert_allclose(left[free], 0, atol=1e-7)
    assert left[~free].max(initial=0) <= 1e-7
    assert y[~criterion.exact].min(initial=0) >= 0
    np.testing.assert_allclose(helpers.T @ y, 0, atol=1e-7)
