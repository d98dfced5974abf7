"""The cheapest labels with given cluster sizes, a flow of minimal cost on the clusters."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def _neighbours(clusters, n_clusters):  # type: ignore[no-untyped-def]
    """Number the pairs of clusters that some point lists both. Returns the numbers, -1 for other pairs."""
    if clusters.shape[1] == n_clusters:
        return np.arange(n_clusters**2).reshape(n_clusters, n_clusters), n_clusters**2
    number = np.full((n_clusters, n_clusters), -1)
    n_pairs = 0
    for p in range(len(clusters)):
        for one in clusters[p]:
            for other in clusters[p]:
                if one != other and number[one, other] < 0:
                    number[one, other] = n_pairs
                    n_pairs += 1
    return number, n_pairs


@njit(cache=True, nogil=True)
def _nearest_sink(surplus, number, edges, labels, height, distance, parent, done):  # type: ignore[no-untyped-def]
    """The cluster with room that is nearest to those with too many points; -1 if there is none.

    Fills `distance`, and `parent` with the cluster before each on its path, by Dijkstra's algorithm.
    """
    n_clusters = len(surplus)
    for k in range(n_clusters):
        distance[k] = 0.0 if surplus[k] > 0 else np.inf
        parent[k] = -1
        done[k] = False
    nearest = np.inf
    for _ in range(n_clusters):
        k = -1
        for other in range(n_clusters):
            if not done[other] and distance[other] < np.inf and (k < 0 or distance[other] < distance[k]):
                k = other
        if k < 0 or distance[k] > nearest:
            break
        done[k] = True
        if surplus[k] < 0:
            nearest = distance[k]
        for other in range(n_clusters):
            if done[other] or number[k, other] < 0:
                continue
            edge = edges[number[k, other]]
            # Points that have left cluster k are still in its heaps.
            while len(edge) > 0 and labels[edge[0][1]] != k:
                heapq.heappop(edge)
            if len(edge) > 0:
                reach = distance[k] + max(0.0, edge[0][0] + height[k] - height[other])
                if reach < distance[other]:
                    distance[other] = reach
                    parent[other] = k
    end = -1
    for k in range(n_clusters):
        if surplus[k] < 0 and distance[k] < np.inf and (end < 0 or distance[k] < distance[end]):
            end = k
    return end


@njit(cache=True, nogil=True)
def shortest_paths(cost, clusters, before, surplus):  # type: ignore[no-untyped-def]
    """Cheapest labels with the wanted cluster sizes, by successive shortest paths from labels cheapest for their own.

    Point p costs ``cost[p, r]`` in the cluster ``clusters[p, r]``, and `before` is one of these. If there are no paths
    left, `surplus` says how far the sizes are from the wanted ones.
    """
    # The nodes are the clusters, and an edge costs what the cheapest change of a point costs. Dijkstra's algorithm runs
    # on costs plus differences of `height`, as Suurballe's does, so rounding errors cannot create a negative cycle.
    n_points, n_listed = cost.shape
    n_clusters = len(surplus)
    labels = before.copy()
    position = np.empty(n_points, np.int64)
    number, n_pairs = _neighbours(clusters, n_clusters)
    edges = [[(0.0, 0) for _ in range(0)] for _ in range(n_pairs)]
    for p in range(n_points):
        for r in range(n_listed):
            if clusters[p, r] == labels[p]:
                position[p] = r
        for r in range(n_listed):
            if r != position[p]:
                edges[number[labels[p], clusters[p, r]]].append((cost[p, r] - cost[p, position[p]], p))
    for edge in edges:
        heapq.heapify(edge)
    height = np.zeros(n_clusters)
    distance = np.empty(n_clusters)
    parent = np.empty(n_clusters, np.int64)
    done = np.empty(n_clusters, np.bool_)
    while surplus.max() > 0:
        end = _nearest_sink(surplus, number, edges, labels, height, distance, parent, done)
        if end < 0:
            break
        for k in range(n_clusters):
            height[k] += min(distance[k], distance[end])
        surplus[end] += 1
        while parent[end] >= 0:
            k = parent[end]
            p = heapq.heappop(edges[number[k, end]])[1]
            labels[p] = end
            for r in range(n_listed):
                if clusters[p, r] == end:
                    position[p] = r
            for r in range(n_listed):
                if r != position[p]:
                    edge = edges[number[end, clusters[p, r]]]
                    heapq.heappush(edge, (cost[p, r] - cost[p, position[p]], p))
            end = k
        surplus[end] -= 1
    return labels
