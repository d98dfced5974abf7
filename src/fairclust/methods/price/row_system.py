"""Newton steps for multipliers whose prices are sums of a price for each value and one for the cluster.

Each row bounds the number of points of one value of a sensitive column minus a multiple of the cluster's size, or the
size alone. The price of a group is therefore the sum of a price for each of its values and one for the cluster.
Different values of a column have no group in common, so the curvature does not couple them. The first column is
eliminated value by value, in K x K systems. The remaining system is dense but small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairclust.methods.price.group_system import GroupSystem
from fairclust.methods.price.quadratic import longest_step, pivot

# Few rows change from one step to the next. The interior point method is faster if more than _PIVOTS pivots are needed.
_PIVOTS = 10
_INTERIOR_STEPS = 60
_GAP, _RESIDUAL = 1e-12, 1e-9


@dataclass(frozen=True)
class Factors:
    """Rows ``sign_r * values[value_r] + size_r * 1`` on the groups."""

    # (n_values, n_groups). Mostly 1 for the groups that have the value and 0 for others. For a bounded mean, the scores
    # of the groups.
    values: np.ndarray
    # (n_rows,); the value of each row, as its row in `values`; -1 for rows of the cluster's size alone.
    value: np.ndarray
    sign: (
        np.ndarray
    )  # (n_rows,); the coefficient of the value: mostly 1 or -1, and 0 for rows of the size alone
    size: np.ndarray  # (n_rows,); the coefficient of the cluster's size
    n_leading: int  # The number of values of the first column. They have no group in common and are eliminated first.

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


class RowSystem:
    """The linear system ``(G H G' + D) step + B v = right``, ``B' step = below``, for any diagonal D.

    G are rows with `factors`, B the `helpers` (n_rows, n_helpers), the same for every cluster, and H the positive
    semi-definite `blocks` (n_groups, n_clusters, n_clusters).
    """

    def __init__(self, factors: Factors, helpers: np.ndarray, blocks: np.ndarray) -> None:
        self.factors, self.helpers, self.blocks = factors, helpers, blocks
        self.n_solved = 0
        self._signed = factors.signed
        # Coefficients that multiply 1 / D in the sums over a value's rows.
        others = np.vstack([factors.size, helpers.T])
        self._others = others
        self._squares = self._signed**2
        self._mixed = self._signed[:, None, :] * others
        self._products = others[:, None, :] * others
        n_leading = factors.n_leading
        lead = factors.values[:n_leading]
        rest = np.vstack([factors.values[n_leading:], np.ones(len(blocks))])
        self._lead = np.tensordot(lead**2, blocks, 1)
        # Curvature between the leading values and the others (the cluster included), then among the others.
        self._cross = np.tensordot(lead[:, None] * rest, blocks, 1)
        self._rest = np.tensordot(rest[:, None] * rest, blocks, 1)

    def apply(self, y: np.ndarray) -> np.ndarray:
        """G H G'y, shape (n_rows, n_clusters)."""
        return self._by_rows(self._prices(self._signed @ y, self.factors.size @ y))

    def _prices(self, by_value: np.ndarray, by_size: np.ndarray) -> np.ndarray:
        return self.factors.values.T @ by_value + by_size

    def _by_rows(self, prices: np.ndarray) -> np.ndarray:
        curved = np.matmul(self.blocks, prices[:, :, None])[:, :, 0]
        by_value = self._signed.T @ (self.factors.values @ curved)
        return by_value + np.outer(self.factors.size, curved.sum(axis=0))

    def solve(
        self, inverse: np.ndarray, right: np.ndarray, below: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Solve the system for the step and v. `inverse` is 1 / D, not negative; where it is 0, the step is 0."""
        self.n_solved += 1
        n_clusters, n_leading = inverse.shape[1], self.factors.n_leading
        n_rest, n_more = len(self._signed) - n_leading, len(self._others)
        width, at = n_rest + 1 + n_more, np.arange(n_clusters)
        known = inverse * right
        # The price p_v of a value and its curvature u_v are related by p_v = alpha_v - a_v u_v - b_v (u, v).
        a = self._squares @ inverse
        b = np.tensordot(self._mixed, inverse, 1)
        q = np.tensordot(self._products, inverse, 1)
        alpha, beta = self._signed @ known, self._others @ known
        live = a > 0
        unused = q[np.arange(n_more), np.arange(n_more)] == 0
        one_over_a = np.where(live, 1 / np.where(live, a, 1.0), 0.0)
        b_over_a, alpha_over_a = b * one_over_a[:, None], alpha * one_over_a
        q = q - np.einsum("vik,vjk->ijk", b, b_over_a)
        beta = beta - np.einsum("vik,vk->ik", b, alpha_over_a)
        # Unknowns: prices of the values that are not leading and of the cluster, the curvature of the cluster, v.
        system = np.zeros((width, n_clusters, width, n_clusters))
        found: np.ndarray = np.zeros((width, n_clusters))
        system[: n_rest + 1, :, : n_rest + 1] = self._rest.transpose(0, 2, 1, 3)
        more = n_rest + 1 + np.arange(n_more)
        for i, own in enumerate(range(n_leading, n_leading + n_rest)):
            system[i, at, i, at] += one_over_a[own]
            system[i, at[:, None], more, at[:, None]] = b_over_a[own].T
            system[more, at[:, None], i, at[:, None]] = -b_over_a[own].T
            found[i] = alpha_over_a[own]
            dead = at[~live[own]]
            system[i, dead] = 0.0
            system[i, dead, i, dead] = 1.0
        system[n_rest, at, n_rest + 1, at] -= 1.0
        system[n_rest + 1, at, n_rest, at] += 1.0
        for i in range(n_more):
            for j in range(n_more):
                system[more[i], at, more[j], at] = q[i, j]
        # Helpers that occur only in rows that cannot change are set to zero.
        for i in range(1, n_more):
            idle = at[unused[i]]
            system[more[i], idle, more[i], idle] = 1.0
        found[n_rest + 1 :] = beta
        found[n_rest + 2 :] -= below
        dense, right_side = system.reshape(width * n_clusters, -1), found.ravel()
        leading: np.ndarray = np.empty((0, n_clusters))
        if n_leading:
            matrix = self._lead.copy()
            matrix[:, at, at] += one_over_a[:n_leading]
            to_rest = np.zeros((n_leading, n_clusters, width, n_clusters))
            to_rest[:, :, : n_rest + 1] = self._cross.transpose(0, 2, 1, 3)
            from_rest = np.zeros((n_leading, width, n_clusters, n_clusters))
            from_rest[:, : n_rest + 1] = self._cross
            for i in range(n_more):
                to_rest[:, at, more[i], at] = b_over_a[:n_leading, i]
                from_rest[:, more[i], at, at] = -b_over_a[:n_leading, i]
            from_rest[:, :n_rest][:, ~live[n_leading:]] = 0.0
            dead_values, dead = np.nonzero(~live[:n_leading])
            matrix[dead_values, dead] = 0.0
            matrix[dead_values, dead, dead] = 1.0
            to_rest[dead_values, dead] = 0.0
            both = np.concatenate(
                [to_rest.reshape(n_leading, n_clusters, -1), alpha_over_a[:n_leading, :, None]], axis=2
            )
            solved = np.linalg.solve(matrix, both)
            pulled = np.tensordot(
                from_rest.reshape(n_leading, width * n_clusters, n_clusters), solved, axes=([0, 2], [0, 1])
            )
            solution = np.linalg.solve(dense - pulled[:, :-1], right_side - pulled[:, -1])
            leading = solved[:, :, -1] - solved[:, :, :-1] @ solution
        else:
            solution = np.linalg.solve(dense, right_side)
        found = solution.reshape(width, n_clusters)
        v = found[n_rest + 2 :]
        prices = self._prices(np.vstack([leading, found[:n_rest]]), found[n_rest])
        return inverse * (right - self._by_rows(prices) - self.helpers @ v), v


def step_of_rows(
    system: GroupSystem | RowSystem, slack: np.ndarray, y: np.ndarray, damping: float, exact: np.ndarray
) -> np.ndarray:
    """The multipliers y that maximise the quadratic model with ``B'y = 0`` and, except for exact rows, ``y >= 0``.

    Pivoting starts from the rows that bind so far. If it fails, the interior point method solves the problem. The
    gradient `slack`, the curvature and `y` should be of order one. `damping` times half the squared step is subtracted.
    """
    helpers = system.helpers
    always = np.broadcast_to(exact[:, None], y.shape)

    def solve(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step if all multipliers that are not free become zero, and the gradient after it."""
        fixed = np.where(free, 0.0, -y)
        inverse = np.where(free, 1 / damping, 0.0)
        step, v = system.solve(inverse, slack - system.apply(fixed), -helpers.T @ (y + fixed))
        step += fixed
        return step, slack - system.apply(step) - damping * step - helpers @ v

    found = pivot(
        solve,
        (y > 0) | always,
        y,
        max(float(np.abs(y).max()), 1e-3),
        float(np.abs(slack).max()) or 1.0,
        always=always,
        attempts=_PIVOTS,
    )
    if found is not None and np.abs(helpers.T @ found).max(initial=0.0) <= _RESIDUAL:
        return found
    return _interior_step(system, slack, y, damping, ~always)


def _interior_step(
    system: GroupSystem | RowSystem, slack: np.ndarray, y: np.ndarray, damping: float, bounded: np.ndarray
) -> np.ndarray:
    """As `step_of_rows`, by Mehrotra's interior point method."""
    helpers, last_y, n = system.helpers, y, max(int(bounded.sum()), 1)
    y = np.where(bounded, np.maximum(y, 0.1), y)
    v = np.zeros((helpers.shape[1], y.shape[1]))

    def gradient(y: np.ndarray) -> np.ndarray:
        return system.apply(y - last_y) + damping * (y - last_y) - slack

    s = np.where(bounded, np.maximum(gradient(y), 0.1), 0.0)
    for _ in range(_INTERIOR_STEPS):
        dual, primal, gap = gradient(y) + helpers @ v - s, helpers.T @ y, float((y * s).sum()) / n
        if gap <= _GAP and max(np.abs(dual).max(), np.abs(primal).max(initial=0.0)) <= _RESIDUAL:
            break
        safe = np.where(bounded, y, 1.0)
        inverse = 1.0 / (damping + s / safe)
        target = np.zeros(y.shape)
        # Mehrotra's predictor step has the target 0. The target of the corrector step depends on how far the predictor
        # gets.
        for last in (False, True):
            dy, dv = system.solve(inverse, np.where(bounded, target / safe - s, 0.0) - dual, -primal)
            ds = np.where(bounded, (target - s * dy) / safe - s, 0.0)
            step = longest_step(y[bounded], dy[bounded], s[bounded], ds[bounded])
            if not last:
                after = float(((y + step * dy) * (s + step * ds))[bounded].sum()) / n
                target = max((after / max(gap, 1e-300)) ** 3, 1e-3) * gap - dy * ds
        step = min(1.0, 0.995 * step)
        y, v, s = y + step * dy, v + step * dv, s + step * ds
    # Rows that do not bind have multipliers of about 1e-12. They are set to zero, so that the next step does not treat
    # these rows as binding.
    return np.where(bounded & (y <= s), 0.0, y)
