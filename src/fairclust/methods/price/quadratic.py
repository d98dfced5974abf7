"""Functions that maximise the quadratic model of the smoothed dual.

The curvature is block diagonal in the prices, with one K x K block ``B_j = (diag(n_j) - M_j) / T`` for each group j.
The rows of a criterion mix the groups, so the Hessian with respect to the multipliers is dense. `step_of_equal_shares`
uses the blocks to solve a small system for each group instead of one system for all groups. With
`step_of_rows_that_bind`, which solves systems of the rows that bind, fits with 30 to 100 groups took 2 to 5 times as
long.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.sparse import csr_array

from fairclust.kernels.hessian import lower_triangle, multiply, solve_free

# Few rows change from one step to the next, and 99 % of the searches end within this many pivots. The interior point
# method is faster than longer ones.
_PIVOTS, _FULL_PIVOTS = 16, 5
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
    pulled = (shares**2)[:, None, None] * solved[:, :, 1:]
    v = np.linalg.solve(pulled.sum(axis=0), free)
    return solved[:, :, 0] - shares[:, None] * (solved[:, :, 1:] @ v)


def step_of_rows_that_bind(
    rows: np.ndarray,
    blocks: np.ndarray,
    slack: np.ndarray,
    y: np.ndarray,
    damping: float,
    exact: np.ndarray,
    *,
    sparse: bool = False,
) -> np.ndarray | None:
    """The multipliers of ``rows @ n <= limits`` that maximise the model, (n_rows, n_clusters), or None.

    They are not negative, except for `exact` rows, which are equalities. The rows that bind are found by pivoting from
    those with positive `y`. Their systems are solved by Cholesky decompositions, or if `sparse` by conjugate gradients.
    """
    hessian = (_SparseHessian if sparse else _DenseHessian)(rows, blocks, damping)

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step if all multipliers that are not free become zero, and the gradient after it."""
        step = np.where(free, 0.0, -y)
        hessian.solve(slack - hessian @ step, free, step)
        return step, slack - hessian @ step

    return pivot(solve, slack, y, exact, unit=float(np.abs(y).max()) or 1.0)


class _DenseHessian:
    """The matrix ``rows @ blocks @ rows'`` plus `damping` on the diagonal, of which the part of free rows is computed.

    Few rows bind, so this part is small.
    """

    def __init__(self, rows: np.ndarray, blocks: np.ndarray, damping: float) -> None:
        self._rows, self._blocks, self._damping = rows, blocks, damping
        self._by_pair = np.ascontiguousarray(blocks.transpose(1, 2, 0))

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        prices = (self._rows.T @ v)[:, :, None]
        return self._rows @ np.matmul(self._blocks, prices)[:, :, 0] + self._damping * v

    def solve(self, right: np.ndarray, free: np.ndarray, step: np.ndarray) -> None:
        """Set the `free` entries of `step` to the solution for `right`."""
        if not free.any():
            return
        row, cluster = np.nonzero(free)
        part = lower_triangle(self._rows, self._by_pair, row, cluster, self._damping)
        # The transpose has the order that LAPACK works in, and its upper triangle is set.
        _, step[free], failed = dposv(part.T, right[free], overwrite_a=True)
        if failed:
            raise np.linalg.LinAlgError("the Hessian is not positive definite")


class _SparseHessian:
    """As `_DenseHessian`, from products alone. Most entries of the blocks are zero, so they are kept as sparse rows.

    A product costs J K^2 operations at most, and the damping keeps the matrix well conditioned.
    """

    def __init__(self, rows: np.ndarray, blocks: np.ndarray, damping: float) -> None:
        self._rows, self._damping = rows, damping
        table = csr_array(blocks.reshape(-1, blocks.shape[-1]))
        self._values, self._columns, self._first = table.data, table.indices, table.indptr
        self._squares = rows**2 @ np.einsum("jkk->jk", blocks) + damping

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        out = np.empty(v.shape)
        multiply(self._values, self._columns, self._first, self._rows, self._damping, v, out)
        return out

    def solve(self, right: np.ndarray, free: np.ndarray, step: np.ndarray) -> None:
        """Set the `free` entries of `step` to the solution for `right`; a LinAlgError after `_PRODUCTS` products."""
        if not solve_free(
            self._values,
            self._columns,
            self._first,
            self._rows,
            self._damping,
            self._squares,
            right,
            free,
            step,
            _PRODUCTS,
            _RESIDUAL,
        ):
            raise np.linalg.LinAlgError(f"not solved in {_PRODUCTS} products")


def pivot(
    solve: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    slack: np.ndarray,
    y: np.ndarray,
    exact: np.ndarray,
    *,
    unit: float,
) -> np.ndarray | None:
    """Find the rows that bind by block principal pivoting (Portugal, Judice, Vicente 1994).

    Free multipliers that are negative and others whose gradient is positive have the wrong state. All of them change
    their state at once, as long as their number falls, and then for a few more rounds. After these, one of them changes
    at a time. Multipliers of `exact` rows are free and may have any sign.
    """
    always, scale = np.broadcast_to(exact[:, None], y.shape), float(np.abs(slack).max()) or 1.0
    free = (y > 0) | always
    fewest, patience = free.size + 1, _FULL_PIVOTS
    for _ in range(_PIVOTS):
        try:
            step, left = solve(free)
        except np.linalg.LinAlgError:
            # The system is singular because no point is near a boundary, or conjugate gradients did not converge.
            return None
        new = y + step
        wrong = np.where(free, (new < -_ZERO * unit) & ~always, left > _ZERO * scale)
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


def longest_step(y: np.ndarray, dy: np.ndarray, s: np.ndarray, ds: np.ndarray) -> float:
    """The longest step, at most 1 / 0.995, that keeps y and s non-negative."""
    most = 1 / 0.995
    for at, by in ((y, dy), (s, ds)):
        down = by < 0
        if down.any():
            # 1e-300 avoids a division by zero. Entries that fall more slowly do not limit the step.
            most = min(most, float((at[down] / np.maximum(-by[down], 1e-300)).min()))
    return most
