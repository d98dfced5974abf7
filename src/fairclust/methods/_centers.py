"""The base of the methods with centres. Like scikit-learn's k-means, it has distances to centres and a score."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import euclidean_distances
from sklearn.utils.validation import _check_sample_weight

from fairclust.base import FairClusterer
from fairclust.metrics.centers import squared_distances_to_own


class CenterClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, FairClusterer):
    """Base of the methods that set `cluster_centers_` and can assign new rows."""

    # scikit-learn's metadata routing then passes the groups on without a call of `set_predict_request`.
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    cluster_centers_: np.ndarray

    @abstractmethod
    def predict(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Cluster of each row."""

    def fit_transform(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> np.ndarray:
        """`fit`, then `transform`."""
        return self.fit(X, sensitive_features=sensitive_features).transform(X)

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
        if issparse(rows):
            return euclidean_distances(rows, self.cluster_centers_)
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
            fairness; `fairclust.FairnessScorer` does.
        """
        rows = self._new_rows(X)
        labels = self.predict(X, sensitive_features=sensitive_features)
        weights = _check_sample_weight(sample_weight, rows, dtype=np.float64)
        return -self._paid(rows, labels, self.cluster_centers_, weights)

    def _paid(
        self, X: Any, labels: np.ndarray, centers: np.ndarray, weights: np.ndarray | None = None
    ) -> float:
        """The clustering cost of labels, summed in double precision over the differences of rows and centres."""
        if issparse(X):
            all_squares = euclidean_distances(X, centers, squared=True)
            squares = np.take_along_axis(all_squares, labels[:, None], axis=1)[:, 0]
        else:
            squares = squared_distances_to_own(X, labels, centers)
        costs = np.sqrt(squares) if self._power == 1 else squares
        return float(costs.sum(dtype=np.float64) if weights is None else weights @ costs)

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
