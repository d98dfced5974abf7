"""Best centres for hard labels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairclust.kernels.assignment import cluster_moments
from fairclust.kernels.medoid import medoid


class Prototypes(NamedTuple):
    """Centres, the rows of X that they are (k-medians), and how far from the best ones they may be."""

    centers: np.ndarray
    rows: np.ndarray | None = None
    gap: float = 0.0


def mean_centers(X: np.ndarray, labels: np.ndarray, old: Prototypes) -> Prototypes:
    """Means of the clusters; an empty one keeps its old centre."""
    sizes, sums = cluster_moments(X, labels, len(old.centers))
    return Prototypes(np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], old.centers))


def medoid_centers(
    X: np.ndarray, labels: np.ndarray, old: Prototypes, *, exact_size: int, max_evaluations: int
) -> Prototypes:
    """Medoids of the clusters; an empty one keeps its old centre.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
    old : Prototypes
    exact_size, max_evaluations : int
        Exact for clusters of at most so many points; elsewhere the best of so many points.
    """
    centers = old.centers.copy()
    rows = np.full(len(centers), -1) if old.rows is None else old.rows.copy()
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(len(centers) + 1))
    cost = bound = 0.0
    for k in range(len(centers)):
        members = order[ends[k] : ends[k + 1]]
        if not len(members):
            continue
        budget = None if len(members) <= exact_size else max_evaluations
        found = medoid(X[members], max_evaluations=budget)
        rows[k] = members[found.row]
        centers[k] = X[rows[k]]
        cost += found.cost
        bound += found.lower_bound
    return Prototypes(centers, rows, cost / bound - 1 if bound else 0.0)


class MedoidMixin:
    """Medoids as centres, for a method that asks `_update` for centres and hands the last ones to `_keep`."""

    _squared_distances = False

    n_clusters: int
    exact_size: int
    max_evaluations: int

    def _update(self, X: np.ndarray, labels: np.ndarray, old: Prototypes) -> Prototypes:
        return medoid_centers(
            X, labels, old, exact_size=self.exact_size, max_evaluations=self.max_evaluations
        )

    def _keep(self, prototypes: Prototypes) -> None:
        super()._keep(prototypes)  # type: ignore[misc]
        unmoved = np.full(self.n_clusters, -1)
        self.medoid_indices_ = unmoved if prototypes.rows is None else prototypes.rows
        self.medoid_gap_ = prototypes.gap
