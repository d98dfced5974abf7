"""Loops of the methods with group prices: the Hessian of Newton's steps, and tables of whole numbers.

The cheapest columns of a table whose rows have given sums are found by dynamic programming.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST


@njit(cache=True, nogil=True, fastmath=FAST)
def lower_triangle(directions, falls, cluster, by_pair, damping):  # type: ignore[no-untyped-def]
    """The lower triangle of the Hessian of n multipliers, shape (n, n); `cluster` names the cluster of each.

    If multiplier a rises by one, the prices of its cluster change by ``directions[a]``, shape (n, n_groups), and the
    multipliers that the equations give fall by ``falls[a]``. `by_pair` has the blocks of the curvature, shape
    (n_clusters, n_clusters, n_groups). The entries above the diagonal are not set.
    """
    n, n_groups = directions.shape
    hessian = np.empty((n, n))
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
