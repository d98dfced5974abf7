"""Proportional fairness: whether some n/k points would all be nearer to another centre than to their own."""

from __future__ import annotations

from math import ceil, inf

import numpy as np
from numpy.typing import ArrayLike

from fairclust.metrics.centers import (
    checked_centers,
    finite_points_and_labels,
    pairwise_blocks,
    sampled_rows,
    squared_distances_to_own,
)
from fairclust.metrics.registry import metric

__all__ = ["proportionality"]


@metric(
    "Proportionality (rho)",
    (0.0, inf),
    "lower",
    "Chen et al. 2019; Micha and Shah 2020",
    needs="X",
    audit=True,
)
def proportionality(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    n_clusters: int | None = None,
    centers: ArrayLike | None = None,
    max_rows: int | None = 20_000,
    max_candidates: int | None = 1_000,
) -> float:
    """Largest factor by which some n/k points would all be nearer to a new centre than to their own centres.

    A coalition of ``ceil(n/k)`` points blocks a clustering if there is a point y with ``rho d(i, y) < d(i, c(i))``
    for all points i of the coalition, where c(i) is the centre of the cluster of i. The value is the smallest rho for
    which no coalition blocks the clustering.

    Parameters
    ----------
    max_rows, max_candidates : int or None, default 20,000 and 1,000
        With more rows, coalitions are formed of a random sample of `max_rows` points, and y is one of a random sample
        of `max_candidates` points. The samples are always the same. Fewer points y can only lower the value. None for
        no limit.

    Returns
    -------
    float
        In [0, inf], lower is fairer. If it is at most 1, no coalition gains by another centre. Every data set has
        points that, as centres, give at most 1 + sqrt(2). ``inf`` if n/k points coincide but their centres lie
        elsewhere.

    Notes
    -----
    In the papers, every point has its nearest centre; here it has the centre of its cluster.
    """
    from scipy.spatial.distance import cdist

    points, codes = finite_points_and_labels(X, labels)
    k = int(codes.max()) + 1 if n_clusters is None else n_clusters
    own = checked_centers(points, codes, centers)
    places = points[sampled_rows(len(codes), max_candidates)].astype(float)
    rows = sampled_rows(len(codes), max_rows)
    agents, codes = points[rows].astype(float), codes[rows]
    paid = np.sqrt(squared_distances_to_own(agents, codes, own))
    size = ceil(len(agents) / k)
    largest = 0.0
    for part in pairwise_blocks(len(places), len(agents)):
        distances = cdist(places[part], agents)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(paid == 0, 0.0, paid / distances)
        gains.partition(len(agents) - size, axis=1)
        largest = max(largest, float(gains[:, -size].max()))
    return largest
