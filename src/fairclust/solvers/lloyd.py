"""scikit-learn's k-means, on one thread, and the nearest centres of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn import cluster

from fairclust.kernels.tiles import one_thread, pairwise_blocks


class Lloyd(cluster.KMeans):
    """`sklearn.cluster.KMeans` whose results do not depend on the number of threads.

    scikit-learn adds up one partial sum per thread, so the last digits of centres and inertia depend on their number.
    """

    @classmethod
    def started_as(cls, method: Any, **more: Any) -> Lloyd:
        """K-means from the given centres of a method, or the best of as many starts as it asks for."""
        n_init = method.n_init if isinstance(method.init, str) else 1
        return cls(method.n_clusters, init=method._framed_init(), n_init=n_init, **more)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Lloyd:
        with one_thread(None):
            return super().fit(X, y, sample_weight)


def nearest_centers(X: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centre of each point and the squared distance to it, both of shape (n_samples,)."""
    labels, squares = np.empty(len(X), int), np.empty(len(X))
    for rows in pairwise_blocks(len(X), len(centers)):
        table = cdist(X[rows], centers, "sqeuclidean")
        labels[rows], squares[rows] = table.argmin(axis=1), table.min(axis=1)
    return labels, squares
