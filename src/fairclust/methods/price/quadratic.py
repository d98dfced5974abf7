"""Functions that maximise the quadratic model of the smoothed dual, one for each kind of criterion.

The curvature is block diagonal in the prices, with one K x K block ``B_j = (diag(n_j) - M_j) / T`` for each group j.
The rows of a criterion mix the groups, so the Hessian with respect to the multipliers is dense. `step_of_equal_shares`
and `step_of_bands` use the blocks to solve a small system for each group instead of one system for all groups.
`step_of_rows_that_bind` needs only products with the Hessian. `nonnegative_minimum` solves small dense problems.
"""

from __future__ import annotations

import numpy as np

from fairclust.kernels.bands import solve_groups
from fairclust.kernels.conjugate import multiply, solve_free, sparse_rows

_PIVOTS, _FULL_PIVOTS = 40, 5
_ZERO = 1e-11
# Conjugate gradients use at most this many products with the Hessian for one system. They end when the residual is
# this fraction of the first one. Pivoting compares signs and needs accurate solutions.
_PRODUCTS, _RESIDUAL = 500, 1e-10


def step_of_equal_shares(blocks: np.ndarray, mass: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The step of the prices with ``sum_j shares_j step_j = 0`` that maximises the model with gradient `mass`."""
    n_groups, n_clusters = mass.shape
    # A gradient proportional to the shares does not change the step. Without that part there is less rounding error.
    mass = mass - shares[:, None] * mass.sum(axis=0)
    right = np.empty((n_groups, n_clusters, n_clusters + 1))
    right[:, :, 0] = mass
    right[:, :, 1:] = np.eye(n_clusters)
    solved = np.linalg.solve(blocks, right)
    # step_j = B_j^-1 (n_j - shares_j v), with v chosen so that sum_j shares_j step_j = 0.
    free = shares @ solved[:, :, 0]
    pulled = np.tensordot(shares**2, solved[:, :, 1:], 1)
    v = np.linalg.solve(pulled, free)
    return solved[:, :, 0] - shares[:, None] * (solved[:, :, 1:] @ v)


def step_of_bands(
    blocks: np.ndarray,
    slack: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    y: np.ndarray,
    damping: float,
) -> np.ndarray | None:
    """The multipliers of ``n_jk <= high_j n_k`` and ``low_j n_k <= n_jk`` that maximise the model, or None.

    Prices are ``over_j - under_j - c`` with ``c = sum_j high_j over_j - low_j under_j``. If c and ``s = sum_j B_j
    step_j`` are known, each group has a system of its own. These 2 K numbers follow from one more system.
    """
    # With a largest entry of one, all numbers in the system of c and s are of similar size.
    largest = float(blocks.max()) or 1.0
    blocks, damping, y = blocks / largest, damping / largest, y * largest
    n_groups, K = blocks.shape[:2]
    signs = np.array([1.0, -1.0])[:, None]
    limits = np.stack([high, low], axis=1)
    by_side = limits[:, :, None] * signs
    y = y.reshape(2, n_groups, K).transpose(1, 0, 2).reshape(n_groups, 2 * K)
    slack = slack.reshape(2, n_groups, K).transpose(1, 0, 2).reshape(n_groups, 2 * K)
    total = blocks.sum(axis=0)
    solved = np.empty((n_groups, 2 * K, 2 * K + 1))

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step if all multipliers that are not free become zero, and the gradient after it."""
        if not solve_groups(blocks, limits, free, y, slack, damping, solved):
            raise np.linalg.LinAlgError("the system of a group is singular")
        c_of = np.tensordot(by_side.ravel(), solved.reshape(n_groups * 2, K, -1), 1)
        net = solved[:, :K] - solved[:, K:]
        sum_of = np.tensordot(blocks, net, ((0, 2), (0, 1)))
        system = np.eye(2 * K)
        system[:K] -= c_of[:, 1:]
        system[K:] -= sum_of[:, 1:]
        system[K:, :K] += total
        found = np.linalg.solve(system, np.r_[c_of[:, 0], sum_of[:, 0]])
        step = solved[:, :, 0] + solved[:, :, 1:] @ found
        moved = found[:K] - step[:, :K] + step[:, K:]
        pull = signs * (blocks @ moved[:, :, None])[:, None, :, 0] + by_side * found[K:]
        return step, slack + pull.reshape(n_groups, 2 * K) - damping * step

    scale = np.abs(slack).max() or 1.0
    found = pivot(solve, y > 0, y, np.abs(y).max() or 1.0, scale)
    if found is None:
        return None
    return found.reshape(n_groups, 2, K).transpose(1, 0, 2).reshape(2 * n_groups, K) / largest


def step_of_rows_that_bind(
    rows: np.ndarray, blocks: np.ndarray, slack: np.ndarray, y: np.ndarray, damping: float, exact: np.ndarray
) -> np.ndarray | None:
    """The multipliers of ``rows @ n <= limits`` that maximise the model, shape (n_rows, n_clusters), or None.

    They are not negative, except for `exact` rows, which are equalities. The rows that bind are found by pivoting from those with positive `y`. Their systems are solved by conjugate
    gradients, because a product with ``H = rows @ blocks @ rows'`` costs J K^2 operations, and the damping keeps H well
    conditioned.
    """
    hessian = _Hessian(rows, blocks, damping)

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step if all multipliers that are not free become zero, and the gradient after it."""
        step = np.where(free, 0.0, -y)
        step = hessian.solve(slack - hessian @ step, free, step)
        return step, slack - hessian @ step

    always = np.broadcast_to(exact[:, None], y.shape)
    unit, scale = np.abs(y).max() or 1.0, np.abs(slack).max() or 1.0
    return pivot(solve, (y > 0) | always, y, unit, scale, always=always)


class _Hessian:
    """The matrix ``rows @ blocks @ rows'`` plus `damping` on the diagonal, of which only products are computed.

    Most entries of the blocks are zero, so the blocks are kept as a sparse matrix.
    """

    def __init__(self, rows: np.ndarray, blocks: np.ndarray, damping: float) -> None:
        self._matrix = *sparse_rows(blocks), rows, damping
        self._squares = rows**2 @ np.einsum("jkk->jk", blocks) + damping

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        out = np.empty(v.shape)
        multiply(*self._matrix, v, out)
        return out

    def solve(self, right: np.ndarray, free: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Solve for the `free` entries of `step` by conjugate gradients, and return `step` with the solution added.

        The iteration ends at `_RESIDUAL` times the first residual. After `_PRODUCTS` products it is a LinAlgError.
        """
        if not solve_free(*self._matrix, self._squares, right, free, step, _PRODUCTS, _RESIDUAL):
            raise np.linalg.LinAlgError(f"not solved in {_PRODUCTS} products")
        return step


def pivot(  # type: ignore[no-untyped-def]
    solve, free, y, unit, scale, *, always=False, attempts=_PIVOTS
):
    """Find the rows that bind by block principal pivoting (Portugal, Judice, Vicente 1994).

    Free multipliers that are negative and others whose gradient is positive have the wrong state. All of them change
    their state at once, as long as their number falls, and then for a few more rounds. After these, one of them changes
    at a time. Multipliers where `always` is true are free and may have any sign.
    """
    fewest, patience = free.size + 1, _FULL_PIVOTS
    for _ in range(attempts):
        try:
            step, left = solve(free)
        except np.linalg.LinAlgError:
            # The system is singular because no point is near a boundary, or conjugate gradients did not converge.
            return None
        new = y + step
        wrong = np.where(free, (new < -_ZERO * unit) & ~np.asarray(always), left > _ZERO * scale)
        n_wrong = int(wrong.sum())
        if not n_wrong:
            return np.where(free, np.where(always, new, np.maximum(new, 0.0)), 0.0)
        if n_wrong < fewest:
            fewest, patience = n_wrong, _FULL_PIVOTS
        elif patience:
            patience -= 1
        else:
            # Murty's rule: only the last of them changes. This always ends.
            last = np.flatnonzero(wrong.ravel())[-1]
            wrong = np.zeros(free.size, bool)
            wrong[last] = True
            wrong = wrong.reshape(free.shape)
        free = free ^ wrong
    return None


def nonnegative_minimum(M: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """The y >= 0 that minimises ``y'M y / 2 + q'y``, by pivoting from the guess `y`; None if it is not found.

    M is positive definite. The positive entries of the guess are the first to be free.
    """

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = np.zeros(len(q))
        inside = np.flatnonzero(free)
        found[inside] = np.linalg.solve(M[np.ix_(inside, inside)], -q[inside])
        return found, -(M @ found + q)

    return pivot(solve, y > 0, np.zeros(len(q)), 1.0, 1.0)


def longest_step(y: np.ndarray, dy: np.ndarray, s: np.ndarray, ds: np.ndarray) -> float:
    """The longest step, at most 1 / 0.995, that keeps y and s non-negative."""
    most = 1 / 0.995
    for at, by in ((y, dy), (s, ds)):
        down = by < 0
        if down.any():
            # 1e-300 avoids a division by zero. Entries that fall more slowly do not limit the step.
            most = min(most, float((at[down] / np.maximum(-by[down], 1e-300)).min()))
    return most
