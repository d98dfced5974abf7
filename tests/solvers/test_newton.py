import numpy as np
import pytest
from problems import curved
from scipy.optimize import linprog, nnls

from fairclust.solvers.criteria import combine, exact_shares, gap_bound, ratio_bound, share_bounds
from fairclust.solvers.prices import step_of_rows

A, B, K = 4, 3, 3
N_GROUPS = A * B
OF_A = (np.arange(N_GROUPS) // B == np.arange(A)[:, None]).astype(float)
OF_B = (np.arange(N_GROUPS) % B == np.arange(B)[:, None]).astype(float)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_steps_of_bounds_on_shares_against_nnls(scale, seed):
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
    new = step_of_rows(criterion.rows, criterion.helpers, *scaled, criterion.exact)
    np.testing.assert_allclose(scale * new.ravel(), best, atol=1e-8)


def test_pivoting_gives_up_where_there_is_no_curvature():
    slack = np.array([[1.0], [-1.0]])
    flat = np.zeros((2, 1, 1)), slack, np.ones((2, 1)), 0.0
    assert step_of_rows(np.eye(2), np.empty((2, 0)), *flat, np.zeros(2, bool)) is None


THIRDS = share_bounds(np.full(B, 0.3), np.full(B, 0.4)), OF_B
QUARTERS = share_bounds(np.full(A, 0.2), np.full(A, 0.3)), OF_A
# The criteria of the columns, and the least and the largest size of a cluster as multiples of the mean.
BOUNDS = {
    "shares": ([THIRDS, QUARTERS], 0, 9),
    "and sizes": ([THIRDS, QUARTERS], 0.9, 1.1),
    "sizes": ([], 0.9, 1.1),
    "balance": ([(ratio_bound(0.8, A), OF_A), THIRDS], 0, 1.1),
    "gap": ([(gap_bound(0.1, np.full(A, 30.0)), OF_A), THIRDS], 0, 1.1),
    "exact": ([(exact_shares(np.full(B, 1 / B), complete=True), OF_B), QUARTERS], 0, 9),
}


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("seed", range(3))
def test_step_meets_the_conditions_of_the_optimum(bounds, seed):
    (columns, least, most), unit = BOUNDS[bounds], np.full(K, N_GROUPS * 10 / K)
    criterion = combine(columns, np.full(N_GROUPS, 10.0), least * unit, most * unit)
    blocks, mass, _ = curved(N_GROUPS, K, seed)
    rng = np.random.default_rng(seed)
    mass = mass * rng.uniform(0.5, 1.5, mass.shape)
    rows, helpers, blocks = criterion.rows, criterion.helpers, blocks / mass.sum()
    first = (rows @ mass - criterion.limits) / mass.sum()
    y, damping = np.zeros(first.shape), 1e-3
    # The second step starts from multipliers that are not zero.
    for slack in (first, first + 0.05 * rng.normal(size=first.shape)):
        start, y = y, step_of_rows(rows, helpers, blocks, slack, y, damping, criterion.exact)
        moved = y - start
        left = slack - rows @ np.einsum("jkl,jl->jk", blocks, rows.T @ moved) - damping * moved
        free = criterion.exact[:, None] | (y > 0)
        # There are numbers v of the helpers with which the gradient that is left, minus B v, is zero in free rows and
        # not positive in others. The program minimises by how much this is missed.
        for k in range(K):
            signed = np.vstack([np.eye(len(left)), -np.eye(len(left))[free[:, k]]])
            done = linprog(
                np.r_[np.zeros(helpers.shape[1]), 1.0],
                A_ub=np.c_[-signed @ helpers, -np.ones(len(signed))],
                b_ub=-signed @ left[:, k],
                bounds=[(None, None)] * helpers.shape[1] + [(0, None)],
            )
            assert done.fun <= 1e-7
        assert y[~criterion.exact].min(initial=0) >= 0
        np.testing.assert_allclose(helpers.T @ y, 0, atol=1e-12)
        assert y.any()
