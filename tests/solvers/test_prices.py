import numpy as np
import pytest
from problems import from_blobs, from_matrix
from scipy.optimize import linprog
from scipy.sparse import csr_array, kron, vstack

from fairclust.solvers.shares import dual_prices, share_rows

LEVELS = (0.2, 0.04, 0.008, 0.0016, 0.0003)


def lower_bound(problem, prices):
    """D(y): the sum over points of the least reduced cost."""
    return (problem.a + prices[problem.codes]).min(axis=1).sum()


def optimum(problem):
    """The linear program itself, over all N x K shares."""
    a, codes, _, shares = problem
    n, k = a.shape
    one_each = kron(csr_array(np.eye(n)), np.ones((1, k)))
    groups = (codes == np.arange(len(shares))[:, None]).astype(float)
    fair = kron(csr_array(groups - shares[:, None]), np.eye(k))
    done = linprog(
        a.ravel(),
        A_eq=vstack([one_each, fair]),
        b_eq=np.r_[np.ones(n), np.zeros(fair.shape[0])],
        bounds=(0, None),
        method="highs",
    )
    assert done.status == 0
    return done.fun


@pytest.mark.parametrize("n_groups", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_bound_meets_the_linear_program(n_groups, seed):
    problem = from_blobs(n_samples=400, n_groups=n_groups, n_clusters=4, seed=seed)
    found = dual_prices(problem.potentials, share_rows(problem.shares, 4), levels=LEVELS, max_steps=30)
    best, bound = optimum(problem), lower_bound(problem, found.prices)
    assert bound <= best * (1 + 1e-9)
    assert bound >= best * (1 - 1e-4)


def test_prices_scale_with_the_potentials():
    problem = from_blobs(n_groups=3)
    rows = share_rows(problem.shares, 4)
    small = from_matrix(problem.a * 1e-5, problem.codes)
    one, other = (dual_prices(p.potentials, rows) for p in (problem, small))
    assert one.n_passes == other.n_passes
    np.testing.assert_allclose(other.prices * 1e5, one.prices, rtol=1e-3, atol=1e-3)


def test_rows_of_exact_shares_vanish_on_proportional_tables():
    shares = np.array([0.2, 0.5, 0.3])
    table = shares[:, None] * np.array([10.0, 20.0, 30.0, 40.0])
    np.testing.assert_allclose(share_rows(shares, 4) @ table.ravel(), 0, atol=1e-12)
    assert np.abs(share_rows(shares, 4) @ np.arange(12.0)).max() > 1


def test_one_group_needs_no_prices():
    problem = from_blobs(n_groups=1)
    found = dual_prices(problem.potentials, share_rows(problem.shares, 4))
    np.testing.assert_array_equal(found.prices, 0)
