"""Individual fairness: whether every point has its centre within the radius of its n/k nearest points.

Parameters
----------
max_rows : int or None, default 5,000
    With more rows, the ratios and radii are computed within a random sample of this size, the same in every call; the
    means of the clusters are those of all rows. None for no limit; the time grows with the square of the number of
    rows.
"""

from __future__ import annotations

from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.metrics.centers import (
    checked_centers,
    finite_points_and_labels,
    pairwise_blocks,
    sampled_rows,
    squared_distances_to_own,
)
from fairclust.metrics.registry import metric

__all__ = ["individual_fairness", "individual_fairness_95", "neighbourhood_radii"]


def neighbourhood_radii(
    X: ArrayLike, n_clusters: int, *, queries: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Radius of the smallest ball around each point that holds n/k points, itself among them.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite points.
    n_clusters : int
        k; the balls hold ``ceil(n_samples / n_clusters)`` points.
    queries : array-like of shape (n_queries, n_features), optional
        The points whose radii are computed. Default: all of `X`.

    Returns
    -------
    ndarray of shape (n_queries,)
        Euclidean distances.

    References
    ----------
    Jung, Kannan, Lutz, "Service in your neighborhood: fairness in center location", 2020.
    """
    from scipy.spatial.distance import cdist

    points = np.asarray(X, dtype=float)
    asked = points if queries is None else np.asarray(queries, dtype=float)
    rank = ceil(len(points) / n_clusters) - 1
    radii = np.empty(len(asked))
    for part in pairwise_blocks(len(asked), len(points)):
        squares = cdist(asked[part], points, "sqeuclidean")
        squares.partition(rank, axis=1)
        radii[part] = squares[:, rank]
    return np.sqrt(radii)


@metric(
    "Individual fairness",
    (0.0, inf),
    "lower",
    "Jung et al. 2020; Mahabadi and Vakilian 2020",
    needs="X",
    audit=True,
)
def individual_fairness(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    n_clusters: int | None = None,
    centers: ArrayLike | None = None,
    max_rows: int | None = 5_000,
) -> float:
    """Largest ratio of a point's distance to its centre to the radius of its n/k nearest points.

    Returns
    -------
    float
        In [0, inf], lower is fairer. Jung et al. ask for at most 1, and show that every data set has centres with at
        most 2. ``inf`` if n/k points coincide but their centre lies elsewhere.
    """
    return float(_ratios(X, labels, n_clusters, centers, max_rows).max())


@metric(
    "Individual fairness (95 %)",
    (0.0, inf),
    "lower",
    "ours, after Mahabadi and Vakilian 2020",
    needs="X",
    audit=True,
)
def individual_fairness_95(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    n_clusters: int | None = None,
    centers: ArrayLike | None = None,
    max_rows: int | None = 5_000,
) -> float:
    """Ratio of distance to radius, as in `individual_fairness`, that 95 % of the points do not exceed.

    Returns
    -------
    float
        In [0, inf], lower is fairer; at most `individual_fairness`. The quantile is not interpolated, so the value is
        the ratio of one of the points.
    """
    return float(np.quantile(_ratios(X, labels, n_clusters, centers, max_rows), 0.95, method="inverted_cdf"))


def _ratios(
    X: ArrayLike,
    labels: ArrayLike,
    n_clusters: int | None,
    centers: ArrayLike | None,
    max_rows: int | None,
) -> NDArray[np.float64]:
    points, codes = finite_points_and_labels(X, labels)
    k = int(codes.max()) + 1 if n_clusters is None else n_clusters
    places = checked_centers(points, codes, centers)
    rows = sampled_rows(len(codes), max_rows)
    points, codes = points[rows], codes[rows]
    distances = np.sqrt(squared_distances_to_own(points, codes, places))
    radii = neighbourhood_radii(points, k)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distances == 0, 0.0, distances / radii)
