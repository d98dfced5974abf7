"""The cheapest labels with given cluster sizes, a flow of minimal cost on the clusters."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def shortest_paths(cost, before, surplus):  # type: ignore[no-untyped-def]
    """Cheapest labels with the wanted cluster sizes, by successive shortest paths from labels cheapest for their own.

    The nodes are the clusters, and an edge costs what the cheapest change of a point costs. Dijkstra's algorithm runs
    on costs plus differences of `height`, as Suurballe's does, so rounding errors cannot create a negative cycle.
    """
    n_points, n_clusters = cost.shape
    own = before.copy()
    edges = [[(0.0, 0) for _ in range(0)] for _ in range(n_clusters * n_clusters)]
    for p in range(n_points):
        k = own[p]
        for other in range(n_clusters):
            if other != k:
                edges[k * n_clusters + other].append((cost[p, other] - cost[p, k], p))
    for edge in edges:
        heapq.heapify(edge)
    height = np.zeros(n_clusters)
    distance = np.empty(n_clusters)
    parent = np.empty(n_clusters, np.int64)
    done = np.empty(n_clusters, np.bool_)
    while surplus.max() > 0:
        for k in range(n_clusters):
            distance[k] = 0.0 if surplus[k] > 0 else np.inf
            parent[k] = -1
            done[k] = False
        for _ in range(n_clusters):
            k = -1
            for other in range(n_clusters):
                if not done[other] and distance[other] < np.inf and (k < 0 or distance[other] < distance[k]):
                    k = other
            if k < 0:
                break
            done[k] = True
            for other in range(n_clusters):
                if done[other]:
                    continue
                edge = edges[k * n_clusters + other]
                while len(edge) > 0 and own[edge[0][1]] != k:
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
        if end < 0:
            break
        for k in range(n_clusters):
            height[k] += min(distance[k], distance[end])
        surplus[end] += 1
        while parent[end] >= 0:
            k = parent[end]
            p = heapq.heappop(edges[k * n_clusters + end])[1]
            own[p] = end
            for other in range(n_clusters):
                if other != end:
                    heapq.heappush(edges[end * n_clusters + other], (cost[p, other] - cost[p, end], p))
            end = k
        surplus[end] -= 1
    return own
