"""Exact extreme pairwise distances of a clustering, without an N x N matrix.

The Dunn index needs two numbers: the smallest distance between points of different clusters (the separation)
and the largest distance inside one cluster (the diameter). Both are found by a dual-tree search: it visits pairs of
nodes of a balanced median-split tree whose nodes have bounding boxes. A pair of boxes is dropped if its least (or
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
    return math.sqrt(_separation(points, codes)), math.sqrt(_diameter(points, codes, n_clusters))


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


@njit(cache=True, nogil=True)
def _select(keys: NDArray, order: NDArray, first: int, last: int, k: int) -> None:
    """Reorder positions first..last (inclusive) so that position k holds the key it would hold if sorted."""
    while first < last:
        a, b, c = keys[first], keys[(first + last) // 2], keys[last]
        pivot = max(min(a, b), min(max(a, b), c))
        i, j = first, last
        # Both scans stop at keys equal to the pivot, so that runs of duplicates are split evenly.
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if k <= j:
            last = j
        elif k >= i:
            first = i
        else:
            return


@njit(cache=True, nogil=True)
def _build_tree(X: NDArray, leaf_size: int) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Median-split tree in heap order. The children of node i are 2i + 1 and 2i + 2. All leaves have the same depth.

    Returns the order of the points, and the first position, end position and box (low, high) of each node.
    """
    n, d = X.shape
    depth = 0
    while (n >> depth) > leaf_size:
        depth += 1
    n_nodes = (1 << (depth + 1)) - 1
    first_leaf = (1 << depth) - 1
    order = np.arange(n)
    keys = np.empty(n)
    start = np.zeros(n_nodes, dtype=np.int64)
    end = np.zeros(n_nodes, dtype=np.int64)
    low = np.empty((n_nodes, d))
    high = np.empty((n_nodes, d))
    end[0] = n
    for node in range(n_nodes):
        s, e = start[node], end[node]
        for f in range(d):
            low[node, f] = np.inf
            high[node, f] = -np.inf
        for p in range(s, e):
            row = order[p]
            for f in range(d):
                v = X[row, f]
                if v < low[node, f]:
                    low[node, f] = v
                if v > high[node, f]:
                    high[node, f] = v
        if node >= first_leaf:
            continue
        widest = 0
        for f in range(1, d):
            if high[node, f] - low[node, f] > high[node, widest] - low[node, widest]:
                widest = f
        middle = (s + e) // 2
        for p in range(s, e):
            keys[p] = X[order[p], widest]
        _select(keys, order, s, e - 1, middle)
        start[2 * node + 1], end[2 * node + 1] = s, middle
        start[2 * node + 2], end[2 * node + 2] = middle, e
    return order, start, end, low, high


