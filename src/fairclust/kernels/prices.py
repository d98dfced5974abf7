"""The Hessian of Newton's steps of the methods with group prices."""

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
