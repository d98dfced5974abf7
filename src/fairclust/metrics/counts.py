"""The group-by-cluster table from which all group fairness metrics are computed.

Row j, column k of the table is n_jk, the number of points of group j in cluster k.

Parameters
----------
labels : array-like of int, shape (n_samples,)
    Cluster of each point, in 0 .. n_clusters - 1.
n_clusters : int, optional
    Number of clusters K. Default: the largest label plus one. Clusters without points count as empty.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.metrics.registry import documented


@documented
def contingency(
    labels: ArrayLike, groups: ArrayLike, n_clusters: int | None = None, n_groups: int | None = None
) -> NDArray[np.int64]:
    """Count the points of every group in every cluster.

    Parameters
    ----------
    groups : array-like of int, shape (n_samples,)
        Group of each point, in 0 .. n_groups - 1.
    n_groups : int, optional
        Number of groups J. Default: the largest group code plus one.

    Returns
    -------
    ndarray of int64, shape (n_groups, n_clusters)
        n_jk; it sums to n_samples.
    """
    cluster = integers(labels, "labels")
    group = integers(groups, "groups")
    if cluster.shape != group.shape:
        raise ValueError(f"labels {cluster.shape} and groups {group.shape} must have the same shape")
    K = _number(cluster, n_clusters, "labels")
    J = _number(group, n_groups, "groups")
    # The type of the codes may be too narrow for the numbers of the table's entries, so it is widened.
    cell = group.astype(np.int64) * K + cluster
    return np.bincount(cell, minlength=J * K).astype(np.int64).reshape(J, K)


@documented
def cluster_sizes(labels: ArrayLike, n_clusters: int | None = None) -> NDArray[np.int64]:
    """Number of points of every cluster.

    Returns
    -------
    ndarray of int64, shape (n_clusters,)
    """
    cluster = integers(labels, "labels")
    return np.bincount(cluster, minlength=_number(cluster, n_clusters, "labels")).astype(np.int64)


def integers(codes: ArrayLike, name: str) -> NDArray[np.integer]:
    """The codes as an array of one dimension; ValueError if they are no integers."""
    array = np.asarray(codes)
    if np.ma.is_masked(codes):
        raise ValueError(f"{name} has masked entries: leave out their rows")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    if array.size == 0:
        return array.astype(np.int64)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    # NumPy counts no uint64, and makes floats of their sums with other integers.
    return array.astype(np.int64) if array.dtype == np.uint64 else array


def _number(codes: NDArray[np.integer], given: int | None, name: str) -> int:
    """Number of classes; raises if a code lies outside of 0 .. number - 1."""
    largest = int(codes.max()) if codes.size else -1
    number = largest + 1 if given is None else given
    if largest >= number or (codes.size and codes.min() < 0):
        raise ValueError(f"{name} must lie in 0 .. {number - 1}, found {codes.min()} .. {largest}")
    return number
