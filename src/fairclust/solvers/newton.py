"""Newton steps for the multipliers: functions that maximise the quadratic model of the smoothed dual.

The curvature is block diagonal in the prices, with one K x K block ``B_j = (diag(n_j) - M_j) / T`` for each group j.
The rows of a criterion mix the groups, so the Hessian with respect to the multipliers is dense. There is one function
for each kind of rows. `step_of_equal_shares` uses the blocks to solve a small system for each group instead of one
system for all groups. With `step_of_rows_that_bind`, which solves systems of the rows that bind, fits with 30 to 100
groups took 2 to 5 times as long.

`step_of_rows` and `interior_step` are for rows that share helpers, such as the bound on the mean gap of many groups.
Their linear system, `RowSystem`, has an unknown for each row and helper. Both are eliminated in every cluster by
itself, so that a system for the prices of the groups remains. With several sensitive columns, the price of a group is
the sum of a price for each of its values and one for the cluster, and if these are fewer than the groups, the system is
for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dposv, dpstrf
from scipy.sparse import csr_array

from fairclust.kernels.prices import lower_triangle, multiply, solve_free

# Few rows change from one step to the next. For longer searches, the interior point method is faster.
_PIVOTS, _FULL_PIVOTS = 16, 5
_ZERO = 1e-11
# Conjugate gradients use at most this many products with the Hessian for one system. They end when the residual is
# this fraction of the first one. Pivoting compares signs and needs accurate solutions.
_PRODUCTS, _RESIDUAL = 500, 1e-10
# The interior point method ends at this mean product of multipliers and slacks, if its equations are missed by no more
# than `_MISSED`, or after so many steps.
_INTERIOR_STEPS, _GAP, _MISSED = 60, 1e-12, 1e-9
# Prices whose curvature is less than this fraction of the largest count as flat.
_FLAT = 1e-13


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
    pulled = ((shares**2)[:, None, None] * solved[:, :, 1:]).sum(axis=0)
    v = np.linalg.solve(pulled, free)
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
        table = csr_array(blocks.reshape(-1, blocks.shape[-1]))
        self._factors = table.data, table.indices, table.indptr, rows, damping
        self._squares = rows**2 @ np.einsum("jkk->jk", blocks) + damping

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        out = np.empty(v.shape)
        multiply(*self._factors, v, out)
        return out

    def solve(self, right: np.ndarray, free: np.ndarray, step: np.ndarray) -> None:
        """Set the `free` entries of `step` to the solution for `right`; a LinAlgError after `_PRODUCTS` products."""
        if not solve_free(*self._factors, self._squares, right, free, step, _PRODUCTS, _RESIDUAL):
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


@dataclass(frozen=True)
class Factors:
    """Rows ``sign_r * values[value_r] + size_r * 1`` on the groups."""

    # (n_values, n_groups). Mostly 1 for the groups that have the value and 0 for others. For a bounded mean, the scores
    # of the groups.
    values: np.ndarray
    # (n_rows,); the value of each row, as its row in `values`; -1 for rows of the cluster's size alone.
    value: np.ndarray
    # (n_rows,); the coefficient of the value: mostly 1 or -1, and 0 for rows of the size alone
    sign: np.ndarray
    size: np.ndarray  # (n_rows,); the coefficient of the cluster's size

    @property
    def whole(self) -> np.ndarray:
        """Which values count points, so that their sums over a cluster are whole numbers, shape (n_values,)."""
        return np.all(np.isin(self.values, (0, 1)), axis=1)

    @property
    def signed(self) -> np.ndarray:
        """The sign of every row at its own value and 0 at other values, shape (n_values, n_rows)."""
        out = np.zeros((len(self.values), len(self.value)))
        own = np.flatnonzero(self.value >= 0)
        out[self.value[own], own] = self.sign[own]
        return out

    @property
    def rows(self) -> np.ndarray:
        """The product of the factors, which are the rows, shape (n_rows, n_groups)."""
        return self.signed.T @ self.values + self.size[:, None]


class RowShape:
    """What `RowSystem` needs of the rows of a criterion, (n_rows, n_groups), and of their helpers, (n_rows, n_helpers).

    The rows are a product of `sides`, (n_rows, n_parts), and `parts`, (n_parts, n_groups). The parts are the values and
    the cluster, whose sides are mostly zero, or the groups if there are fewer groups than values.
    """

    def __init__(self, rows: np.ndarray, helpers: np.ndarray, factors: Factors) -> None:
        self.rows, self.helpers = rows, csr_array(helpers)
        self.to_helpers = csr_array(self.helpers.T)
        n_groups = rows.shape[1]
        self.parts, sides = np.eye(n_groups), rows
        if len(factors.values) <= n_groups:
            n_more = int(factors.size.any())
            self.parts = np.vstack([factors.values, np.ones((n_more, n_groups))])
            sides = np.vstack([factors.signed, *[factors.size] * n_more]).T
        self.sides = sides
        self.of_parts = _products(csr_array(self.parts.T), csr_array(self.parts.T))
        self.of_sides = _products(csr_array(sides), csr_array(sides))
        self.of_helpers = _products(self.helpers, csr_array(sides))
        # Most rows have one helper or none. They contribute to the diagonal of a helper's matrix, the others to all.
        wide = np.diff(self.helpers.indptr) > 1
        self.wide = np.flatnonzero(wide)
        self.of_wide = self.helpers[self.wide].toarray()
        squares = self.helpers.copy()
        squares.data = np.where(np.repeat(wide, np.diff(squares.indptr)), 0.0, squares.data**2)
        self.narrow_squares = csr_array(squares.T)


def _products(first: csr_array, second: csr_array) -> csr_array:
    """Products of the coefficients of each row in two matrices, with one column for each row.

    Its product with the diagonal of a matrix D is ``first' D second``.
    """
    # Most coefficients are zero, and a dense array of the products of many groups would not fit in memory.
    n_first, n_second = np.diff(first.indptr), np.diff(second.indptr)
    row = np.repeat(np.arange(len(n_first)), n_first)
    one = np.repeat(np.arange(first.nnz), n_second[row])
    rank = np.arange(len(one)) - np.repeat(np.cumsum(n_second[row]) - n_second[row], n_second[row])
    partner = second.indptr[row[one]] + rank
    place = first.indices[one].astype(np.int64) * second.shape[1] + second.indices[partner]
    shape = first.shape[1] * second.shape[1], first.shape[0]
    return csr_array((first.data[one] * second.data[partner], (place, row[one])), shape=shape)


class RowSystem:
    """The linear system ``(G H G' + D) step + B v = right``, ``B' step = below``, for any diagonal D.

    G are the rows of `shape` and B its helpers, the same for every cluster, and H the positive semi-definite `blocks`
    (n_groups, n_clusters, n_clusters).
    """

    def __init__(self, shape: RowShape, blocks: np.ndarray) -> None:
        self.shape, self.blocks = shape, blocks
        n_parts, n_clusters = len(shape.parts), blocks.shape[1]
        n, by_pair = n_parts * n_clusters, shape.of_parts @ blocks.reshape(len(blocks), -1)
        by_pair = by_pair.reshape(n_parts, n_parts, n_clusters, n_clusters)
        curved = by_pair.transpose(2, 0, 3, 1).reshape(n, n)
        # The curvature is R R'. It is flat along prices that are the same in all clusters, and without these directions
        # the systems are well conditioned.
        root, order, rank, _ = dpstrf(curved, tol=_FLAT * curved.diagonal().max(), lower=1)
        self._roots = np.zeros((n, rank))
        self._roots[order - 1] = np.tril(root)[:, :rank]
        self.n_factorised = 0
        self._last: tuple[np.ndarray, tuple] | None = None

    def apply(self, y: np.ndarray) -> np.ndarray:
        """G H G'y, shape (n_rows, n_clusters)."""
        rows = self.shape.rows
        return rows @ np.matmul(self.blocks, (rows.T @ y)[:, :, None])[:, :, 0]

    def solve(
        self, inverse: np.ndarray, right: np.ndarray, below: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve the system for the step and v. `inverse` is 1 / D, not negative; where it is 0, the step is 0.

        Several calls with the same `inverse` factorise once.
        """
        if self._last is None or self._last[0] is not inverse:
            self._last = inverse, self._factorise(inverse)
        of_helpers, solve_helpers, matrix = self._last[1]
        shape = self.shape
        known = inverse * right
        wanted = (shape.to_helpers @ known - below).T[:, :, None]
        # `flat` are the prices without curvature. `table` is how much the table changes at the prices that are sought.
        flat = (shape.sides.T @ known).T[:, :, None]
        flat = flat - np.matmul(of_helpers.transpose(0, 2, 1), solve_helpers(wanted))
        found = cho_solve(matrix, self._roots.T @ flat.ravel(), check_finite=False)
        table = (self._roots @ found).reshape(flat.shape)
        v = solve_helpers(wanted - np.matmul(of_helpers, table))[:, :, 0].T
        return known - inverse * (shape.sides @ table[:, :, 0].T + shape.helpers @ v), v

    def _factorise(self, inverse: np.ndarray) -> tuple:
        self.n_factorised += 1
        shape, n_clusters, n_parts = self.shape, inverse.shape[1], len(self.shape.parts)
        pulled = (shape.of_sides @ inverse).T.reshape(n_clusters, n_parts, n_parts)
        # ``B' D^-1 B`` is diagonal but for the wide rows, which the Sherman-Morrison-Woodbury formula adds.
        diagonal = (shape.narrow_squares @ inverse).T
        # Helpers that occur only in rows that cannot change are set to zero.
        one_over = np.where(diagonal > 0, 1.0 / np.where(diagonal > 0, diagonal, 1.0), 0.0)
        # A wide row that cannot change has the weight 0 and drops out.
        wide, weight = one_over[:, None] * shape.of_wide, inverse[shape.wide].T
        inner = np.eye(len(shape.wide)) + np.matmul(wide, shape.of_wide.T) * weight[:, None]
        inner = np.linalg.inv(inner) * weight[:, :, None]

        def solve_helpers(right: np.ndarray) -> np.ndarray:
            """Solve ``B' D^-1 B v = right`` in every cluster, shape (n_clusters, n_helpers, 1)."""
            low = np.matmul(inner, np.matmul(wide, right))
            return one_over[:, :, None] * right - np.matmul(wide.transpose(0, 2, 1), low)

        of_helpers = (shape.of_helpers @ inverse).T.reshape(n_clusters, -1, n_parts)
        of_wide = np.matmul(wide, of_helpers)
        pulled -= np.matmul(of_helpers.transpose(0, 2, 1), one_over[:, :, None] * of_helpers)
        pulled += np.matmul(of_wide.transpose(0, 2, 1), np.matmul(inner, of_wide))
        # I + R' L R, where L has one matrix for each cluster.
        lowered = np.matmul(pulled, self._roots.reshape(n_clusters, n_parts, self._roots.shape[1]))
        matrix = self._roots.T @ lowered.reshape(self._roots.shape)
        matrix[np.diag_indices(len(matrix))] += 1.0
        return of_helpers, solve_helpers, cho_factor(matrix, check_finite=False)


def step_of_rows(
    system: RowSystem, slack: np.ndarray, y: np.ndarray, damping: float, exact: np.ndarray
) -> np.ndarray | None:
    """The multipliers y that maximise the quadratic model with ``B'y = 0`` and, except for exact rows, ``y >= 0``.

    Pivoting starts from the rows that bind so far; None if it fails. The gradient `slack`, the curvature and `y` should
    be of order one. `damping` times half the squared step is subtracted.
    """
    helpers, to_helpers = system.shape.helpers, system.shape.to_helpers

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step if all multipliers that are not free become zero, and the gradient after it."""
        fixed = np.where(free, 0.0, -y)
        inverse = np.where(free, 1 / damping, 0.0)
        step, v = system.solve(inverse, slack - system.apply(fixed), -(to_helpers @ (y + fixed)))
        step += fixed
        return step, slack - system.apply(step) - damping * step - helpers @ v

    found = pivot(solve, slack, y, exact, unit=max(float(np.abs(y).max()), 1e-3))
    if found is not None and np.abs(to_helpers @ found).max(initial=0.0) <= _MISSED:
        return found
    return None


def interior_step(
    system: RowSystem, slack: np.ndarray, y: np.ndarray, damping: float, exact: np.ndarray
) -> np.ndarray:
    """As `step_of_rows`, by Mehrotra's interior point method, which takes longer."""
    bounded = ~np.broadcast_to(exact[:, None], y.shape)
    helpers, to_helpers = system.shape.helpers, system.shape.to_helpers
    last_y, n = y, max(int(bounded.sum()), 1)
    y = np.where(bounded, np.maximum(y, 0.1), y)
    v = np.zeros((helpers.shape[1], y.shape[1]))

    def gradient(y: np.ndarray) -> np.ndarray:
        return system.apply(y - last_y) + damping * (y - last_y) - slack

    s = np.where(bounded, np.maximum(gradient(y), 0.1), 0.0)
    for _ in range(_INTERIOR_STEPS):
        dual, primal, gap = gradient(y) + helpers @ v - s, to_helpers @ y, float((y * s).sum()) / n
        if gap <= _GAP and max(np.abs(dual).max(), np.abs(primal).max(initial=0.0)) <= _MISSED:
            break
        safe = np.where(bounded, y, 1.0)
        inverse = 1.0 / (damping + s / safe)
        target = np.zeros(y.shape)
        # Mehrotra's predictor step has the target 0. The target of the corrector step depends on how far the predictor
        # gets.
        for last in (False, True):
            dy, dv = system.solve(inverse, np.where(bounded, target / safe - s, 0.0) - dual, -primal)
            ds = np.where(bounded, (target - s * dy) / safe - s, 0.0)
            # The longest step, at most 1 / 0.995, that keeps y and s non-negative.
            step = 1 / 0.995
            for at, by in (y[bounded], dy[bounded]), (s[bounded], ds[bounded]):
                # 1e-300 avoids a division by zero. Entries that fall more slowly do not limit the step.
                reach = at[by < 0] / np.maximum(-by[by < 0], 1e-300)
                step = min(step, float(reach.min(initial=np.inf)))
            if not last:
                after = float(((y + step * dy) * (s + step * ds))[bounded].sum()) / n
                target = max((after / max(gap, 1e-300)) ** 3, 1e-3) * gap - dy * ds
        step = min(1.0, 0.995 * step)
        y, v, s = y + step * dy, v + step * dv, s + step * ds
    # Rows that do not bind have multipliers of about 1e-12. They are set to zero, so that the next step does not treat
    # these rows as binding.
    return np.where(bounded & (y <= s), 0.0, y)
