"""The base of the methods with prototypes: points in tiles, new prototypes, and the assignment map."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from fairclust.base import check_same_order
from fairclust.frame import Frame
from fairclust.group_encoding import SensitiveColumn, encode_groups, split_columns
from fairclust.kernels.points import DTYPES, TiledPoints
from fairclust.kernels.sparse_points import SparsePoints
from fairclust.methods._centers import CenterClusterer
from fairclust.methods._columns import new_groups
from fairclust.solvers.alternation import Prototypes, mean_centers, medoid_centers
from fairclust.solvers.points import MeasuredPoints
from fairclust.solvers.sensitive import Sensitive
from fairclust.stored import Stored


class PrototypeClusterer(CenterClusterer):
    """Base of the methods that assign a row x to the cluster ``argmin_k (scale_ * dist(x, c_k) + offset_[group, k])``.

    `fit` sets `cluster_centers_`, `scale_` and `offset_`. `predict` repeats the arithmetic of the last assignment
    exactly, so training rows get their `labels_` again, except for rows that a method moved when it rounded that
    assignment (`n_rounded_` of the price methods).
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
    # For methods that take several sensitive columns: a `Sensitive`, or None, and the prices of the values of each
    # column, whose sum is the price of a combination that did not occur in the fit.
    _sensitive: Any = None
    _column_prices: list[np.ndarray]

    def _points(
        self, X: np.ndarray, codes: np.ndarray, shift: np.ndarray | None = None, n_groups: int | None = None
    ) -> TiledPoints:
        shape = n_groups or len(self.groups_), self.n_clusters
        dtype = DTYPES[self._precision]
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
        check_same_order(X, sensitive_features)
        X = self._new_rows(X)
        X = self._frame.into(X)
        codes, prices = self._codes(sensitive_features, X.shape[0])
        points = self._points(X, codes, self._shift, len(prices))
        points.measure(self._centers)
        return points.hard(self.scale_, prices)[0]

    def _codes(self, sensitive_features: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Groups of new rows, and the prices of these groups in the frame of the fit."""
        if self._sensitive is None:
            named = split_columns(sensitive_features)
            only = next(iter(named.values())) if len(named) == 1 else sensitive_features
            return encode_groups(only, n_samples, known=self.groups_)[0], self._prices
        columns, cells = self._sensitive.columns, self._sensitive.cells
        if not columns:
            return np.zeros(n_samples, np.int32), self._prices
        return new_groups(columns, cells, self._prices, self._column_prices, sensitive_features, n_samples)

    def _stored(self) -> dict[str, Any]:
        """What `predict` needs, for a file; `_take_stored` sets it."""
        found = {
            "precision": self._precision,
            **self._frame.stored(),
            "groups": self.groups_.tolist(),
            "shift": self._shift.tolist(),
            "centers": self._centers.tolist(),
            "prices": self._prices.tolist(),
            "scale": float(self.scale_),
        }
        if self._sensitive is not None:
            found["columns"] = [column.stored() for column in self._sensitive.columns]
            found["cells"] = self._sensitive.cells.tolist()
            for column, prices in zip(
                found["columns"], self._column_prices, strict=bool(self._column_prices)
            ):
                column["prices"] = prices.tolist()
        return found

    def _take_stored(self, stored: Stored, n_features: int) -> None:
        """Set what `predict` needs from a file that may be damaged: every shape is checked."""
        self.precision = stored.text("precision", DTYPES)
        self.n_features_in_ = n_features
        self._frame = Frame.from_stored(stored, n_features)
        self.groups_ = stored.names("groups")
        self._shift = stored.array("shift", n_features)
        self._centers = stored.array("centers", None, n_features)
        self.n_clusters = len(self._centers)
        shape = len(self.groups_), self.n_clusters
        self._prices = stored.array("prices", *shape)
        self.scale_ = stored.number("scale")
        if stored.has("columns"):
            parts = stored.parts("columns")
            columns = tuple(map(SensitiveColumn.from_stored, parts))
            cells = stored.array("cells", len(self.groups_), len(columns)).astype(int)
            self._sensitive = Sensitive(columns, np.empty(0, np.int32), cells)
            self._column_prices = [
                part.array("prices", len(column.values), self.n_clusters)
                for part, column in zip(parts, columns, strict=True)
                if all(of.has("prices") for of in parts)
            ]


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


class RowCenterClusterer(PrototypeClusterer):
    """Base of the methods whose centres are rows of X and whose points go to their nearest centre.

    `_take` sets the attributes that `fit` and `predict` need.
    """

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
