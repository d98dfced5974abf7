"""Cheapest assignment of points to clusters whose sizes are bounded: a flow of minimal cost."""

from __future__ import annotations

import numpy as np

from fairclust.kernels.flow import all_clusters, shortest_paths


def assign_within_sizes(distances: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Labels with the least sum of distances for which every cluster has between `lower` and `upper` points.

    Idle points that cost nothing fill every cluster to its upper bound, so that all sizes are fixed. The search starts
    from the nearest clusters and moves points along cheapest paths. If no assignment is within the bounds, it is a
    ValueError.
    """
    n_samples, n_clusters = distances.shape
    lower = np.asarray(lower, dtype=np.int64)
    upper = np.minimum(np.asarray(upper, dtype=np.int64), n_samples)
    if (lower < 0).any() or (lower > upper).any() or not lower.sum() <= n_samples <= upper.sum():
        raise ValueError(
            f"{n_samples} points cannot form clusters of sizes from {lower.tolist()} to {upper.tolist()}"
        )
    nearest = distances.argmin(axis=1)
    sizes = np.bincount(nearest, minlength=n_clusters)
    if ((lower <= sizes) & (sizes <= upper)).all():
        return nearest
    idle = upper - lower
    inside = np.clip(upper - sizes, 0, idle)
    home = np.repeat(np.arange(n_clusters), idle)
    rank = np.arange(len(home)) - np.repeat(np.cumsum(idle) - idle, idle)
    cost = np.full((n_samples + len(home), n_clusters + 1), np.inf)
    cost[:n_samples, :n_clusters] = distances
    cost[n_samples + np.arange(len(home)), home] = 0.0
    cost[n_samples:, n_clusters] = 0.0
    before = np.r_[nearest, np.where(rank < inside[home], home, n_clusters)]
    wanted = np.r_[upper, n_samples - lower.sum()]
    surplus = np.bincount(before, minlength=n_clusters + 1) - wanted
    clusters = all_clusters(*cost.shape)
    return shortest_paths(cost, clusters, before.astype(np.int64), surplus.astype(np.int64))[:n_samples]
