"""The linear algebra of Newton's steps of the methods with group prices."""

from __future__ import annotations

import numpy as np
from numba import njit

from fairclust.kernels.fast import FAST


@njit(cache=True, nogil=True)
def step_of_equal_shares(mass, moments, temperature, damping, shorten, shares):  # type: ignore[no-untyped-def]
    """The step of the prices with ``sum_j shares_j step_j = 0`` that maximises the damped model with gradient `mass`.

    It is compiled because small problems take thousands of steps, in which NumPy's calls would take most of the time.
    """
    n_groups, n_clusters = mass.shape
    blocks = -moments / temperature
    curved = 0.0
    for j in range(n_groups):
        for k in range(n_clusters):
            blocks[j, k, k] += mass[j, k] / temperature
            curved += blocks[j, k, k]
    curved /= mass.size
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
