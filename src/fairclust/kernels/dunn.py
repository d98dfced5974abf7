"""Exact extreme pairwise distances of a clustering, without an N x N matrix.

The Dunn index needs two numbers: the smallest distance between points of different clusters (the separation)
and the largest distance inside one cluster (the diameter). Both are found by a dual-tree search: it visits pairs of
nodes of scikit-learn's k-d tree, whose nodes have bounding boxes. A pair of boxes is dropped if its least (or
largest) possible distance cannot improve the best pair found so far.

The results are exact, not only up to a tolerance. A bound for boxes is summed over the features in the same order as a
distance, and rounding is monotone, so a bound is never on the wrong side of the distance that it bounds. This needs
strict floating-point arithmetic, so ``fastmath`` is not used here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import KDTree

# With smaller leaves fewer pairs of points are compared, but the tree is larger.
_LEAF_SIZE = 16
_SWEEPS = 4
_LARGEST = 1e150


def dunn_distances(X: ArrayLike, labels: ArrayLike) -> tuple[float, float]:
    """Smallest distance between points of different clusters, and largest between points of the same cluster.

    The first is ``inf`` if fewer than two clusters have points, the second 0 if no cluster has two points. A value of
    X that is not finite, or above 1e150 in absolute value (its square would overflow), raises ValueError.
    """
    points, codes, n_clusters = _checked(X, labels)
    separation = _least(points, codes, 1.0, np.inf) if n_clusters > 1 else np.inf
    clusters = [points[codes == k] for k in range(n_clusters)]
    sweeps = np.array([_farthest_by_sweeps(own) for own in clusters])
    diameter = sweeps.max(initial=0.0)
    # The widest cluster comes first. For most of the others the outermost boxes are then enough to rule them out.
    for k in np.argsort(-sweeps):
        # If every point is a cluster of its own, all pairs of points count.
        diameter = -_least(clusters[k], np.arange(len(clusters[k])), -1.0, -diameter)
    return math.sqrt(separation), math.sqrt(diameter)


def _checked(X: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64], int]:
    """Return float64 points, clusters numbered 0, 1, ... without gaps, and the number of clusters."""
    points = np.ascontiguousarray(X, dtype=np.float64)
    given = np.asarray(labels)
    if points.ndim != 2 or points.shape[1] == 0:
        raise ValueError(f"X must have the shape (n_samples, n_features >= 1), not {points.shape}")
    if given.shape != (points.shape[0],):
        raise ValueError(f"labels must have shape ({points.shape[0]},), not {given.shape}")
    if given.size and not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"labels must be integers, not {given.dtype}")
    if not (np.abs(points) <= _LARGEST).all():
        raise ValueError(f"X must be finite and at most {_LARGEST:g} in absolute value")
    present, codes = np.unique(given, return_inverse=True)
    return points, codes.astype(np.int64), present.size


def _least(X: NDArray, labels: NDArray, sign: float, best: float) -> float:
    """The least of `sign` times the squared distance of points of different clusters, or `best` if it is smaller."""
    # The children of node i are 2i + 1 and 2i + 2. All leaves have the same depth.
    data, order, nodes, bounds = KDTree(X, leaf_size=_LEAF_SIZE).get_arrays()
    order, start = np.asarray(order), np.asarray(nodes["idx_start"])
    points, cluster = np.asarray(data)[order], labels[order]
    # The cluster of a node whose points are all in one cluster, else -1. Pairs of nodes of one cluster are skipped.
    only = np.empty(len(start), np.int64)
    for level in range(len(start).bit_length()):
        here = slice(2**level - 1, 2 ** (level + 1) - 1)
        low, high = (extreme.reduceat(cluster, start[here]) for extreme in (np.minimum, np.maximum))
        only[here] = np.where(low == high, low, -1)
    low, high = np.asarray(bounds)[:: int(sign)]
    return _search(points, cluster, only, start, np.asarray(nodes["idx_end"]), low, high, sign, best)


@njit(cache=True, nogil=True)
def _squared_distance(X: NDArray, p: int, q: int) -> float:
    total = 0.0
    for f in range(X.shape[1]):
        gap = X[p, f] - X[q, f]
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _gap(low_a: NDArray, high_a: NDArray, low_b: NDArray, high_b: NDArray) -> float:
    """Squared distance between two boxes, or of their farthest corners if low and high are swapped."""
    total = 0.0
    for f in range(low_a.shape[0]):
        gap = max(low_b[f] - high_a[f], low_a[f] - high_b[f])
        if gap > 0.0:
            total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _search(
    points: NDArray,
    cluster: NDArray,
    only: NDArray,
    start: NDArray,
    end: NDArray,
    low: NDArray,
    high: NDArray,
    sign: float,
    best: float,
) -> float:
    first_leaf = start.size // 2
    if sign > 0:
        # Near points are mostly in the same leaf, so a fast pass over leaves with several clusters gives a good bound.
        for leaf in range(first_leaf, start.size):
            if only[leaf] < 0:
                for p in range(start[leaf], end[leaf]):
                    for q in range(p + 1, end[leaf]):
                        if cluster[p] != cluster[q]:
                            best = min(best, _squared_distance(points, p, q))
    # The search is depth first. A step replaces one pair by at most four, and there are at most 64 levels.
    stack = np.empty((256, 2), dtype=np.int64)
    bounds = np.empty(256)
    stack[0, 0] = 0
    stack[0, 1] = 0
    bounds[0] = sign * _gap(low[0], high[0], low[0], high[0])
    size = 1
    while size > 0:
        size -= 1
        if bounds[size] >= best:
            continue
        a, b = stack[size, 0], stack[size, 1]
        if a >= first_leaf:
            if sign > 0 and a == b:
                continue
            for p in range(start[a], end[a]):
                if only[b] == cluster[p] or sign * _gap(points[p], points[p], low[b], high[b]) >= best:
                    continue
                for q in range(start[b], end[b]):
                    if cluster[p] != cluster[q]:
                        best = min(best, sign * _squared_distance(points, p, q))
            continue
        base = size
        for i in range(2 * a + 1, 2 * a + 3):
            for j in range(2 * b + 1, 2 * b + 3):
                if (a == b and j < i) or (only[i] >= 0 and only[i] == only[j]):
                    continue
                bound = sign * _gap(low[i], high[i], low[j], high[j])
                if bound >= best:
                    continue
                # The most promising pair is on top of the stack. It is visited first and tightens the bound.
                slot = size
                while slot > base and bounds[slot - 1] < bound:
                    bounds[slot] = bounds[slot - 1]
                    stack[slot, 0], stack[slot, 1] = stack[slot - 1, 0], stack[slot - 1, 1]
                    slot -= 1
                bounds[slot] = bound
                stack[slot, 0], stack[slot, 1] = i, j
                size += 1
    return best


@njit(cache=True, nogil=True)
def _farthest_by_sweeps(X: NDArray) -> float:
    """Lower bound on the squared diameter, from a few moves to the farthest point."""
    best = 0.0
    here = 0
    for _ in range(_SWEEPS):
        there, largest = here, 0.0
        for q in range(X.shape[0]):
            distance = _squared_distance(X, here, q)
            if distance > largest:
                there, largest = q, distance
        if largest <= best:
            break
        best, here = largest, there
    return best
