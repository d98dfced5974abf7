import numpy as np
import pytest
from problems import curved
from scipy.optimize import nnls

from fairclust.methods.price.criteria import share_bounds
from fairclust.methods.price.newton import step_of_equal_shares, step_of_rows_that_bind


def test_step_of_equal_shares_solves_the_model():
    blocks, mass, shares = curved(4, 3, 0)
    blocks += 0.1 * np.eye(3)
    step = step_of_equal_shares(blocks, mass, shares)
    np.testing.assert_allclose(shares @ step, 0, atol=1e-9)
    # The gradient that is left is the same multiple of the shares in every group.
    left = (mass - np.einsum("jkl,jl->jk", blocks, step)) / shares[:, None]
    np.testing.assert_allclose(left, np.broadcast_to(left[0], left.shape), atol=1e-7)


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


@pytest.mark.parametrize("sparse", [False, True])
def test_multipliers_of_equalities_may_have_any_sign(sparse):
    blocks, mass, shares = curved(3, 4, 0)
    rows = share_bounds(0.8 * shares, shares / 0.8).rows
    slack, exact = rows @ mass - 0.1, np.arange(len(rows)) < 2
    y = np.zeros((len(rows), 4))
    found = step_of_rows_that_bind(rows, blocks, slack, y, 0.3, exact, sparse=sparse)
    hessian = np.einsum("rj,sj,jkl->rksl", rows, rows, blocks).reshape(y.size, y.size) + 0.3 * np.eye(y.size)
    left = (slack.ravel() - hessian @ found.ravel()).reshape(y.shape)
    np.testing.assert_allclose(left[exact], 0, atol=1e-7)
    assert (found[~exact] >= 0).all() and (left[~exact] <= 1e-7).all()
    np.testing.assert_allclose((found * left)[~exact], 0, atol=1e-7)
