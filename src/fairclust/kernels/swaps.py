"""K-medoids by swaps."""

from __future__ import annotations

import numpy as np
from numba import njit

# A swap must lower the cost by this fraction, so that rounding errors cannot make the search go round in a circle.
_LEAST_GAIN = 1e-9


@njit(cache=True, nogil=True)
def _two_nearest(distances, medoids, points, first, to_first, to_second):  # type: ignore[no-untyped-def]
    """Find the nearest medoid of these points, as a position in `medoids`, and the distances to the nearest two."""
    for p in points:
        to_first[p] = to_second[p] = np.inf
        for k in range(len(medoids)):
            d = distances[medoids[k], p]
            if d < to_first[p]:
                first[p], to_first[p], to_second[p] = k, d, to_first[p]
            elif d < to_second[p]:
                to_second[p] = d


@njit(cache=True, nogil=True)
def swap_medoids(distances, medoids):  # type: ignore[no-untyped-def]
    """Improve at least two medoids, in place, until no swap with another point lowers the sum of distances.

    This is FasterPAM (Schubert and Rousseeuw, Information Systems 101, 2021): each point in turn replaces the medoid
    for which the cost falls most, if it falls. `distances` is the symmetric table of all points.
    """
    n, n_medoids = len(distances), len(medoids)
    first, to_first, to_second = np.empty(n, np.int64), np.empty(n), np.empty(n)
    stale = np.arange(n)
    candidate = since_swap = 0
    while since_swap < n:
        if len(stale):
            _two_nearest(distances, medoids, stale, first, to_first, to_second)
            removed = np.bincount(first, to_second - to_first, n_medoids)
            enough = -_LEAST_GAIN * to_first.sum()
            stale = stale[:0]
        # The change of the cost if the candidate becomes a medoid, and if it replaces each of the medoids.
        row, added, changes = distances[candidate], 0.0, removed.copy()
        for p in range(n):
            if row[p] < to_second[p]:
                closer = min(row[p] - to_first[p], 0.0)
                added += closer
                changes[first[p]] += row[p] - to_second[p] - closer
        k = np.argmin(changes)
        if added + changes[k] < enough:
            stale = np.flatnonzero((distances[medoids[k]] <= to_second) | (row < to_second))
            medoids[k] = candidate
            since_swap = 0
        since_swap += 1
        candidate = (candidate + 1) % n
    return medoids
