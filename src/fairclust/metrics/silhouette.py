"""How well each group's points sit in their clusters: silhouettes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from fairclust.metrics.centers import points_and_labels, sampled_rows
from fairclust.metrics.counts import group_codes

__all__ = ["silhouette_gap", "silhouettes"]

# Entries of a block of distances.
_BLOCK = 2**22


def silhouettes(X: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """Silhouette of every point, (b - a) / max(a, b).

    a is the mean distance to the other points of the own cluster, b the least mean distance to those of another
    cluster.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite points.
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, from 0.

    Returns
    -------
    ndarray of shape (n_samples,)
        In [-1, 1], higher is better. 0 for a point alone in its cluster, ``nan`` with fewer than two clusters.

    References
    ----------
    Rousseeuw, "Silhouettes", 1987.
    """
    points, labels = points_and_labels(X, labels)
    points = points.astype(float)
    codes = np.unique(labels, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if sizes.size < 2:
        return np.full(codes.size, np.nan)
    indicator = np.eye(sizes.size)[codes]
    found = np.empty(codes.size)
    height = max(1, _BLOCK // codes.size)
    for start in range(0, codes.size, height):
        own = codes[start : start + height]
        sums = cdist(points[start : start + height], points) @ indicator
        every = np.arange(own.size)
        within = sums[every, own] / np.maximum(sizes[own] - 1, 1)
        means = sums / sizes
        means[every, own] = np.inf
        nearest = means.min(axis=1)
        largest = np.maximum(within, nearest)
        usable = (sizes[own] > 1) & (largest > 0)
        found[start : start + height] = np.where(
            usable, (nearest - within) / np.where(usable, largest, 1.0), 0.0
        )
    return found


def silhouette_gap(
    X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike, max_rows: int | None = 5_000
) -> float:
    """Largest difference between two groups' mean silhouettes.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite points.
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, from 0.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each point; of several columns the groups are the combinations.
    max_rows : int or None, default 5,000
        With more rows the silhouettes are those within a random sample of this size, always the same one. A group
        without a row in it does not count. None for no limit: the work grows with the square of the rows.

    Returns
    -------
    float
        In [0, 2], lower is fairer; ``nan`` with fewer than two clusters.

    Raises
    ------
    ValueError
        If the shapes disagree, the labels are no non-negative integers, a group is missing, or ``X`` is not
        finite.

    References
    ----------
    Rousseeuw 1987 for the silhouette; the difference is ours.
    """
    points, codes = points_and_labels(X, labels)
    groups = group_codes(sensitive_features)
    if groups.shape != codes.shape:
        raise ValueError(f"labels {codes.shape} and sensitive_features {groups.shape} must have one length")
    rows = sampled_rows(codes.size, max_rows)
    found = silhouettes(points[rows], codes[rows])
    groups = np.unique(groups[rows], return_inverse=True)[1]
    means = np.bincount(groups, weights=found) / np.bincount(groups)
    return float(means.max() - means.min())
