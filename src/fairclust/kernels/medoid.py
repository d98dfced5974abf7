"""Exact medoids: the point of a cluster with the least sum of Euclidean distances to its other points.

Evaluating a point i means computing all its distances d_ij and their sum S_i. This gives lower bounds on the sums S_j
of all other points j, so that most points are ruled out without being evaluated:

* triangle inequality (Newling and Fleuret, "A Sub-Quadratic Exact Medoid Algorithm", 2017, the trimed
  algorithm): S_j >= abs(S_i - n d_ij);
* convexity of y -> sum_l ||y - x_l||: S_j >= S_i + g_i . (x_j - x_i), where g_i is the sum of the unit vectors from
  the other points to x_i;
* curvature, from the geometric median z alone: with u = x_j - z, t = ||u||, r_l = ||x_l - z|| and e_l the
  unit vector from z to x_l,  S_j >= S_z + g_z . u + sum_l (t^2 - (e_l . u)^2) / (2 (r_l + t)).

The last two are not part of trimed. They keep the search short in many dimensions, where the triangle
inequality gives weak bounds. The third holds because ||x_l - x_j|| = sqrt(a^2 + b) with a = r_l - e_l . u and
b = t^2 - (e_l . u)^2 >= 0, and sqrt(a^2 + b) - a = b / (sqrt(a^2 + b) + a) >= b / (2 (r_l + t)).

The approximate geometric median (a few Weiszfeld steps) is evaluated first, because it bounds all sums, although it is
not a candidate. Points are then tried in the order of their distance from it. Memory is O(n), and sums are float64.
Bounds are lowered by an estimate of the rounding errors of the sums, so that these never rule out the medoid.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

_WEISZFELD_STEPS = 20
# Terms of the curvature bound are pooled in rings around the centre, and candidates in blocks of consecutive ranks.
# With fewer rings or larger blocks the bound is weaker.
_RINGS = 16
_BLOCK = 64
# Sums whose relative difference is smaller than this count as equal. This is far above the rounding errors of sums.
_TIE = 1e-12
# Squares of smaller distances underflow, so points at such distances count as equal.
_SMALLEST = 1e-150


def medoids(
    X: np.ndarray, labels: np.ndarray, n_clusters: int, *, max_evaluations: int, exact_size: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row of X of every cluster's medoid, -1 for an empty cluster, its sum of distances, and whether it is proved.

    It is exact up to the rounding errors of float64 sums. If sums agree to 1e-12, it is the smallest row. In many
    dimensions the bounds are weaker, and the search may take O(n^2) time. In a cluster of more than `exact_size` points
    it stops after `max_evaluations` points, with the best of them.
    """
    # The sort is stable, so that the smallest position in a cluster is the smallest row of `X`.
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(n_clusters + 1))
    places, costs, proved = np.full(n_clusters, -1), np.zeros(n_clusters), np.ones(n_clusters, bool)
    for k, (begin, end) in enumerate(pairwise(ends)):
        if begin < end:
            rows, budget = order[begin:end], exact_size if end - begin <= exact_size else max_evaluations
            # The points are transposed, so that they are contiguous for each feature and loops vectorise.
            place, costs[k], proved[k] = _medoid(np.ascontiguousarray(X[rows].T, np.float64), budget)
            places[k] = rows[place]
    return places, costs, proved


@njit(cache=True, nogil=True)
def _distances_from(XT: NDArray, y: NDArray, out: NDArray) -> float:
    """Write the distance of every point from y, and return their sum."""
    d, n = XT.shape
    out[:] = 0.0
    for f in range(d):
        centre = y[f]
        for j in range(n):
            gap = XT[f, j] - centre
            out[j] += gap * gap
    for j in range(n):
        out[j] = np.sqrt(out[j])
    # With a single running sum, every addition would wait for the one before. Four sums are faster and round less.
    s0 = s1 = s2 = s3 = 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        s0 += out[j]
        s1 += out[j + 1]
        s2 += out[j + 2]
        s3 += out[j + 3]
    for j in range(whole, n):
        s0 += out[j]
    return (s0 + s1) + (s2 + s3)


@njit(cache=True, nogil=True)
def _raise_bounds(
    XT: NDArray, y: NDArray, total: float, distance: NDArray, scratch: NDArray, lower: NDArray
) -> NDArray:
    """Raise the lower bound on every point's sum to the bound that follows from the evaluation at y.

    Returns a subgradient at y of the sum of distances. Points equal to y add nothing to it.
    """
    d, n = XT.shape
    gradient = np.empty(d)
    inverse = linear = scratch
    for j in range(n):
        inverse[j] = 1.0 / distance[j] if distance[j] > _SMALLEST else 0.0
    for f in range(d):
        pull = 0.0
        for j in range(n):
            pull += (y[f] - XT[f, j]) * inverse[j]
        gradient[f] = pull
    linear[:] = total
    for f in range(d):
        slope, centre = gradient[f], y[f]
        for j in range(n):
            linear[j] += slope * (XT[f, j] - centre)
    # The rounding error of a sum of n terms is less than about n eps times the sum. The gradient's terms are unit
    # vectors, so its error times the distance is below n d eps times n * distance.
    relative = (n + 16.0) * 2.2e-16
    for j in range(n):
        reach = n * distance[j]
        bound = max(abs(total - reach), linear[j]) - relative * (total + (d + 1.0) * reach)
        if bound > lower[j]:
            lower[j] = bound
    return gradient


