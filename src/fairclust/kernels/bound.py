"""The paper's iteration for the assignment at fixed potentials: bound optimisation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from fairclust.kernels.assignment import Potentials, _soft
from fairclust.kernels.tiles import add_by_group

# The published program keeps the mass of a group in a cluster at 1e-15 or above. Here it is at least this fraction of
# the group's mass.
_LEAST_SHARE = 1e-20
# The iteration ends when the bound changes by less than the fraction _TOL, from the third update on, or after _MAX_ITER
# updates, as in the published program.
_TOL, _MAX_ITER = 1e-5, 10_000
# If the number of points times clusters is at most this, the passes are compiled with the loop, because Python takes
# longer than they do. The number of threads does not matter for this choice: the compiled passes add in another order
# than NumPy, and results must not depend on threads.
_SMALL_ENTRIES = 200_000


def bound_iteration(
    points: Any, *, lam: float, lipschitz: float, target: np.ndarray
) -> tuple[int, np.ndarray, np.ndarray, float, float]:
    """The paper's inner loop (equation 13) on the group-by-cluster table: t, B, soft counts, clustering term and bound.

    After t updates, with both terms divided by L as in the published program, ``log s_pk = -(1 + t/L) a_pk - B[g(p),
    k]`` plus a constant, B being the sum of ``(lam/L) b``. The clustering term is ``sum_pk s_pk a_pk``. If the
    iteration has diverged, the bound is not finite.
    """
    shape = len(target), points.n_clusters
    is_single = points.rounding > 1e-10
    numbers = float(lam), float(lipschitz), is_single
    target = np.asarray(target, dtype=float)
    offset, b, floor, before = np.zeros(shape), np.zeros(shape), np.zeros(shape[0]), np.full(2, np.inf)
    if isinstance(points, Potentials) and points.a.size <= _SMALL_ENTRIES:
        place = points.a, points.layout, points.row_min_sum
        mass, clustering, t = _small_loop(*place, target, *numbers, offset, b, floor, before)
    else:
        for t in range(_MAX_ITER + 1):
            mass, clustering, logsum, _ = points.soft(1.0 + t / lipschitz, offset)
            if _update(t, mass, clustering, logsum, target, *numbers, offset, b, floor, before):
                break
    return t, offset, mass, clustering, before[0]


@njit(cache=True, nogil=True)
def _update(t, mass, clustering, logsum, target, lam, lipschitz, single, offset, b, floor, before):  # type: ignore[no-untyped-def]
    """Add ``(lam/L) b`` to the offset, from the sums of the pass after t updates, unless the iteration ends here.

    `b` is that of the update before, and `before` holds the bound and the logsum of the pass before. All arrays are
    changed. Returns whether the iteration has ended.
    """
    n_groups, n_clusters = mass.shape
    for j in range(n_groups):
        if t == 0:
            floor[j] = _LEAST_SHARE * mass[j].sum()
        base = offset[j].min()
        for k in range(n_clusters):
            if single:
                # A pass in single precision has rounded the offset, for all points of the group alike. Without this
                # correction, the error of the bound can exceed the tolerance.
                exact = offset[j, k] - base
                logsum -= mass[j, k] * (exact - np.float64(np.float32(exact)))
            mass[j, k] = max(mass[j, k], floor[j])
    if t > 0:
        # sum s log(s/s_in) + s (a + lam b), with log s = log s_in - (a + lam b)/L - log Z.
        linear = clustering + lam * (mass * b).sum()
        bound = (1.0 - 1.0 / lipschitz) * linear - (logsum - before[1])
        at_rest = t > 2 and abs(bound - before[0]) <= _TOL * abs(before[0])
        before[0] = bound
        if at_rest or not np.isfinite(bound):
            return True
    before[1] = logsum
    if t >= _MAX_ITER:
        return True
    for k in range(n_clusters):
        total = mass[:, k].sum()
        for j in range(n_groups):
            b[j, k] = 1.0 / total - target[j] / mass[j, k]
            offset[j, k] += (lam / lipschitz) * b[j, k]
    return False


@njit(cache=True, nogil=True)
def _small_loop(a, layout, row_min_sum, target, lam, lipschitz, single, offset, b, floor, before):  # type: ignore[no-untyped-def]
    """The updates and their passes over the points in one compiled function: mass, clustering term and their number."""
    n_tiles, n_clusters = a.shape[0], a.shape[1]
    n_groups = len(target)
    per_tile = np.empty((n_tiles, n_clusters))
    potential, logsums = np.empty(n_tiles), np.empty(n_tiles)
    products = np.empty((0, 0, 0), a.dtype)
    shifted = np.empty((n_groups, n_clusters), a.dtype)
    mass = np.zeros((n_groups, n_clusters))
    t = 0
    while True:
        scale = 1.0 + t / lipschitz
        taken_out = scale * row_min_sum
        for j in range(n_groups):
            base = offset[j].min()
            for k in range(n_clusters):
                shifted[j, k] = offset[j, k] - base
            for i in range(n_tiles):
                if layout.group[i] == j:
                    taken_out += layout.count[i] * base
        sums = per_tile, potential, logsums, products
        _soft(0, n_tiles, a, a.dtype.type(scale), shifted, layout, None, *sums)
        mass[:] = 0.0
        add_by_group(per_tile, layout.group, mass)
        clustering = potential.sum() + row_min_sum
        logsum = logsums.sum() - taken_out
        if _update(t, mass, clustering, logsum, target, lam, lipschitz, single, offset, b, floor, before):
            return mass, clustering, t
        t += 1
