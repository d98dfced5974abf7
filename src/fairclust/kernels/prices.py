"""Loops of the methods with group prices: systems of Newton's steps, and tables of whole numbers.

The Hessian of the multipliers is computed at those that are free, or its products with them for conjugate gradients.
The cheapest columns of a table whose rows have given sums are found by dynamic programming.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST


@njit(cache=True, nogil=True, fastmath=FAST)
def lower_triangle(rows, by_pair, row, cluster, damping):  # type: ignore[no-untyped-def]
    """The lower triangle of ``rows @ blocks @ rows'``, with `damping` on the diagonal, at chosen rows and clusters.

    `by_pair` holds the blocks with the groups last, shape (n_clusters, n_clusters, n_groups). The entries above the
    diagonal are not set.
    """
    n, n_groups = len(row), rows.shape[1]
    hessian = np.empty((n, n))
    for a in range(n):
        for b in range(a + 1):
            total = 0.0
            for j in range(n_groups):
                total += rows[row[a], j] * rows[row[b], j] * by_pair[cluster[a], cluster[b], j]
            hessian[a, b] = total
        hessian[a, a] += damping
    return hessian


@njit(cache=True, nogil=True)
def multiply(values, columns, first, rows, damping, v, out):  # type: ignore[no-untyped-def]
    """The product of ``rows @ blocks @ rows' + damping`` with v, both of shape (n_rows, n_clusters)."""
    n_rows, n_groups = rows.shape
    n_clusters = v.shape[1]
    prices, curved = np.zeros(n_clusters), np.empty(n_clusters)
    for r in range(n_rows):
        for k in range(n_clusters):
            out[r, k] = damping * v[r, k]
    for j in range(n_groups):
        prices[:] = 0.0
        for r in range(n_rows):
            if rows[r, j] != 0:
                for k in range(n_clusters):
                    prices[k] += rows[r, j] * v[r, k]
        for k in range(n_clusters):
            total = 0.0
            for i in range(first[j * n_clusters + k], first[j * n_clusters + k + 1]):
                total += values[i] * prices[columns[i]]
            curved[k] = total
        for r in range(n_rows):
            if rows[r, j] != 0:
                for k in range(n_clusters):
                    out[r, k] += rows[r, j] * curved[k]


@njit(cache=True, nogil=True)
def solve_free(values, columns, first, rows, damping, squares, right, free, step, most, accuracy):  # type: ignore[no-untyped-def]
    """Add to the `free` entries of `step` the solution for `right`; False if it takes more than `most` products.

    The iteration, preconditioned by the diagonal `squares`, ends at `accuracy` times the first residual.
    """
    shape = right.shape
    residual, direction, curved = np.empty(shape), np.empty(shape), np.empty(shape)
    size = 0.0
    for r in range(shape[0]):
        for k in range(shape[1]):
            residual[r, k] = right[r, k] if free[r, k] else 0.0
            direction[r, k] = residual[r, k] / squares[r, k]
            size += residual[r, k] * direction[r, k]
    enough = accuracy**2 * size
    for _ in range(most):
        if size <= enough:
            return True
        multiply(values, columns, first, rows, damping, direction, curved)
        bent = 0.0
        for r in range(shape[0]):
            for k in range(shape[1]):
                if free[r, k]:
                    bent += direction[r, k] * curved[r, k]
        length, before = size / bent, size
        size = 0.0
        for r in range(shape[0]):
            for k in range(shape[1]):
                if free[r, k]:
                    step[r, k] += length * direction[r, k]
                    residual[r, k] -= length * curved[r, k]
                    size += residual[r, k] ** 2 / squares[r, k]
        for r in range(shape[0]):
            for k in range(shape[1]):
                direction[r, k] = residual[r, k] / squares[r, k] + size / before * direction[r, k]
    return False


@njit(cache=True, nogil=True)
def cheapest_columns(costs, options, wanted, room):  # type: ignore[no-untyped-def]
    """One of the `options` for each column, so that they add up to the last row of `wanted` at the least sum of costs.

    Option o, shape (n_groups,), costs ``costs[k, o]`` in column k, and infinite costs exclude it. Sums over the first k
    columns are at most `room` away from ``wanted[k]``. Returns the chosen options, shape (n_columns,), and the sum of
    their costs, infinity if there are none.
    """
    n_columns, n_options = costs.shape
    n_groups = options.shape[1]
    width = 2 * room + 1
    n_sums = width**n_groups
    # A sum is a number with one digit for each group, `room` if it is the wanted one.
    digits, places = np.empty((n_sums, n_groups), np.int64), np.empty(n_groups, np.int64)
    for j in range(n_groups):
        places[j] = width**j
        for p in range(n_sums):
            digits[p, j] = p // places[j] % width
    middle = room * places.sum()
    best = np.full(n_sums, np.inf)
    best[middle] = 0.0
    taken = np.zeros((n_columns, n_sums), np.int32)
    before = np.zeros(n_groups, np.int64)
    reached = np.zeros(n_sums, np.int64)
    for k in range(n_columns):
        n_reached = 0
        for p in range(n_sums):
            if best[p] < np.inf:
                reached[n_reached] = p
                n_reached += 1
        new = np.full(n_sums, np.inf)
        for o in range(n_options):
            cost = costs[k, o]
            if cost == np.inf:
                continue
            change = options[o] - wanted[k] + before
            shift = (change * places).sum()
            for i in range(n_reached):
                p = reached[i]
                total = best[p] + cost
                inside = True
                for j in range(n_groups):
                    digit = digits[p, j] + change[j]
                    inside &= (digit >= 0) & (digit < width)
                if inside and total < new[p + shift]:
                    new[p + shift] = total
                    taken[k, p + shift] = o
        best = new
        before = wanted[k].copy()
    chosen = np.zeros(n_columns, np.int64)
    p = middle
    if best[p] == np.inf:
        return chosen, np.inf
    for k in range(n_columns - 1, -1, -1):
        chosen[k] = taken[k, p]
        step = wanted[k] - (wanted[k - 1] if k else np.zeros(n_groups, np.int64))
        p -= ((options[chosen[k]] - step) * places).sum()
    return chosen, best[middle]
