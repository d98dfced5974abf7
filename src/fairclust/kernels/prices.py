"""The parts of Newton's steps of the methods with group prices that LAPACK does not compute.

A fit of few rows takes thousands of steps, and calls of NumPy on their small tables would take most of its time. LAPACK
solves the systems of equations between these kernels, because numba takes half a minute to compile such solvers.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST


@njit(cache=True, nogil=True)
def curvature(mass, moments, temperature=1.0, damping=0.0, shorten=0.0):  # type: ignore[no-untyped-def]
    """Minus the derivative of the soft table with respect to the prices: ``(diag(n_j) - M_j) / T`` for each group j.

    The shape is (n_groups, n_clusters, n_clusters). The prices of a group do not change the tables of others. The
    damping is added to the diagonal: `damping` times the sum of the mean of the diagonal and of `shorten`.
    """
    blocks, total = np.empty(moments.shape), 0.0
    n_groups, n_clusters = mass.shape
    for j in range(n_groups):
        for k in range(n_clusters):
            for m in range(n_clusters):
                blocks[j, k, m] = -moments[j, k, m] / temperature
            blocks[j, k, k] += mass[j, k] / temperature
            total += blocks[j, k, k]
    added = damping * ((total / mass.size if total != 0 else 1.0) + shorten)
    for j in range(n_groups):
        for k in range(n_clusters):
            blocks[j, k, k] += added
    return blocks


@njit(cache=True, nogil=True, fastmath=FAST)
def equal_shares_system(inverse, mass, shares):  # type: ignore[no-untyped-def]
    """The steps of the groups on their own, and the matrix and the right side of the system that joins them.

    `inverse` needs its upper triangles only, and gets the lower ones. A gradient proportional to the shares changes no
    step. Without that part there is less rounding error.
    """
    n_groups, n_clusters = mass.shape
    steps = np.zeros(mass.shape)
    matrix, right, sizes = np.zeros((n_clusters, n_clusters)), np.zeros(n_clusters), np.zeros(n_clusters)
    for j in range(n_groups):
        for k in range(n_clusters):
            sizes[k] += mass[j, k]
            for m in range(k):
                inverse[j, k, m] = inverse[j, m, k]
    for j in range(n_groups):
        square = shares[j] ** 2
        for k in range(n_clusters):
            total = 0.0
            for m in range(n_clusters):
                total += inverse[j, k, m] * (mass[j, m] - shares[j] * sizes[m])
                matrix[k, m] += square * inverse[j, k, m]
            steps[j, k] = total
            right[k] += shares[j] * total
    return steps, matrix, right


@njit(cache=True, nogil=True, fastmath=FAST)
def equal_shares_step(y, steps, inverse, shares, joint):  # type: ignore[no-untyped-def]
    """The multipliers `y` after the steps of the groups, corrected by `joint`, the solution of `equal_shares_system`.

    `steps` has the shape (n_groups, n_clusters). The last group has no multipliers, so `y` and what is returned have a
    row less, and its step is subtracted from those of the others.
    """
    n_groups, n_clusters = steps.shape
    new = y.copy()
    for j in range(n_groups):
        for k in range(n_clusters):
            total = steps[j, k]
            for m in range(n_clusters):
                total -= shares[j] * inverse[j, k, m] * joint[m]
            if j < n_groups - 1:
                new[j, k] += total
            else:
                for i in range(j):
                    new[i, k] -= total
    return new


@njit(cache=True, nogil=True, fastmath=FAST)
def scaled_model(curved, mass, damping, shorten, rows, limits, unit, n_points):  # type: ignore[no-untyped-def]
    """The model of `step_of_rows` in numbers of order one: curvature, slack and damping.

    `curved` is that of `curvature`, and the returned one has the shape (n_clusters, n_clusters, n_groups). The slack is
    divided by the number of points.
    """
    n_groups, n_clusters = mass.shape
    scale = unit / n_points
    blocks = np.empty((n_clusters, n_clusters, n_groups))
    for j in range(n_groups):
        for k in range(n_clusters):
            for m in range(n_clusters):
                blocks[k, m, j] = scale * curved[j, k, m]
    slack, total = np.empty((len(rows), n_clusters)), 0.0
    for r in range(len(rows)):
        for k in range(n_clusters):
            above = -limits[r, k if limits.shape[1] > 1 else 0]
            for j in range(n_groups):
                above += rows[r, j] * mass[j, k]
                total += rows[r, j] ** 2 * blocks[k, k, j]
            slack[r, k] = above / n_points
    mean = total / slack.size
    return blocks, slack, damping * ((mean if mean != 0 else scale) + scale * shorten)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _gradient(rows, blocks, slack, step, damping):  # type: ignore[no-untyped-def]
    n_groups, n_clusters = rows.shape[1], step.shape[1]
    prices, pulls = np.zeros((n_clusters, n_groups)), np.zeros((n_clusters, n_groups))
    for r in range(len(rows)):
        for k in range(n_clusters):
            for j in range(n_groups):
                prices[k, j] += rows[r, j] * step[r, k]
    for k in range(n_clusters):
        for m in range(n_clusters):
            for j in range(n_groups):
                pulls[k, j] += blocks[k, m, j] * prices[m, j]
    left = np.empty(step.shape)
    for r in range(len(rows)):
        for k in range(n_clusters):
            left[r, k] = slack[r, k] - damping * step[r, k]
            for j in range(n_groups):
                left[r, k] -= rows[r, j] * pulls[k, j]
    return left


@njit(cache=True, nogil=True, fastmath=FAST)
def reduced_system(model, free):  # type: ignore[no-untyped-def]
    """The linear system of the free multipliers if all others become zero.

    In every cluster, the equation ``helpers' y = 0`` of a helper gives the multiplier of a free row that has this
    helper alone, and that row's gradient gives the helper. The system is for the other free rows. `model` holds rows,
    helpers, blocks, slack, multipliers and damping, see `step_of_rows`.

    Returns
    -------
    matrix, right : ndarray of shape (n, n), (n,)
        The lower triangle of the matrix, and the right side.
    reduced : tuple
        These arrays, for `expanded`:
    step : ndarray of shape (n_rows, n_clusters)
        The step without the solution.
    given, weight : ndarray of shape (n_helpers, n_clusters)
        For each helper and cluster, the row whose multiplier the equation gives (-1: none), and one divided by the
        helper's coefficient in this row.
    row, cluster : ndarray of shape (n,)
        The row and the cluster of every multiplier in the system.
    falls : ndarray of shape (n, n_helpers)
        By how much the multiplier that a helper's equation gives falls if one in the system rises by one.
    """
    rows, helpers, blocks, slack, y, damping = model
    n_rows, n_groups = rows.shape
    n_clusters, n_helpers = y.shape[1], helpers.shape[1]
    step, is_given = np.zeros(y.shape), np.zeros(y.shape, np.bool_)
    given, weight = np.empty((n_helpers, n_clusters), np.int64), np.zeros((n_helpers, n_clusters))
    given[:] = -1
    for r in range(n_rows):
        alone, n_alone = 0, 0
        for p in range(n_helpers):
            if helpers[r, p] != 0:
                alone, n_alone = p, n_alone + 1
        for k in range(n_clusters):
            if not free[r, k]:
                step[r, k] = -y[r, k]
            elif n_alone == 1:
                given[alone, k], weight[alone, k] = r, 1.0 / helpers[r, alone]
    for p in range(n_helpers):
        for k in range(n_clusters):
            if given[p, k] >= 0:
                is_given[given[p, k], k] = True
                total = 0.0
                for r in range(len(rows)):
                    total += helpers[r, p] * (y[r, k] + step[r, k])
                step[given[p, k], k] -= total * weight[p, k]
    row, cluster, n = np.empty(y.size, np.int64), np.empty(y.size, np.int64), 0
    for r in range(n_rows):
        for k in range(n_clusters):
            if free[r, k] and not is_given[r, k]:
                row[n], cluster[n] = r, k
                n += 1
    falls, directions = np.empty((n, n_helpers)), np.empty((n, n_groups))
    matrix, right = np.zeros((n, n)), np.empty(n)
    left = _gradient(rows, blocks, slack, step, damping)
    for a in range(n):
        k = cluster[a]
        right[a] = left[row[a], k]
        directions[a] = rows[row[a]]
        for p in range(n_helpers):
            falls[a, p] = helpers[row[a], p] * weight[p, k]
            if falls[a, p] != 0:
                for j in range(n_groups):
                    directions[a, j] -= falls[a, p] * rows[given[p, k], j]
                right[a] -= falls[a, p] * left[given[p, k], k]
        for b in range(a + 1):
            total = 0.0
            for j in range(n_groups):
                total += directions[a, j] * directions[b, j] * blocks[k, cluster[b], j]
            if cluster[b] == k:
                for p in range(n_helpers):
                    total += damping * falls[a, p] * falls[b, p]
            matrix[a, b] = total
        matrix[a, a] += damping
    return matrix, right, (step, given, weight, row[:n], cluster[:n], falls)


@njit(cache=True, nogil=True, fastmath=FAST)
def expanded(model, free, exact, least, most, solved, reduced):  # type: ignore[no-untyped-def]
    """The multipliers by the solution of `reduced_system`, which of them have the wrong state, and how many do.

    Free multipliers must not be below `least`, and the gradient of others not above `most`.
    """
    rows, helpers, blocks, slack, y, damping = model
    step, given, weight, row, cluster, falls = reduced
    n_helpers = helpers.shape[1]
    for a in range(len(row)):
        step[row[a], cluster[a]] += solved[a]
        for p in range(n_helpers):
            if falls[a, p] != 0:
                step[given[p, cluster[a]], cluster[a]] -= falls[a, p] * solved[a]
    left = _gradient(rows, blocks, slack, step, damping)
    new, wrong, n_wrong = np.empty(y.shape), np.zeros(y.shape, np.bool_), 0
    values = np.empty(n_helpers)
    for k in range(y.shape[1]):
        for p in range(n_helpers):
            values[p] = left[given[p, k], k] * weight[p, k]
        for r in range(len(rows)):
            new[r, k], gradient = y[r, k] + step[r, k], left[r, k]
            for p in range(n_helpers):
                gradient -= helpers[r, p] * values[p]
            wrong[r, k] = (new[r, k] < least and not exact[r]) if free[r, k] else gradient > most
            n_wrong += wrong[r, k]
    return new, wrong, n_wrong
