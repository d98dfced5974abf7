"""The cheapest columns of a table with two rows that have given sums, by dynamic programming."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def cheapest_columns(costs, wanted, room):  # type: ignore[no-untyped-def]
    """One entry (i, j) of each ``costs[k]`` so that the entries add up to the last of `wanted` at the least sum.

    Sums over the first k columns are at most `room` away from ``wanted[k]``. Returns the entries, shape (n_columns, 2),
    and the sum of their costs, infinity if there are none. Infinite costs exclude entries.
    """
    n_columns, n_options = costs.shape[:2]
    width = 2 * room + 1
    best = np.full((width, width), np.inf)
    best[room, room] = 0.0
    taken = np.zeros((n_columns, width, width), np.int32)
    before = np.zeros(2, np.int64)
    for k in range(n_columns):
        new = np.full((width, width), np.inf)
        for i in range(n_options):
            di = i - (wanted[k, 0] - before[0])
            for j in range(n_options):
                cost = costs[k, i, j]
                if cost == np.inf:
                    continue
                dj = j - (wanted[k, 1] - before[1])
                for p in range(max(0, -di), min(width, width - di)):
                    for q in range(max(0, -dj), min(width, width - dj)):
                        total = best[p, q] + cost
                        if total < new[p + di, q + dj]:
                            new[p + di, q + dj] = total
                            taken[k, p + di, q + dj] = i * n_options + j
        best = new
        before[:] = wanted[k]
    picked = np.zeros((n_columns, 2), np.int64)
    p, q = room, room
    if best[p, q] == np.inf:
        return picked, np.inf
    for k in range(n_columns - 1, -1, -1):
        picked[k, 0], picked[k, 1] = divmod(taken[k, p, q], n_options)
        step = wanted[k] - (wanted[k - 1] if k else np.zeros(2, np.int64))
        p, q = p + step[0] - picked[k, 0], q + step[1] - picked[k, 1]
    return picked, best[room, room]