@njit(cache=True, nogil=True)
def _geometric_median(XT: NDArray, distance: NDArray, inverse: NDArray) -> NDArray:
    """Approximate minimiser of the sum of distances: Weiszfeld's iteration from the mean."""
    d, n = XT.shape
    y = np.empty(d)
    for f in range(d):
        y[f] = XT[f].mean()
    for _ in range(_WEISZFELD_STEPS):
        total = _distances_from(XT, y, distance)
        # Distances are at least `floor`, so that the step is finite if y is equal to a point.
        floor = 1e-9 * total / n
        if floor <= _SMALLEST:
            break
        weight = 0.0
        for j in range(n):
            inverse[j] = 1.0 / max(distance[j], floor)
            weight += inverse[j]
        for f in range(d):
            moved = 0.0
            for j in range(n):
                moved += XT[f, j] * inverse[j]
            y[f] = moved / weight
    return y


@njit(cache=True, nogil=True)
def _ring_moments(
    XT: NDArray, z: NDArray, distance: NDArray, order: NDArray
) -> tuple[NDArray, NDArray, NDArray]:
    """Pool the points in rings around z. Returns each ring's size, outer radius and sum of e e' over unit vectors e."""
    d, n = XT.shape
    size = np.zeros(_RINGS)
    radius = np.zeros(_RINGS)
    moment = np.zeros((_RINGS, d, d))
    unit = np.empty(d)
    for ring in range(_RINGS):
        first, last = ring * n // _RINGS, (ring + 1) * n // _RINGS
        size[ring] = last - first
        for p in range(first, last):
            j = order[p]
            r = distance[j]
            # Rounded up a little, because it is an upper bound on all radii of the ring.
            radius[ring] = max(radius[ring], r * (1.0 + 1e-12))
            if r <= _SMALLEST:
                continue
            for f in range(d):
                unit[f] = (XT[f, j] - z[f]) / r
            for f in range(d):
                for h in range(f + 1):
                    moment[ring, f, h] += unit[f] * unit[h]
    return size, radius, moment


@njit(cache=True, nogil=True, forceinline=True)
def _curvature(size: NDArray, radius: NDArray, moment: NDArray, t: float, matrix: NDArray) -> float:
    """Set `matrix` for candidates at distances up to t, and return the weight of the identity."""
    weight = 0.0
    matrix[:] = 0.0
    for ring in range(_RINGS):
        if size[ring] > 0 and radius[ring] + t > 0.0:
            share = 0.5 / (radius[ring] + t)
            weight += share * size[ring]
            for f in range(len(matrix)):
                for h in range(f + 1):
                    matrix[f, h] += share * moment[ring, f, h]
    return weight


@njit(cache=True, nogil=True, forceinline=True)
def _curved_bound(
    XT: NDArray, i: int, z: NDArray, total: float, gradient: NDArray, weight: float, matrix: NDArray
) -> float:
    """The bound on the sum of point i that follows from sum, gradient and curvature at z."""
    slope = 0.0
    square = 0.0
    form = 0.0
    for f in range(len(z)):
        u = XT[f, i] - z[f]
        slope += gradient[f] * u
        square += u * u
        row = 0.0
        for h in range(f):
            row += matrix[f, h] * (XT[h, i] - z[h])
        form += u * (2.0 * row + matrix[f, f] * u)
    return total + slope + weight * square - form


@njit(cache=True, nogil=True)
def _medoid(XT: NDArray, budget: int) -> tuple[int, float, bool]:
    """Medoid of the columns of XT, its cost, and whether all other columns were ruled out within the budget."""
    d, n = XT.shape
    distance = np.empty(n)
    scratch = np.empty(n)
    lower = np.zeros(n)
    sums = np.full(n, np.inf)  # of the points that were evaluated

    z = _geometric_median(XT, distance, scratch)
    total_z = _distances_from(XT, z, distance)
    order = np.argsort(distance, kind="mergesort")
    gradient = _raise_bounds(XT, z, total_z, distance, scratch, lower)
    size, radius, moment = _ring_moments(XT, z, distance, order)
    reach = distance.copy()
    # The matrix of the curvature bound for a block of candidates is ``weight`` times the identity minus `matrix`.
    matrix = np.empty((d, d))
    weight = 0.0
    rounding = (n + d * d + 64.0) * 4.4e-16

    best, proved = np.inf, True
    used = 0
    for p in range(n):
        i = order[p]
        if p % _BLOCK == 0:
            # The largest t of the block gives the smallest terms, so the bound is valid for all its candidates.
            t = reach[order[min(p + _BLOCK, n) - 1]] * (1.0 + 1e-12)
            weight = _curvature(size, radius, moment, t, matrix)
        # A point with the same sum as the best is not skipped, because its lower bound cannot exceed that sum.
        if sums[i] < np.inf or lower[i] > best:
            continue
        bound = _curved_bound(XT, i, z, total_z, gradient, weight, matrix)
        bound -= rounding * (total_z + (d + 2.0) * n * reach[i])
        if bound > best:
            continue
        if used == budget:
            proved = False
            break
        y = XT[:, i].copy()
        total = _distances_from(XT, y, distance)
        used += 1
        best = min(best, total)
        for j in range(n):
            # Copies of the point have the same sum and need no evaluation of their own.
            if distance[j] == 0.0:
                sums[j] = total
        _raise_bounds(XT, y, total, distance, scratch, lower)

    index = 0
    while sums[index] > best * (1.0 + _TIE):
        index += 1
    return index, best, proved
