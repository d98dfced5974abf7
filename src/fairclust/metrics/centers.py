"""What metrics of points share: cluster means, distances to them, and samples of rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.metrics.counts import cluster_sizes

__all__ = [
    "checked_centers",
    "cluster_means",
    "points_and_labels",
    "sampled_rows",
    "squared_distances_to_own",
]

# Rows per block: temporaries do not grow with the data.
_CHUNK_ROWS = 16_384
# Every metric of a clustering looks at the same sample, in every run.
_SEED = 0


def points_and_labels(X: ArrayLike, labels: ArrayLike) -> tuple[NDArray, NDArray[np.integer]]:
    """Points and labels as arrays of the same length.

    Raises
    ------
    ValueError
        If the shapes disagree, there is no point, the labels are no non-negative integers, or ``X`` is not finite.
    """
    points = np.asarray(X)
    cluster_sizes(labels)
    codes = np.asarray(labels)
    if points.ndim != 2 or len(points) != codes.size:
        raise ValueError(f"X {points.shape} must have one row for each of {codes.size} labels")
    if codes.size == 0:
        raise ValueError("there is no point")
    if not np.isfinite(points).all():
        raise ValueError("X must be finite")
    return points, codes


def cluster_means(X: NDArray, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Mean of every cluster, shape (largest label + 1, n_features); zeros for a cluster without points."""
    sizes = cluster_sizes(labels)
    sums = [np.bincount(labels, weights=column, minlength=sizes.size) for column in X.T]
    return np.stack(sums, axis=1).reshape(sizes.size, X.shape[1]) / np.maximum(sizes, 1)[:, None]


def squared_distances_to_own(
    X: NDArray, labels: NDArray[np.integer], centers: NDArray
) -> NDArray[np.float64]:
    """Squared Euclidean distance of every point to the centre of its cluster, shape (n_samples,)."""
    found = np.empty(len(labels))
    for start in range(0, len(labels), _CHUNK_ROWS):
        part = slice(start, start + _CHUNK_ROWS)
        deviation = X[part] - centers[labels[part]]
        found[part] = np.einsum("pd,pd->p", deviation, deviation)
    return found


def sampled_rows(n_samples: int, max_rows: int | None) -> NDArray[np.int64]:
    """All rows, or a random sample of `max_rows` of them, sorted; the same one every time."""
    if max_rows is None or n_samples <= max_rows:
        return np.arange(n_samples)
    return np.sort(np.random.default_rng(_SEED).choice(n_samples, max_rows, replace=False))


def checked_centers(
    X: NDArray, labels: NDArray[np.integer], centers: ArrayLike | None
) -> NDArray[np.float64]:
    """The given centres, or the means of the clusters.

    Raises
    ------
    ValueError
        If a label has no centre, or the numbers of features differ.
    """
    if centers is None:
        return cluster_means(X, labels)
    places = np.asarray(centers, dtype=float)
    if places.ndim != 2 or places.shape[1] != X.shape[1] or len(places) <= labels.max():
        raise ValueError(f"centers has shape {places.shape}, X has {X.shape}, labels go to {labels.max()}")
    return places
