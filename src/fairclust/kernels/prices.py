"""The linear algebra of Newton's steps of the methods with group prices."""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST

# Few rows change from one step to the next, so nearly all searches for the rows that bind end within this many pivots.
_PIVOTS, _FULL_PIVOTS = 100, 5
_ZERO = 1e-11


@njit(cache=True, nogil=True)
def step_of_equal_shares(mass, moments, temperature, damping, shorten, shares):  # type: ignore[no-untyped-def]
    """The step of the prices with ``sum_j shares_j step_j = 0`` that maximises the damped model with gradient `mass`.

    It is compiled because small problems take thousands of steps, in which NumPy's calls would take most of the time.
    """
    n_groups, n_clusters = mass.shape
    blocks = _curvature(mass, moments, temperature)
    curved = 0.0
    for j in range(n_groups):
        for k in range(n_clusters):
            curved += blocks[j, k, k] / mass.size
    steps = np.empty((n_groups, n_clusters))
    free, pulled = np.zeros(n_clusters), np.zeros((n_clusters, n_clusters))
    sizes = mass.sum(axis=0)
    for j in range(n_groups):
        for k in range(n_clusters):
            blocks[j, k, k] += damping * ((curved if curved != 0 else 1.0) + shorten)
        blocks[j] = np.linalg.inv(blocks[j])
        # A gradient proportional to the shares changes no step. Without that part there is less rounding error.
        steps[j] = blocks[j] @ (mass[j] - shares[j] * sizes)
        free += shares[j] * steps[j]
        pulled += shares[j] ** 2 * blocks[j]
    # step_j = B_j^-1 (n_j - shares_j v), with v chosen so that sum_j shares_j step_j = 0.
    v = np.linalg.solve(pulled, free)
    for j in range(n_groups):
        steps[j] -= shares[j] * (blocks[j] @ v)
    return steps


@njit(cache=True, nogil=True)
def _curvature(mass, moments, temperature):  # type: ignore[no-untyped-def]
    blocks = -moments / temperature
    for j in range(mass.shape[0]):
        for k in range(mass.shape[1]):
            blocks[j, k, k] += mass[j, k] / temperature
    return blocks


