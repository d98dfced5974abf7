"""Newton steps for the multipliers: functions that maximise the quadratic model of the smoothed dual.

The curvature is block diagonal in the prices, with one K x K block ``B_j = (diag(n_j) - M_j) / T`` for each group j.
The rows of a criterion mix the groups, so the Hessian with respect to the multipliers is dense. For exact shares,
`step_of_equal_shares` uses the blocks to solve a small system for each group instead of one system for all groups. For
all other rows, `step_of_rows` finds by pivoting which of them bind, and solves one system for their multipliers.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dposv

from fairclust.kernels.prices import lower_triangle

# Few rows change from one step to the next, so nearly all searches for the rows that bind end within this many pivots.
_PIVOTS, _FULL_PIVOTS = 100, 5
_ZERO = 1e-11


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


def step_of_rows(
    rows: np.ndarray,
    helpers: np.ndarray,
    blocks: np.ndarray,
    slack: np.ndarray,
    y: np.ndarray,
    damping: float,
    exact: np.ndarray,
) -> np.ndarray | None:
    """The multipliers of ``rows @ n + helpers @ v <= limits`` that maximise the model, or None if they are not found.

    They have the shape of `y`, (n_rows, n_clusters), satisfy ``helpers' y = 0``, and are not negative except for
    `exact` rows, which are equalities. `slack` is the gradient at `y`, and `damping` times half the squared step is
    subtracted from the model.
    """
    model = _Model(rows, helpers, blocks, damping)
    # Block principal pivoting (Portugal, Judice, Vicente 1994): free multipliers that are negative and others whose
    # gradient is positive have the wrong state. All of them change their state at once, as long as their number falls,
    # and then for a few more rounds.
    always, scale, unit = np.broadcast_to(exact[:, None], y.shape), np.abs(slack).max(), np.abs(y).max()
    free = (y > 0) | always
    fewest, patience = free.size + 1, _FULL_PIVOTS
    for _ in range(_PIVOTS):
        try:
            new, left = model.solve(slack, y, free)
        except np.linalg.LinAlgError:
            # No point is near a boundary.
            return None
        wrong = np.where(free, (new < -_ZERO * unit) & ~always, left > _ZERO * scale)
        n_wrong = int(wrong.sum())
        if not n_wrong:
            return np.where(always, new, np.maximum(new, 0.0))
        if n_wrong < fewest:
            fewest, patience = n_wrong, _FULL_PIVOTS
        elif patience:
            patience -= 1
        else:
            # Murty's rule: only the last of them changes. This always ends.
            last = np.flatnonzero(wrong)[-1]
            wrong = np.arange(wrong.size).reshape(wrong.shape) == last
        free = free ^ wrong
    return None


class _Model:
    """The quadratic model in the multipliers, (n_rows, n_clusters), with the equation ``helpers' y = 0``.

    In every cluster, the equation of a helper gives the multiplier of a free row that has this helper alone, and that
    row's gradient gives the helper. The linear system that is left is for the other free rows.
    """

    def __init__(self, rows: np.ndarray, helpers: np.ndarray, blocks: np.ndarray, damping: float) -> None:
        self._rows, self._helpers, self._blocks, self._damping = rows, helpers, blocks, damping
        self._by_pair = np.ascontiguousarray(blocks.transpose(1, 2, 0))
        self._single = np.flatnonzero(np.count_nonzero(helpers, axis=1) == 1)
        self._helper = np.abs(helpers[self._single]).argmax(axis=1) if len(self._single) else self._single

    def _gradient(self, slack: np.ndarray, step: np.ndarray) -> np.ndarray:
        prices = (self._rows.T @ step)[:, :, None]
        return slack - self._rows @ np.matmul(self._blocks, prices)[:, :, 0] - self._damping * step

    def solve(self, slack: np.ndarray, y: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The multipliers if all that are not free become zero, and the gradient there; `slack` is that at `y`."""
        rows, helpers = self._rows, self._helpers
        step = np.where(free, 0.0, -y)
        # The row that each helper's equation gives, and 1 / its coefficient, which is 0 if no free row has it alone.
        given, weight = np.zeros((2, helpers.shape[1], y.shape[1]))
        given = given.astype(int)
        r, k = np.nonzero(free[self._single])
        given[self._helper[r], k] = self._single[r]
        weight[self._helper[r], k] = 1.0 / helpers[self._single[r], self._helper[r]]
        helper, k = np.nonzero(weight)
        by_equation = given[helper, k], k
        step[by_equation] -= (helpers.T @ (y + step))[helper, k] * weight[helper, k]
        others = free.copy()
        others[by_equation] = False
        row, cluster = np.nonzero(others)
        if len(row):
            # If one of the other multipliers rises by one, those that the equations give fall by so much.
            falls = np.ascontiguousarray(helpers[row] * weight.T[cluster])
            i, p = np.nonzero(falls)
            fall, partner = falls[i, p], (given[p, cluster[i]], cluster[i])
            directions, left = rows[row], self._gradient(slack, step)
            right = left[row, cluster]
            np.subtract.at(directions, i, fall[:, None] * rows[partner[0]])
            np.subtract.at(right, i, fall * left[partner])
            hessian = lower_triangle(directions, falls, cluster, self._by_pair, self._damping)
            # The transpose has the order that LAPACK works in, and its upper triangle is set.
            _, solved, failed = dposv(hessian.T, right, overwrite_a=True)
            if failed:
                raise np.linalg.LinAlgError("the Hessian is not positive definite")
            step[row, cluster] += solved
            np.subtract.at(step, partner, fall * solved[i])  # type: ignore[arg-type]
        left = self._gradient(slack, step)
        v = np.zeros(weight.shape)
        v[helper, k] = left[by_equation] * weight[helper, k]
        return y + step, left - helpers @ v
