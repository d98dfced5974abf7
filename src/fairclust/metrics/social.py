"""Social fairness: the cost of each group, which is the mean squared distance of its points to their centres."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.group_encoding import group_codes
from fairclust.metrics.centers import cluster_means, points_and_labels, squared_distances_to_centers
from fairclust.metrics.registry import documented


@documented
def group_costs(
    X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike, centers: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Mean squared distance of each group's points to the centres of their clusters.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each point, without missing ones. If there are several columns, each combination of values is a
        group.
    centers : array-like of shape (n_clusters, n_features), optional
        Default: the means of the clusters. Socially fair methods place their centres elsewhere.

    Returns
    -------
    ndarray of shape (n_groups,)
        In the order of the groups' sorted values. In [0, inf), lower is better.

    References
    ----------
    Ghadiri et al. 2021; Abbasi et al. 2021
    """
    points, codes = points_and_labels(X, labels)
    groups = group_codes(sensitive_features)
    if groups.shape != codes.shape:
        raise ValueError(f"labels {codes.shape} and sensitive_features {groups.shape} must have one length")
    places = cluster_means(points, codes) if centers is None else np.asarray(centers, dtype=float)
    if places.ndim != 2 or places.shape[1] != points.shape[1] or len(places) <= codes.max():
        raise ValueError(
            f"centers has shape {places.shape}, X has {points.shape}, labels go to {codes.max()}"
        )
    distances = squared_distances_to_centers(points, codes, places)
    return np.bincount(groups, weights=distances) / np.bincount(groups)
