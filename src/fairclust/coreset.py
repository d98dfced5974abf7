"""Fair coresets: a few weighted rows of each group that represent all of its rows.

The rows are systematic samples by sensitivity: Feldman and Langberg, "A unified framework for approximating and
clustering data", 2011; Bachem, Lucic, Krause, "Practical coreset constructions for machine learning", 2017, for the
bound on the sensitivity; Madow, "On the theory of systematic sampling, II", 1949, for the draws.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator
from sklearn.cluster import kmeans_plusplus
from sklearn.utils import check_random_state

from fairclust.base import COUNT, validated
from fairclust.frame import Frame
from fairclust.group_encoding import encode_groups

# Number of k-means++ centres for each cluster. With this many, their cost is that of the best centres up to a constant
# factor.
_PICKS = 2


class FairCoreset(BaseEstimator):
    """Replace the rows by fewer weighted ones, such that every group's k-means cost is nearly the same for any centres.

    Each group gets a separate coreset, so every row represents rows of its own group only. Together they are a
    coreset for any bounds on the group shares. All groups get the same number of rows, because the error of a group's
    cost depends on the number of its rows in the coreset, not on its size. A group with fewer rows is kept whole.

    A scikit-learn transformer may not change the number of rows, so this is a resampler: `fit_resample` works as in
    imbalanced-learn.

    Parameters
    ----------
    n_rows : int, default=1000
        Largest number of rows of the coreset; at least one for each group.
    n_clusters : int, default=8
        Number of clusters that will be computed from the coreset.
    random_state : int, RandomState or None

    Attributes
    ----------
    sample_indices_ : ndarray of int, shape (n_taken,)
        The rows that were taken, sorted by group and then by row number.
    weights_ : ndarray of float, shape (n_taken,)
        The number of rows that each taken row represents. The weights of a group sum to its size.
    groups_ : ndarray of shape (n_groups,)
        The distinct values of the sensitive column, sorted.

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

        Raises
        ------
        ValueError
            `X` is not finite, the groups are missing or not one for each row, or `n_rows` is less than the number of
            groups.
        """
        self._validate_params()
        X = validated(self, X, dtype=[np.float64, np.float32], order="C")
        codes, self.groups_ = encode_groups(sensitive_features, len(X))
        X = Frame.of(X).into(X)
        rng = check_random_state(self.random_state)
        if self.n_rows < len(self.groups_):
            raise ValueError(
                f"n_rows={self.n_rows} is less than one for each of {len(self.groups_)} groups: raise it"
            )
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
        """`fit`, with its parameters and errors, then return the rows of the coreset.

        Returns
        -------
        X : ndarray of shape (n_taken, n_features)
        sensitive_features : ndarray of shape (n_taken,)
            The group of each taken row.
        sample_weight : ndarray of shape (n_taken,)
            `weights_`.
        """
        self.fit(X, sensitive_features=sensitive_features)
        rows = self.sample_indices_
        groups = np.asarray(sensitive_features).reshape(-1)[rows]
        return np.asarray(X)[rows], groups, self.weights_


def sensitivity_sample(
    X: np.ndarray, n_rows: int, n_clusters: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows by sensitivity, the largest share of the k-means cost that a row can have: sorted rows and their
    weights.

    The draws are evenly spaced along the rows, sorted so that near rows follow each other. So every region gets its
    share of the draws, and the cost of the sample varies less. A row that is drawn twice has more weight.
    """
    n_samples = len(X)
    if n_rows >= n_samples:
        return np.arange(n_samples), np.ones(n_samples)
    seed = int(rng.randint(np.iinfo(np.int32).max))
    picks = kmeans_plusplus(X, min(_PICKS * n_clusters, n_samples), random_state=seed)[0]
    squares = cdist(X, picks, "sqeuclidean")
    every = np.arange(n_samples)
    nearest = squares.argmin(axis=1)
    paid = squares[every, nearest]
    sizes = np.bincount(nearest, minlength=len(picks))
    mean = paid.mean() or 1.0
    in_cluster = np.bincount(nearest, weights=paid, minlength=len(picks)) / np.maximum(sizes, 1)
    sensitivity = (paid + in_cluster[nearest]) / mean + n_samples / sizes[nearest]
    chance = sensitivity / sensitivity.sum()
    # Near rows have the same nearest and second nearest centre, and about the same distance to the nearest one.
    squares[every, nearest] = np.inf
    order = np.lexsort((paid, squares.argmin(axis=1), nearest))
    limits = chance[order].cumsum()
    drawn = np.searchsorted(limits[:-1], (np.arange(n_rows) + rng.random_sample()) / n_rows)
    rows, draws = np.unique(order[drawn], return_counts=True)
    weights = draws / chance[rows]
    return rows, weights * (n_samples / weights.sum())


def rows_of_groups(sizes: np.ndarray, n_rows: int) -> np.ndarray:
    """Divide a number of rows equally among the groups. Groups that have fewer rows than their part give all rows."""
    taken = np.zeros(len(sizes), dtype=np.int64)
    left = min(n_rows, int(sizes.sum()))
    for number, j in enumerate(np.argsort(sizes, kind="stable")):
        taken[j] = min(int(sizes[j]), max(1, left // (len(sizes) - number)))
        left -= taken[j]
    return taken
