"""Metrics that compare points with each other: individual and proportional fairness.

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
    squared_distances_to_centers,
)
from fairclust.metrics.registry import metric

_PROPORTIONAL = "Chen et al. 2019; Micha and Shah 2020"


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

    Jung et al. ask for at most 1, and show that every data set has centres with at most 2. It is ``inf`` if n/k points
    coincide but their centre lies elsewhere.
    """
    from scipy.spatial.distance import cdist

    _, agents, paid, k = _payers(X, labels, n_clusters, centers, max_rows)
    rank = ceil(len(agents) / k) - 1
    radii = np.empty(len(agents))
    for part in pairwise_blocks(len(agents), len(agents)):
        distances = cdist(agents[part], agents)
        distances.partition(rank, axis=1)
        radii[part] = distances[:, rank]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(paid == 0, 0.0, paid / radii).max())


@metric("Proportionality (rho)", (0.0, inf), "lower", _PROPORTIONAL, needs="X", audit=True)
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
    for all points i of the coalition, where c(i) is the centre of the cluster of i. (In the papers, it is the nearest
    centre.) The value is the smallest rho for which no coalition blocks the clustering. If it is at most 1, no
    coalition gains by another centre. Every data set has points that, as centres, give at most 1 + sqrt(2). It is
    ``inf`` if n/k points coincide but their centres lie elsewhere.

    Parameters
    ----------
    max_rows, max_candidates : int or None, default 20,000 and 1,000
        With more rows, coalitions are formed of a random sample of `max_rows` points, and y is one of a random sample
        of `max_candidates` points. The samples are always the same. Fewer points y can only lower the value. None for
        no limit.
    """
    from scipy.spatial.distance import cdist

    points, agents, paid, k = _payers(X, labels, n_clusters, centers, max_rows)
    places = points[sampled_rows(len(points), max_candidates)].astype(float)
    size = ceil(len(agents) / k)
    largest = 0.0
    for part in pairwise_blocks(len(places), len(agents)):
        distances = cdist(places[part], agents)
        with np.errstate(divide="ignore", invalid="ignore"):
            gains = np.where(paid == 0, 0.0, paid / distances)
        gains.partition(len(agents) - size, axis=1)
        largest = max(largest, float(gains[:, -size].max()))
    return largest


def _payers(
    X: ArrayLike,
    labels: ArrayLike,
    n_clusters: int | None,
    centers: ArrayLike | None,
    max_rows: int | None,
) -> tuple[NDArray, NDArray[np.float64], NDArray[np.float64], int]:
    """All points; a sample of them with the distances to their centres; and k."""
    points, codes = finite_points_and_labels(X, labels)
    places = checked_centers(points, codes, centers)
    rows = sampled_rows(len(codes), max_rows)
    agents = points[rows].astype(float)
    paid = np.sqrt(squared_distances_to_centers(agents, codes[rows], places))
    return points, agents, paid, int(codes.max()) + 1 if n_clusters is None else n_clusters
