"""scikit-learn's k-means, on one thread."""

from __future__ import annotations

from typing import Any

from sklearn import cluster
from threadpoolctl import threadpool_limits


class Lloyd(cluster.KMeans):
    """`sklearn.cluster.KMeans` whose results do not depend on the number of threads.

    scikit-learn adds up one partial sum per thread, so the last digits of centres and inertia depend on their number.
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Lloyd:
        with threadpool_limits(1):
            return super().fit(X, y, sample_weight)
