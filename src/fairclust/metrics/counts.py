"""The group-by-cluster table from which all group fairness metrics are computed.

Row j, column k of the table is n_jk, the number of points of group j in cluster k.
"""

from __future__ import annotations

from contextlib import suppress

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
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, in 0 .. n_clusters - 1.
    groups : array-like of int, shape (n_samples,)
        Group of each point, in 0 .. n_groups - 1.
    n_clusters : int, optional
        Number of clusters K. Default: the largest label plus one. Clusters without points count as empty.
    n_groups : int, optional
        Number of groups J. Default: the largest group code plus one.

    Returns
    -------
    ndarray of int64, shape (n_groups, n_clusters)
        n_jk; it sums to n_samples.
    """
    cluster, K = checked_codes(labels, "labels", n_clusters)
    group, J = checked_codes(groups, "groups", n_groups)
    if cluster.shape != group.shape:
        raise ValueError(f"labels {cluster.shape} and groups {group.shape} must have the same shape")
    # The type of the codes may be too narrow for the numbers of the table's entries, so it is widened.
    cell = group.astype(np.int64) * K + cluster
    return np.bincount(cell, minlength=J * K).astype(np.int64).reshape(J, K)


def finite_numbers(values: ArrayLike, name: str) -> NDArray:
    """The values as an array; ValueError if some are masked, missing, infinite or no numbers."""
    array = np.asarray(values)
    with suppress(TypeError, ValueError):
        array = array.astype(float) if array.dtype == object else array
        if np.isfinite(array).all() and not np.ma.is_masked(values):
            return array
    raise ValueError(f"{name} must hold finite numbers, none of them missing or masked")


def checked_codes(codes: ArrayLike, name: str, number: int | None = None) -> tuple[NDArray[np.integer], int]:
    """The codes as an array, and the number of classes, by default the largest code plus one.

    ValueError if they are not one dimension of integers in 0 .. number - 1.
    """
    array = np.asarray(codes)
    if np.ma.is_masked(codes):
        raise ValueError(f"{name} has masked entries: leave out their rows")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"{name} must be integers, not {array.dtype}")
    # NumPy counts no uint64, and makes floats of their sums with other integers.
    array = array.astype(np.int64) if array.size == 0 or array.dtype == np.uint64 else array
    largest = int(array.max()) if array.size else -1
    number = largest + 1 if number is None else number
    if largest >= number or array.min(initial=0) < 0:
        raise ValueError(f"{name} must lie in 0 .. {number - 1}, found {array.min()} .. {largest}")
    return array, number