@njit(cache=True, nogil=True)
def _squared_distance(X: NDArray, p: int, q: int) -> float:
    total = 0.0
    for f in range(X.shape[1]):
        gap = X[p, f] - X[q, f]
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _least_squared(low_a: NDArray, high_a: NDArray, low_b: NDArray, high_b: NDArray) -> float:
    """Squared distance between two boxes (0 where they overlap). A point is a box with low = high."""
    total = 0.0
    for f in range(low_a.shape[0]):
        gap = max(low_b[f] - high_a[f], low_a[f] - high_b[f])
        if gap > 0.0:
            total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _largest_squared(low_a: NDArray, high_a: NDArray, low_b: NDArray, high_b: NDArray) -> float:
    """Squared distance between the two farthest corners of two boxes."""
    total = 0.0
    for f in range(low_a.shape[0]):
        gap = max(high_b[f] - low_a[f], high_a[f] - low_b[f])
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _separation(X: NDArray, labels: NDArray) -> float:
    """Squared smallest distance between points of different clusters."""
    n, _ = X.shape
    best = np.inf
    if n < 2:
        return best
    order, start, end, low, high = _build_tree(X, _LEAF_SIZE)
    points = X[order]
    cluster = labels[order]
    n_nodes = start.size
    first_leaf = n_nodes // 2

    # The cluster of a node whose points are all in one cluster, else -1. Pairs of nodes of one cluster are skipped.
    only = np.empty(n_nodes, dtype=np.int64)
    for node in range(n_nodes - 1, -1, -1):
        if node >= first_leaf:
            only[node] = cluster[start[node]]
            for p in range(start[node] + 1, end[node]):
                if cluster[p] != only[node]:
                    only[node] = -1
                    break
        elif only[2 * node + 1] == only[2 * node + 2]:
            only[node] = only[2 * node + 1]
        else:
            only[node] = -1
    if only[0] >= 0:
        return best

    # Near points are mostly in the same leaf, so one fast pass over leaves with several clusters gives a good bound.
    for leaf in range(first_leaf, n_nodes):
        if only[leaf] >= 0:
            continue
        for p in range(start[leaf], end[leaf]):
            for q in range(p + 1, end[leaf]):
                if cluster[p] != cluster[q]:
                    best = min(best, _squared_distance(points, p, q))

    # The search is depth first. A step replaces one pair by at most four, and there are at most 64 levels.
    stack = np.empty((256, 2), dtype=np.int64)
    bounds = np.empty(256)
    stack[0, 0] = 0
    stack[0, 1] = 0
    bounds[0] = 0.0
    size = 1
    while size > 0:
        size -= 1
        if bounds[size] >= best:
            continue
        a, b = stack[size, 0], stack[size, 1]
        if a >= first_leaf:
            if a == b:
                continue
            for p in range(start[a], end[a]):
                if only[b] == cluster[p]:
                    continue
                if _least_squared(points[p], points[p], low[b], high[b]) >= best:
                    continue
                for q in range(start[b], end[b]):
                    if cluster[p] != cluster[q]:
                        best = min(best, _squared_distance(points, p, q))
            continue
        base = size
        for i in range(2 * a + 1, 2 * a + 3):
            for j in range(2 * b + 1, 2 * b + 3):
                if (a == b and j < i) or (only[i] >= 0 and only[i] == only[j]):
                    continue
                bound = _least_squared(low[i], high[i], low[j], high[j])
                if bound >= best:
                    continue
                # The nearest pair is on top of the stack. It is visited first and tightens the bound for the others.
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


@njit(cache=True, nogil=True)
def _farthest_pair(X: NDArray, best: float) -> float:
    """Larger of ``best`` and the squared diameter of the points."""
    order, start, end, low, high = _build_tree(X, _LEAF_SIZE)
    points = X[order]
    first_leaf = start.size // 2
    stack = np.empty((256, 2), dtype=np.int64)
    bounds = np.empty(256)
    stack[0, 0] = 0
    stack[0, 1] = 0
    bounds[0] = _largest_squared(low[0], high[0], low[0], high[0])
    size = 1
    while size > 0:
        size -= 1
        if bounds[size] <= best:
            continue
        a, b = stack[size, 0], stack[size, 1]
        if a >= first_leaf:
            for p in range(start[a], end[a]):
                if _largest_squared(points[p], points[p], low[b], high[b]) <= best:
                    continue
                for q in range(start[b], end[b]):
                    best = max(best, _squared_distance(points, p, q))
            continue
        base = size
        for i in range(2 * a + 1, 2 * a + 3):
            for j in range(2 * b + 1, 2 * b + 3):
                if a == b and j < i:
                    continue
                bound = _largest_squared(low[i], high[i], low[j], high[j])
                if bound <= best:
                    continue
                # The farthest pair is on top of the stack. It is visited first and tightens the bound for the others.
                slot = size
                while slot > base and bounds[slot - 1] > bound:
                    bounds[slot] = bounds[slot - 1]
                    stack[slot, 0], stack[slot, 1] = stack[slot - 1, 0], stack[slot - 1, 1]
                    slot -= 1
                bounds[slot] = bound
                stack[slot, 0], stack[slot, 1] = i, j
                size += 1
    return best


@njit(cache=True, nogil=True)
def _diameter(X: NDArray, labels: NDArray, n_clusters: int) -> float:
    """Squared largest distance inside one cluster; labels are 0 .. n_clusters - 1."""
    best = 0.0
    order = np.argsort(labels, kind="mergesort")
    ends = np.cumsum(np.bincount(labels, minlength=n_clusters))
    sweeps = np.empty(n_clusters)
    for k in range(n_clusters):
        first = ends[k - 1] if k > 0 else 0
        sweeps[k] = _farthest_by_sweeps(X[order[first : ends[k]]])
        best = max(best, sweeps[k])
    # The widest cluster comes first. For most of the others the outermost boxes are then enough to rule them out.
    for k in np.argsort(-sweeps):
        first = ends[k - 1] if k > 0 else 0
        best = _farthest_pair(X[order[first : ends[k]]], best)
    return best
