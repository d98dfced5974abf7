"""Exact extreme pairwise distances of a clustering, without an N x N matrix.

The Dunn index needs two numbers: the smallest distance between points of different clusters (the separation)
and the largest distance inside one cluster (the diameter). Both are found by a dual-tree search: it visits pairs of
nodes of a k-d tree, whose nodes have bounding boxes. A pair of boxes is dropped if its least (or largest) possible
distance cannot improve the best pair found so far. The tree is made here, because building scikit-learn's takes most
of the time of the whole search.

The results are exact, not only up to a tolerance. A bound for boxes is summed over the features in the same order as a
distance, and rounding is monotone, so a bound is never on the wrong side of the distance that it bounds. This needs
strict floating-point arithmetic, so ``fastmath`` is not used here.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from fairclust.kernels.fast import larger, smaller

# With smaller leaves fewer pairs of points are compared, but the tree is larger.
_LEAF_SIZE = 16


def dunn_distances(points: NDArray, codes: NDArray, n_clusters: int) -> tuple[float, float]:
    """Smallest distance between points of different clusters, and largest between points of the same cluster.

    Clusters are 0 to `n_clusters` - 1 and have points. The first number is ``inf`` if there is a single cluster, and
    the second is 0 if no cluster has two points.
    """
    clusters = [points[codes == k] for k in range(n_clusters)]
    separation = _search(points.copy(), codes.copy(), np.inf) if n_clusters > 1 else np.inf
    radii = [np.linalg.norm(of_cluster - of_cluster.mean(axis=0), axis=1) for of_cluster in clusters]
    # Squared distance of the outermost point of each cluster to the one that is farthest from it.
    widths = np.array(
        [
            cdist(part[[far.argmax()]], part, "sqeuclidean").max()
            for part, far in zip(clusters, radii, strict=True)
        ]
    )
    # Lowered, because these distances may be rounded in another way than those of the search.
    diameter = (1 - 1e-9) * widths.max(initial=0.0)
    # The widest cluster comes first. For most of the others the outermost boxes are then enough to rule them out.
    for k in np.argsort(-widths):
        # Two points are at most as far apart as the sum of their distances from the mean.
        far = radii[k] + radii[k].max() >= (1 - 1e-9) * math.sqrt(diameter)
        if far.any():
            diameter = _search(clusters[k][far], None, diameter)
    return math.sqrt(separation), math.sqrt(diameter)


@njit(cache=True, nogil=True)
def _tree(X: NDArray, labels: NDArray) -> tuple[NDArray, NDArray, NDArray, NDArray, NDArray]:
    """Sort points and labels in place into the leaves of a tree. The children of node i are 2i + 1 and 2i + 2.

    Returns the cluster of each node (-1 if it has several), its first position, its end, and the corners of its box.
    """
    n, d = X.shape
    depth = 0
    while (n >> depth) > _LEAF_SIZE:
        depth += 1
    n_nodes = (2 << depth) - 1
    start, end, only = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64), np.empty(n_nodes, np.int64)
    low, high = np.full((n_nodes, d), np.inf), np.full((n_nodes, d), -np.inf)
    end[0] = n
    for node in range(n_nodes):
        points, cluster = X[start[node] : end[node]], labels[start[node] : end[node]]
        only[node] = cluster[0]
        for p in range(len(points)):
            if cluster[p] != cluster[0]:
                only[node] = -1
            for f in range(d):
                low[node, f] = smaller(low[node, f], points[p, f])
                high[node, f] = larger(high[node, f], points[p, f])
        if 2 * node + 2 < n_nodes:
            # The median of the widest feature halves a node, so that all leaves have the same depth.
            half = len(points) // 2
            order = np.argpartition(points[:, np.argmax(high[node] - low[node])], half)
            points[:], cluster[:] = points[order], cluster[order]
            start[2 * node + 1], end[2 * node + 1] = start[node], start[node] + half
            start[2 * node + 2], end[2 * node + 2] = start[node] + half, end[node]
    return only, start, end, low, high


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
        gap = larger(larger(low_b[f] - high_a[f], low_a[f] - high_b[f]), 0.0)
        total += gap * gap
    return total


@njit(cache=True, nogil=True)
def _search(X: NDArray, labels: NDArray | None, best: float) -> float:
    """The least squared distance of points of different clusters or, without labels, the largest of all points.

    It is not computed if `best` is better. Both arrays are sorted in place.
    """
    if labels is None:
        sign, cluster = -1.0, np.arange(len(X))
    else:
        sign, cluster = 1.0, labels
    only, start, end, low, high = _tree(X, cluster)
    first_leaf = start.size // 2
    best *= sign
    if labels is None:
        low, high = high, low
    else:
        # Near points are mostly in the same leaf, so a fast pass over leaves with several clusters gives a good bound.
        for leaf in range(first_leaf, start.size):
            if only[leaf] < 0:
                for p in range(start[leaf], end[leaf]):
                    for q in range(p + 1, end[leaf]):
                        if cluster[p] != cluster[q]:
                            best = smaller(best, _squared_distance(X, p, q))
    # The search is depth first. A step replaces one pair by at most four, and there are at most 64 levels.
    stack = np.empty((256, 2), dtype=np.int64)
    bounds = np.empty(256)
    stack[0, 0] = 0
    stack[0, 1] = 0
    bounds[0] = -np.inf
    size = 1
    while size > 0:
        size -= 1
        if bounds[size] >= best:
            continue
        a, b = stack[size, 0], stack[size, 1]
        if a >= first_leaf:
            if labels is not None and a == b:
                continue
            for p in range(start[a], end[a]):
                if only[b] == cluster[p] or sign * _gap(X[p], X[p], low[b], high[b]) >= best:
                    continue
                for q in range(start[b], end[b]):
                    if cluster[p] != cluster[q]:
                        best = smaller(best, sign * _squared_distance(X, p, q))
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
    return sign * best
