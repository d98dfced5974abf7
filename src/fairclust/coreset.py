"""Fair coresets: few weighted rows, group by group, that stand for all."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from fairclust.base import COUNT, Frame, encode_groups
from fairclust.solvers.coreset import rows_of_groups, sensitivity_sample


class FairCoreset(BaseEstimator):
    """Replace rows by fewer ones with weights, such that every group's cost is nearly the same for any centres.

    Each group gets a coreset of its own. Together they are one whatever shares of the groups a clustering must keep,
    since every row stands for rows of its own group alone. Each group gets as many rows as any other, because the
    error of its cost depends on their number and not on its size.

    As a resampler it changes the number of rows, which scikit-learn's transformers must not: `fit_resample` has the
    form of imbalanced-learn's.

    Parameters
    ----------
    n_rows : int, default=1000
        Of the coreset, at most.
    n_clusters : int, default=8
        Clusters that are looked for afterwards.
    random_state : int, RandomState or None

    Attributes
    ----------
    sample_indices_ : ndarray of int
        The rows that were taken, sorted by group and then by number.
    weights_ : ndarray of float
        How many rows each stands for. Those of a group sum to its size.
    groups_ : ndarray of shape (n_groups,)

    References
    ----------
    Schmidt, Schwiegelshohn, Sohler, "Fair coresets and streaming algorithms for fair k-means clustering", 2018;
    Huang, Jiang, Vishnoi, "Coresets for clustering with fairness constraints", NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import FairCoreset, SociallyFairKMeans
    >>> X = np.random.default_rng(0).normal(size=(10_000, 2))
    >>> groups = np.arange(10_000) % 2
    >>> few, of_few, weights = FairCoreset(400, random_state=0).fit_resample(X, sensitive_features=groups)
    >>> model = SociallyFairKMeans(3, random_state=0).fit(few, sensitive_features=of_few, sample_weight=weights)
    >>> labels = model.predict(X, groups)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_rows": COUNT,
        "n_clusters": COUNT,
        "random_state": ["random_state"],
    }

    def __init__(self, n_rows: int = 1000, *, n_clusters: int = 8, random_state: Any = None) -> None:
        self.n_rows = n_rows
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, sensitive_features: Any = None) -> FairCoreset:
        """Choose the rows and their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers.
        y : ignored
        sensitive_features : array-like of shape (n_samples,)
            The group of every row.

        Returns
        -------
        self
        """
        self._validate_params()
        X = validate_data(self, X, dtype=[np.float64, np.float32], order="C")
        codes, self.groups_ = encode_groups(sensitive_features, len(X))
        X = Frame.of(X).into(X)
        rng = check_random_state(self.random_state)
        if self.n_rows < len(self.groups_):
            raise ValueError(f"n_rows={self.n_rows} is less than one for each of {len(self.groups_)} groups")
        taken, weights = [], []
        for j, n_rows in enumerate(rows_of_groups(np.bincount(codes), self.n_rows)):
            members = np.flatnonzero(codes == j)
            rows, weight = sensitivity_sample(X[members], int(n_rows), self.n_clusters, rng)
            taken.append(members[rows])
            weights.append(weight)
        self.sample_indices_, self.weights_ = np.concatenate(taken), np.concatenate(weights)
        return self

    def fit_resample(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`fit`, then the coreset.

        Returns
        -------
        X : ndarray of shape (n_taken, n_features)
        sensitive_features : ndarray of shape (n_taken,)
        sample_weight : ndarray of shape (n_taken,)
        """
        self.fit(X, sensitive_features=sensitive_features)
        rows = self.sample_indices_
        groups = np.asarray(sensitive_features).reshape(-1)[rows]
        return np.asarray(X)[rows], groups, self.weights_
