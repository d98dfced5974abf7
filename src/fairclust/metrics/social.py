"""Social fairness: the cost of each group, which is the mean squared distance of its points to their centres."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.metrics.centers import checked_centers, finite_points_and_groups, squared_distances_to_centers
from fairclust.metrics.registry import documented, metric

_SOURCE = "Ghadiri et al. 2021; Abbasi et al. 2021"


@documented
def group_costs(
    X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike, centers: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Mean squared distance of each group's points to the centres of their clusters.

    Parameters
    ----------
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
    points, codes, groups = finite_points_and_groups(X, labels, sensitive_features)
    places = checked_centers(points, codes, centers)
    distances = squared_distances_to_centers(points, codes, places)
    return np.bincount(groups, weights=distances) / np.bincount(groups)


@metric("Worst group's cost", (0.0, inf), "lower", _SOURCE, needs="X", audit=True)
def worst_group_cost(X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike) -> float:
    """Largest cost of a group, which is the mean squared distance of its points to the cluster means."""
    return float(group_costs(X, labels, sensitive_features=sensitive_features).max())


@metric("Worst to best group's cost", (1.0, inf), "lower", _SOURCE, needs="X", audit=True)
def group_cost_ratio(X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike) -> float:
    """Ratio of the largest to the smallest cost of a group, with the cluster means as centres.

    It is 1 if all costs are 0, and ``inf`` if only some are.
    """
    costs = group_costs(X, labels, sensitive_features=sensitive_features)
    if costs.min() > 0:
        return float(costs.max() / costs.min())
    return 1.0 if costs.max() == 0 else float("inf")


@documented
def group_cost_changes(
    X: ArrayLike, labels: ArrayLike, plain_labels: ArrayLike, *, sensitive_features: ArrayLike
) -> NDArray[np.float64]:
    """Relative change of each group's cost against a plain clustering: ``cost / plain cost - 1``.

    Parameters
    ----------
    plain_labels : array-like of int, shape (n_samples,)
        A clustering that ignores the groups, such as that of `KMeans`.

    Returns
    -------
    ndarray of shape (n_groups,)
        In [-1, inf], lower is better; 0.1 means a cost ten per cent higher. 0 for a group whose cost is 0 in both.
    """
    now = group_costs(X, labels, sensitive_features=sensitive_features)
    plain = group_costs(X, plain_labels, sensitive_features=sensitive_features)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(now == plain, 0.0, now / plain - 1)
