"""The inner loop of VFC in one compiled function, for small data, where Python takes longer than the passes."""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.assignment import _soft

SMALL_ENTRIES = 200_000
"""The compiled loop is used if the number of points times clusters is at most this. The number of threads does not
matter for this choice, because the loop adds in another order than NumPy, and results must not depend on threads."""


@njit(cache=True, nogil=True)
def bound_loop(  # type: ignore[no-untyped-def]
    a, group, count, row_min_sum, target, lam, lipschitz, max_iter, tol, least_share
):
    """The loop of `fairclust.methods.variational.bound.bound_iteration`, which explains it.

    Returns the scale, offset, mass, clustering term, number of iterations and last bound. The bound is not finite if
    the iteration has diverged.
    """
    n_tiles, n_clusters = a.shape[0], a.shape[1]
    n_groups = len(target)
    per_tile = np.empty((n_tiles, n_clusters))
    potential, logsums = np.empty(n_tiles), np.empty(n_tiles)
    products = np.empty((0, 0, 0), a.dtype)
    shifted = np.empty((n_groups, n_clusters), a.dtype)
    offset = np.zeros((n_groups, n_clusters))
    mass, b = np.zeros((n_groups, n_clusters)), np.zeros((n_groups, n_clusters))
    floor = np.zeros(n_groups)
    bound, logsum, clustering, t = np.inf, 0.0, 0.0, 0
    scale = 1.0
    while True:
        # One pass over the points: sums of the softmax rows per group.
        taken_out = scale * row_min_sum
        for j in range(n_groups):
            base = offset[j].min()
            for k in range(n_clusters):
                shifted[j, k] = offset[j, k] - base
            for i in range(n_tiles):
                if group[i] == j:
                    taken_out += count[i] * base
        _soft(
            0,
            n_tiles,
            a,
            a.dtype.type(scale),
            shifted,
            group,
            count,
            None,
            per_tile,
            potential,
            logsums,
            products,
        )
        mass[:] = 0.0
        for i in range(n_tiles):
            for k in range(n_clusters):
                mass[group[i], k] += per_tile[i, k]
        if t == 0:
            for j in range(n_groups):
                floor[j] = least_share * mass[j].sum()
        for j in range(n_groups):
            for k in range(n_clusters):
                mass[j, k] = max(mass[j, k], floor[j])
        clustering = potential.sum() + row_min_sum
        new_logsum = logsums.sum() - taken_out
        if t > 0:
            linear = clustering + lam * (mass * b).sum()
            new_bound = (1.0 - 1.0 / lipschitz) * linear - (new_logsum - logsum)
            at_rest = t > 2 and abs(new_bound - bound) <= tol * abs(bound)
            bound = new_bound
            if at_rest or not np.isfinite(new_bound):
                break
        logsum = new_logsum
        if t >= max_iter:
            break
        for k in range(n_clusters):
            total = mass[:, k].sum()
            for j in range(n_groups):
                b[j, k] = 1.0 / total - target[j] / mass[j, k]
                offset[j, k] += (lam / lipschitz) * b[j, k]
        t += 1
        scale = 1.0 + t / lipschitz
    return scale, offset, mass, clustering, t, bound
