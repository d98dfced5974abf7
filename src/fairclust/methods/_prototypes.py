"""The base of the methods with centres: rows in memory or in chunks, new centres, and the assignment of new rows."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, checked_weights, is_collection
from fairclust.chunks.rows import ChunkedRows
from fairclust.chunks.sources import ChunkError
from fairclust.chunks.table import ChunkTable, open_chunks
from fairclust.frame import Frame
from fairclust.group_encoding import check_same_order, encode_groups
from fairclust.kernels.listed import ListedPoints
from fairclust.kernels.points import (
    DTYPES,
    MeasuredPoints,
    TiledPoints,
    worth_listing,
)
from fairclust.kernels.tiles import blocks, one_thread
from fairclust.solvers.alternation import Prototypes, mean_centers, medoid_centers

# Rows whose costs are computed at a time, so that temporary arrays stay in the cache.
_BLOCK_ROWS = 1 << 14


class PrototypeClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FairClusterer):
    """Base of the methods that assign a row x to the cluster ``argmin_k (scale_ * dist(x, c_k) + offset_[group, k])``.

    `_keep` sets `cluster_centers_`, `scale_` and `offset_`. `predict` repeats the arithmetic of the last assignment
    exactly, so training rows get their `labels_` again, except for rows that a method moved when it rounded that
    assignment (`n_rounded_` of the price methods). After a fit on rows in chunks, `n_passes_` says how many times all
    rows were read.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
    """

    # scikit-learn's metadata routing then passes the groups on without a call of `set_predict_request`.
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    _power = 2
    # Whether a fit needs only the cheapest clusters of each row, so that lists of them can take the place of a table.
    _takes_lists = False
    # Parameters of the methods that search.
    init: Any
    n_init: int
    search: bool
    cluster_centers_: np.ndarray
    scale_: float
    offset_: np.ndarray
    _shift: np.ndarray
    # Centres and prices in the frame of the fit, in which the labels were found.
    _centers: np.ndarray
    _prices: np.ndarray
    # The prices of the values of each of several columns, whose sum is the price of a combination that did not occur
    # in the fit.
    _column_prices: list[np.ndarray]

    def _fit_weighted(self, X: Any, sensitive_features: Any, weights: Any) -> None:
        with one_thread():
            if self.takes_chunks and (isinstance(X, str | Path | ChunkTable) or is_collection(X)):
                self._fit_table(X, sensitive_features, weights)
            else:
                super()._fit_weighted(X, sensitive_features, weights)

    def _fit_table(self, X: Any, sensitive_features: Any, sample_weight: Any) -> None:
        """Fit rows in chunks."""
        self._validate_params()
        self._check_chunks(sample_weight)
        with nullcontext(X) if isinstance(X, ChunkTable) else open_chunks(X, sensitive_features) as table:
            if self._needs_groups and not table.has_groups:
                raise ChunkError(
                    "sensitive_features is missing: pass the group of every row, as an array or a .npy file"
                )
            seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
            dtype = DTYPES[getattr(self, "precision", "single")]
            rows = ChunkedRows(table, self.n_clusters, seed, dtype=dtype, takes_lists=self._takes_lists)
            n_features = rows.known.X.shape[1]
            self.groups_, self.n_features_in_, self._sensitive = rows.known.names, n_features, None
            if table.features:
                self.feature_names_in_ = np.array(table.features, dtype=object)
            self._check_sizes(rows.known.n_rows)
            # Chunks are not centred and scaled, because every pass would have to do it again.
            self._frame = Frame.plain(n_features)._replace(is_far=rows.is_far)
            self._fit_chunks(rows)
            self._restore(rows.known.X)
            self.labels_ = rows.written(self.labels_)
            self.n_passes_ = rows.points.n_passes

    def _check_chunks(self, sample_weight: Any) -> None:
        """Raise NotSupported for parameters and weights that are for rows in memory only."""

    def _fit_chunks(self, rows: ChunkedRows) -> None:
        """Set the attributes of the fit as `_fit` does, but `labels_` as `ChunkLabels`, which are written later."""
        raise NotImplementedError

    def _points(
        self,
        X: np.ndarray,
        codes: np.ndarray,
        *,
        shift: np.ndarray | None = None,
        shape: tuple[int, int] | None = None,
        weights: np.ndarray | None = None,
    ) -> Any:
        """The rows for a fit or an assignment: `TiledPoints`, or `ListedPoints` for many clusters.

        `shape` is (n_groups, n_clusters), by default that of the fit that is going on.
        """
        shape = shape or (len(self.groups_), self.n_clusters)
        dtype, squared = DTYPES[self._precision], self._power == 2
        if self._takes_lists and squared and weights is None and worth_listing(len(X), *shape):
            return ListedPoints.pack(X, codes, *shape, shift=shift, dtype=dtype)
        return TiledPoints.pack(X, codes, *shape, shift=shift, squared=squared, dtype=dtype, weights=weights)

    @property
    def _searches(self) -> bool:
        """Whether to search, and there are several starts to search from."""
        return self.search and isinstance(self.init, str) and self.n_init > 1 and self.n_clusters > 1

    def _update(self, points: MeasuredPoints, labels: Any, old: Prototypes) -> Prototypes:
        """Best centres for hard labels. An empty cluster keeps its old centre."""
        return mean_centers(points, labels, old)

    def _keep(
        self, points: MeasuredPoints, prototypes: Prototypes, offset: np.ndarray, scale: float = 1.0
    ) -> None:
        """Set the assignment map, in the frame of the fit."""
        self._shift = points.shift
        self.cluster_centers_ = self._centers = prototypes.centers
        self.offset_ = self._prices = offset
        self.scale_ = scale

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
        # `n_clusters` may have been set anew.
        points = self._points(X, codes, shift=self._shift, shape=(len(prices), len(self._centers)))
        points.measure(self._centers)
        return points.hard(self.scale_, prices)[0]

    def _codes(self, sensitive_features: Any, n_samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Groups of new rows, and the prices of these groups in the frame of the fit."""
        if self._sensitive is None:
            return encode_groups(sensitive_features, n_samples, known=self.groups_)[0], self._prices
        return self._sensitive.new_groups(self._prices, self._column_prices, sensitive_features, n_samples)

    def _saved(self) -> dict[str, Any]:
        """The attributes that `predict` needs, for a file, which has nothing of single rows."""
        names = ["n_clusters", "n_features_in_", "precision", "groups_", "scale_", "_frame", "_shift"]
        names += ["_centers", "_prices", "_column_prices"]
        found = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if self._sensitive is not None:
            found["_sensitive"] = replace(self._sensitive, codes=np.empty(0, np.int32))
        return found

    def transform(self, X: Any) -> np.ndarray:
        """Distances of each row to all centres. The groups are not needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Euclidean distances. After ``set_output(transform="pandas")`` it is a data frame.
        """
        rows = self._new_rows(X)
        # `euclidean_distances` expands the squares, whose rounding errors are as large as the rows are far from zero.
        return cdist(rows, self.cluster_centers_)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Minus the clustering cost of the predicted labels, so that larger is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            The weight of each row in the cost; 1 by default.
        sensitive_features : array-like of shape (n_samples,)
            The group of every row, which `predict` needs.

        Returns
        -------
        float
            Minus the sum of squared distances to the centres (k-medians: of distances). It does not measure
            fairness.
        """
        check_same_order(X, sample_weight, "sample_weight")
        check_same_order(sensitive_features, sample_weight, "sample_weight", "sensitive_features")
        rows = self._new_rows(X)
        labels = self.predict(X, sensitive_features=sensitive_features)
        return -self._paid(rows, labels, self.cluster_centers_, checked_weights(sample_weight, rows))

    def _paid(
        self, X: Any, labels: np.ndarray, centers: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        """The clustering cost of labels, summed in double precision over the differences of rows and centres."""
        squares = np.empty(len(labels))
        for rows in blocks(len(labels), _BLOCK_ROWS):
            deviation = np.subtract(X[rows], centers[labels[rows]], dtype=np.float64)
            squares[rows] = np.einsum("pd,pd->p", deviation, deviation)
        costs = np.sqrt(squares) if self._power == 1 else squares
        return float(costs.sum(dtype=np.float64) if weights is None else weights @ costs)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


class MedoidClusterer(PrototypeClusterer):
    """Base of the methods whose centres are the medoids of the clusters, with Euclidean distances.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The medoids of the last assignment, which `predict` uses too. In a cluster of more than 20,000 rows it is the
        best of 100 rows near the geometric median, which may not be the medoid.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The row of X of every centre; -1 for a centre of `init` that was never moved.
    """

    _power = 1
    # A medoid counts every row once.
    takes_chunks = takes_weights = False

    def _update(self, points: Any, labels: np.ndarray, old: Prototypes) -> Prototypes:
        return medoid_centers(points.X, labels, old)

    def _keep(self, points: MeasuredPoints, prototypes: Prototypes, *map_of: Any) -> None:
        super()._keep(points, prototypes, *map_of)
        rows = np.full(self.n_clusters, -1) if prototypes.rows is None else prototypes.rows
        self.medoid_indices_ = self._center_rows = rows
