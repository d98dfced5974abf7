"""The base of the methods with prototypes: points in tiles, new prototypes, and the assignment map."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.group_encoding import encode_groups
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.kernels.sparse_points import SparsePoints
from fairclust.methods._centers import CenterClusterer
from fairclust.solvers.alternation import Prototypes, mean_centers, medoid_centers
from fairclust.solvers.points import MeasuredPoints


class PrototypeClusterer(CenterClusterer):
    """Base of the methods that assign a row x to the cluster ``argmin_k (scale_ * dist(x, c_k) + offset_[group, k])``.

    `fit` sets `cluster_centers_`, `scale_` and `offset_`, of shape (n_groups, n_clusters). `predict` repeats the
    arithmetic of the last assignment exactly, so training rows get their `labels_` again, except for rows that a
    method moved when it rounded that assignment (`n_rounded_` of the price methods).
    """

    _power = 2
    _accept_sparse: bool | str = "csr"
    precision: str
    scale_: float
    offset_: np.ndarray
    _shift: np.ndarray
    # Centres and prices in the frame of the fit, in which the labels were found.
    _centers: np.ndarray
    _prices: np.ndarray

    def _points(
        self, X: np.ndarray, codes: np.ndarray, shift: np.ndarray | None = None, n_groups: int | None = None
    ) -> TiledPoints:
        shape = n_groups or len(self.groups_), self.n_clusters
        dtype = DTYPES[self.precision]
        if sp.issparse(X):
            return SparsePoints.pack(X, codes, *shape, dtype=dtype)  # type: ignore[return-value]
        return TiledPoints.pack(X, codes, *shape, shift=shift, squared=self._power == 2, dtype=dtype)

    def _update(self, points: TiledPoints, labels: np.ndarray, old: Prototypes) -> Prototypes:
        """Best centres for hard labels. An empty cluster keeps its old centre."""
        return mean_centers(points, labels, old)

    def _keep(self, points: MeasuredPoints, prototypes: Prototypes) -> None:
        self._shift = points.shift
        self.cluster_centers_ = self._centers = prototypes.centers

    def _restore(self, X: np.ndarray) -> None:
        self._prices = self.offset_
        self.offset_ = self.offset_ * self._frame.cost_unit(self._power)
        super()._restore(X)

    def predict(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Assign rows, which may be new, to clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
            The columns of `fit`, with values that were seen there. Combinations of values may be new, unless
            ``crossed=True`` bounded the combinations. The price of a new combination is the sum of the prices of its
            values.

        Returns
        -------
        ndarray of shape (n_samples,)
            The cluster of every row.

        Raises
        ------
        ValueError
            `X` has another number of features than in `fit`, or a group is missing or was not seen in `fit`, or a
            combination is new after ``crossed=True``.
        """
        X = self._new_rows(X)
        codes, prices = self._codes(sensitive_features, X.shape[0])
        points = self._points(X, codes, self._shift, len(prices))
        points.measure(self._centers)
        return points.hard(self.scale_, prices)[0]

    def _codes(self, sensitive_features: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Groups of new rows, and the prices of these groups in the frame of the fit."""
        return encode_groups(sensitive_features, n_samples, known=self.groups_)[0], self._prices


class MedoidClusterer(PrototypeClusterer):
    """Base of the methods whose centres are the medoids of the clusters, with Euclidean distances."""

    _accept_sparse = False
    _power = 1
    exact_size: int
    max_evaluations: int

    def _update(self, points: TiledPoints, labels: np.ndarray, old: Prototypes) -> Prototypes:
        return medoid_centers(
            points.X, labels, old, exact_size=self.exact_size, max_evaluations=self.max_evaluations
        )

    def _keep(self, points: MeasuredPoints, prototypes: Prototypes) -> None:
        super()._keep(points, prototypes)
        unmoved = np.full(self.n_clusters, -1)
        self.medoid_indices_ = unmoved if prototypes.rows is None else prototypes.rows
        self.medoid_gap_ = prototypes.gap

    def _put_back(self, order: np.ndarray) -> None:
        super()._put_back(order)
        moved = self.medoid_indices_ >= 0
        self.medoid_indices_ = np.where(moved, order[self.medoid_indices_], -1)

    def _restore(self, X: np.ndarray) -> None:
        super()._restore(X)
        # The medoids are copied from `X`, because the conversion into the frame and back has rounding errors.
        moved = self.medoid_indices_ >= 0
        self.cluster_centers_ = np.array(self.cluster_centers_)
        self.cluster_centers_[moved] = X[self.medoid_indices_[moved]]
