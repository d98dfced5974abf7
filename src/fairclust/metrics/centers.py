"""Helpers of the metrics that read the points: checks, blocks of rows, cluster means, distances."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.metrics.counts import checked_codes

# Rows per block, so that temporary arrays stay in the cache and do not grow with the data.
_CHUNK_ROWS = 16_384
# Largest number of distances between rows that are computed at once.
_PAIRS = 2**22


def points_and_labels(X: ArrayLike, labels: ArrayLike) -> tuple[NDArray, NDArray[np.integer]]:
    """Points and labels as arrays.

    ValueError if the lengths differ, the labels are not non-negative integers, there is no point, or a value is not
    finite.
    """
    points, codes = np.asarray(X), checked_codes(labels, "labels")[0]
    if points.ndim != 2 or len(points) != codes.size:
        raise ValueError(f"X {points.shape} must have one row for each of {codes.size} labels")
    if codes.size == 0:
        raise ValueError("there is no point")
    if not np.isfinite(points).all():
        raise ValueError("X must be finite")
    return points, codes


def blocks(n_rows: int, height: int = _CHUNK_ROWS) -> list[slice]:
    """Slices of at most `height` rows that together cover all rows."""
    return [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


def pairwise_blocks(n_rows: int, n_others: int) -> list[slice]:
    """Slices of rows whose distances to `n_others` points fit into one block of memory."""
    return blocks(n_rows, max(1, _PAIRS // n_others))


def cluster_means(X: NDArray, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Mean of every cluster, shape (n_clusters, n_features); zeros for a cluster without points."""
    import scipy.sparse as sp

    sizes = np.bincount(labels)
    sums = np.zeros((sizes.size, X.shape[1]))
    for block in blocks(len(labels)):
        rows = labels[block]
        # The product with a sparse indicator matrix sums each cluster in float64 without sorting the points.
        indicator = sp.csr_array(
            (np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(rows.size, sizes.size)
        )
        sums += indicator.T @ X[block].astype(np.float64, copy=False)
    return sums / np.maximum(sizes, 1)[:, None]


def squared_distances_to_centers(
    X: NDArray, labels: NDArray[np.integer], centers: NDArray
) -> NDArray[np.float64]:
    """Squared Euclidean distance of every point to the centre of its cluster, shape (n_samples,)."""
    squares = np.empty(len(labels))
    for part in blocks(len(labels)):
        deviation = np.subtract(X[part], centers[labels[part]], dtype=np.float64)
        squares[part] = np.einsum("pd,pd->p", deviation, deviation)
    return squares


def nearest_centers(X: NDArray, centers: NDArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The nearest centre of each point and the squared distance to it, both of shape (n_samples,)."""
    from scipy.spatial.distance import cdist

    labels, squares = np.empty(len(X), int), np.empty(len(X))
    for rows in pairwise_blocks(len(X), len(centers)):
        table = cdist(X[rows], centers, "sqeuclidean")
        labels[rows], squares[rows] = table.argmin(axis=1), table.min(axis=1)
    return labels, squares
