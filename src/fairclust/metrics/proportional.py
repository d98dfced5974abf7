"""Proportional fairness: whether enough points would all be better off with a centre of their own."""

from __future__ import annotations

from math import ceil

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist

from fairclust.metrics.centers import (
    checked_centers,
    finite_points_and_labels,
    pairwise_blocks,
    sampled_rows,
    squared_distances_to_own,
)

__all__ = ["proportionality"]


def proportionality(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    n_clusters: int | None = None,
    centers: ArrayLike | None = None,
    max_rows: int | None = 20_000,
    max_candidates: int | None = 1_000,
) -> float:
    """Largest factor rho by which n/k points would all come nearer to a centre if one of the points were one.

    A coalition of ``ceil(n/k)`` points blocks a clustering if there is a place y with ``rho d(i, y) < d(i, c(i))``
    for all its points i, c(i) being the centre of the cluster of i. This is the rho from which on none does.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite points.
    labels : array-like of int, shape (n_samples,)
        Cluster of each point, from 0.
    n_clusters : int, optional
        k. Default: the largest label plus one.
    centers : array-like of shape (n_clusters, n_features), optional
        Default: the means of the clusters.
    max_rows, max_candidates : int or None, default 20,000 and 1,000
        With more rows, the points who may form a coalition, and the places y, are random samples of these sizes,
        always the same ones. Fewer places can only lower the value. None for no limit.

    Returns
    -------
    float
        In [0, inf], lower is fairer. At most 1: no coalition gains. Every data set has centres, out of its points,
        with at most 1 + sqrt(2). ``inf`` if n/k copies of a point have their centre elsewhere.

    Raises
    ------
    ValueError
        If the shapes disagree, the labels are no non-negative integers, or ``X`` is not finite.

    References
    ----------
    Chen, Fain, Lyu, Munagala, "Proportionally fair clustering", 2019; Micha and Shah, "Proportionally fair
    clustering revisited", 2020. Their points go to their nearest centre, these to the one that their label
    says.
    """
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
