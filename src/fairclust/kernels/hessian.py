"""The Hessian of a few of the dual multipliers, for Newton steps."""

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
