"""The systems of single groups in a Newton step with bands of shares, which are small and many."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _eliminate(rows, n, width):  # type: ignore[no-untyped-def]
    """Solve in place the n equations whose coefficients are followed by right-hand sides; False if singular."""
    for p in range(n):
        best = p
        for r in range(p + 1, n):
            if abs(rows[r, p]) > abs(rows[best, p]):
                best = r
        if not abs(rows[best, p]) > 0.0:
            return False
        if best != p:
            for c in range(p, width):
                rows[p, c], rows[best, c] = rows[best, c], rows[p, c]
        inverse = 1.0 / rows[p, p]
        for c in range(p, width):
            rows[p, c] *= inverse
        for r in range(n):
            factor = rows[r, p]
            if r != p and factor != 0.0:
                for c in range(p, width):
                    rows[r, c] -= factor * rows[p, c]
    return True


@njit(cache=True, nogil=True)
def solve_groups(blocks, limits, free, y, slack, damping, solved):  # type: ignore[no-untyped-def]
    """Solve for the free multipliers of every group, as functions of c and s (`fairclust.methods.price.quadratic`).

    Multipliers, shape (n_groups, 2 * n_clusters), belong first to the upper, then to the lower bounds; those that are
    not free become zero. `solved` gets the step of each: a constant, the coefficients of c and those of s. Returns
    False if a system is singular.
    """
    n_groups, n_both = free.shape
    n_clusters = n_both // 2
    width = n_both + 1
    rows = np.empty((n_both, n_both + width))
    at = np.empty(n_both, np.int64)
    for j in range(n_groups):
        B = blocks[j]
        n = 0
        for i in range(n_both):
            solved[j, i] = 0.0
            if free[j, i]:
                at[n] = i
                n += 1
            else:
                solved[j, i, 0] = -y[j, i]
        for r in range(n):
            side, k = divmod(at[r], n_clusters)
            sign = 1.0 - 2.0 * side
            row = rows[r]
            for q in range(n):
                other, m = divmod(at[q], n_clusters)
                row[q] = sign * (1.0 - 2.0 * other) * B[k, m]
            row[r] += damping
            row[n] = slack[j, at[r]]
            for m in range(n_clusters):
                fixed = solved[j, m, 0] - solved[j, n_clusters + m, 0]
                row[n] -= sign * B[k, m] * fixed
                row[n + 1 + m] = sign * B[k, m]
                row[n + 1 + n_clusters + m] = 0.0
            row[n + 1 + n_clusters + k] = sign * limits[j, side]
        if not _eliminate(rows, n, n + width):
            return False
        for r in range(n):
            solved[j, at[r]] = rows[r, n : n + width]
    return True