@njit(cache=True, nogil=True)
def step_of_rows(  # type: ignore[no-untyped-def]
    mass, moments, temperature, damping, shorten, y, rows, helpers, limits, exact, unit, n_points
):
    """The multipliers of ``rows @ n + helpers @ v <= limits`` that maximise the damped model; empty if none are found.

    They satisfy ``helpers' y = 0``, and are not negative except for `exact` rows, which are equalities. `y`, of shape
    (n_rows, n_clusters), are those before the step. LinAlgError if no point is near a boundary.
    """
    n_rows, n_clusters = y.shape
    # The slack is divided by the number of points and the multipliers by the unit, so all numbers are of order one.
    blocks = (unit / n_points) * _curvature(mass, moments, temperature)
    slack, y = (rows @ mass - limits) / n_points, y / unit
    curved = 0.0
    for r in range(n_rows):
        for j in range(len(mass)):
            for k in range(n_clusters):
                curved += rows[r, j] ** 2 * blocks[j, k, k] / y.size
    damping *= (curved if curved != 0 else unit / n_points) + unit / n_points * shorten
    model = np.ascontiguousarray(rows.T), np.ascontiguousarray(blocks.transpose(1, 2, 0))
    single = np.array([np.count_nonzero(helpers[r]) == 1 for r in range(n_rows)])
    # Block principal pivoting (Portugal, Judice, Vicente 1994): free multipliers that are negative and others whose
    # gradient is positive have the wrong state. All of them change their state at once, as long as their number falls,
    # and then for a few more rounds.
    free, wrong = np.empty(y.shape, np.bool_), np.empty(y.shape, np.bool_)
    for r in range(n_rows):
        free[r] = (y[r] > 0) | exact[r]
    least, most = -_ZERO * np.abs(y).max(), _ZERO * np.abs(slack).max()
    fewest, patience = y.size + 1, _FULL_PIVOTS
    for _ in range(_PIVOTS):
        new, left = _multipliers(rows, helpers, blocks, slack, y, damping, free, single, *model)
        n_wrong = last = 0
        for r in range(n_rows):
            for k in range(n_clusters):
                wrong[r, k] = (new[r, k] < least and not exact[r]) if free[r, k] else left[r, k] > most
                if wrong[r, k]:
                    n_wrong, last = n_wrong + 1, r * n_clusters + k
        if n_wrong == 0:
            for r in range(n_rows):
                if not exact[r]:
                    new[r] = np.maximum(new[r], 0.0)
            return unit * new
        if n_wrong < fewest:
            fewest, patience = n_wrong, _FULL_PIVOTS
        elif patience > 0:
            patience -= 1
        else:
            # Murty's rule: only the last of them changes. This always ends.
            wrong[:] = False
            wrong[last // n_clusters, last % n_clusters] = True
        free ^= wrong
    return np.empty((0, 0))


@njit(cache=True, nogil=True)
def _multipliers(rows, helpers, blocks, slack, y, damping, free, single, columns, by_pair):  # type: ignore[no-untyped-def]
    """The multipliers if all that are not free become zero, and the gradient there.

    In every cluster, the equation ``helpers' y = 0`` of a helper gives the multiplier of a free row that has this
    helper alone, and that row's gradient gives the helper. The linear system that is left is for the other free rows.
    """
    n_clusters, n_helpers = y.shape[1], helpers.shape[1]
    step = np.where(free, 0.0, -y)
    # The row that each helper's equation gives, or -1, and 1 / its coefficient.
    given, weight = np.full((n_helpers, n_clusters), -1), np.zeros((n_helpers, n_clusters))
    others = free.copy()
    for r in np.flatnonzero(single):
        p = np.abs(helpers[r]).argmax()
        for k in range(n_clusters):
            if free[r, k]:
                given[p, k], weight[p, k] = r, 1.0 / helpers[r, p]
    if n_helpers > 0:
        sums = helpers.T @ (y + step)
        for p in range(n_helpers):
            for k in range(n_clusters):
                if given[p, k] >= 0:
                    others[given[p, k], k] = False
                    step[given[p, k], k] -= sums[p, k] * weight[p, k]
    row, cluster = np.nonzero(others)
    if len(row) > 0:
        # If one of the other multipliers rises by one, those that the equations give fall by so much.
        falls = np.empty((len(row), n_helpers))
        directions, right = rows[row], np.empty(len(row))
        left = _gradient(rows, columns, blocks, slack, step, damping)
        for a in range(len(row)):
            k = cluster[a]
            right[a] = left[row[a], k]
            for p in range(n_helpers):
                falls[a, p] = helpers[row[a], p] * weight[p, k]
                if falls[a, p] != 0:
                    directions[a] -= falls[a, p] * rows[given[p, k]]
                    right[a] -= falls[a, p] * left[given[p, k], k]
        solved = _solved(_lower_triangle(directions, falls, cluster, by_pair, damping), right)
        for a in range(len(row)):
            step[row[a], cluster[a]] += solved[a]
            for p in range(n_helpers):
                if falls[a, p] != 0:
                    step[given[p, cluster[a]], cluster[a]] -= falls[a, p] * solved[a]
    left = _gradient(rows, columns, blocks, slack, step, damping)
    for k in range(n_clusters):
        values = np.array([left[given[p, k], k] * weight[p, k] for p in range(n_helpers)])
        for p in range(n_helpers):
            left[:, k] -= helpers[:, p] * values[p]
    return y + step, left


@njit(cache=True, nogil=True)
def _gradient(rows, columns, blocks, slack, step, damping):  # type: ignore[no-untyped-def]
    prices = columns @ step
    for j in range(len(blocks)):
        prices[j] = blocks[j] @ prices[j]
    return slack - rows @ prices - damping * step


@njit(cache=True, nogil=True)
def _solved(matrix, right):  # type: ignore[no-untyped-def]
    """The solution of a positive definite system, of whose matrix the lower triangle is given."""
    factor = np.linalg.cholesky(matrix)
    n = len(right)
    for i in range(n):
        right[i] /= factor[i, i]
        for b in range(i + 1, n):
            right[b] -= factor[b, i] * right[i]
    for i in range(n - 1, -1, -1):
        for b in range(i + 1, n):
            right[i] -= factor[b, i] * right[b]
        right[i] /= factor[i, i]
    return right


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _lower_triangle(directions, falls, cluster, by_pair, damping):  # type: ignore[no-untyped-def]
    """The lower triangle of the Hessian of n multipliers, shape (n, n); `cluster` names the cluster of each.

    If multiplier a rises by one, the prices of its cluster change by ``directions[a]``, shape (n, n_groups), and the
    multipliers that the equations give fall by ``falls[a]``. `by_pair` has the blocks of the curvature, shape
    (n_clusters, n_clusters, n_groups). The entries above the diagonal are zero.
    """
    n, n_groups = directions.shape
    hessian = np.zeros((n, n))
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for j in range(n_groups):
                total += directions[a, j] * directions[b, j] * by_pair[cluster[a], cluster[b], j]
            if cluster[a] == cluster[b]:
                for p in range(falls.shape[1]):
                    total += damping * falls[a, p] * falls[b, p]
            hessian[a, b] = total
        hessian[a, a] += damping
    return hessian
