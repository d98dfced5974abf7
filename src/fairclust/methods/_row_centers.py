"""The base of the methods whose centres are rows of X and whose points go to their nearest centre."""

from __future__ import annotations

import numpy as np

from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.solvers.alternation import Prototypes


class RowCenterClusterer(PrototypeClusterer):
    """Base of these methods: `_take` sets the attributes that `fit` and `predict` need."""

    _accept_sparse = False
    precision = "double"

    def _take(self, X: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Set the centres and labels, and return each point's distance to its centre, shape (n_samples,)."""
        points = self._points(X, codes)
        self._keep(points, Prototypes(X[rows].astype(np.float64)))
        points.measure(self.cluster_centers_)
        self.scale_, self.offset_ = 1.0, np.zeros((len(self.groups_), self.n_clusters))
        self.labels_ = points.hard(self.scale_, self.offset_)[0]
        self.center_indices_ = rows
        return np.linalg.norm(X - self.cluster_centers_[self.labels_], axis=1)
