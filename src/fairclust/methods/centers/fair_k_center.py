"""Fair k-center (Harb and Lam, NeurIPS 2020): the smallest radius with bounded group shares."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, record
from fairclust.methods.centers.coverings import farthest_first, least_radius_assignment
from fairclust.methods.programs.fair_lp import bound_violation
from fairclust.metrics import contingency


@dataclass(eq=False, repr=False, kw_only=True)
class FairKCenter(FairClusterer):
    """K-center in which every cluster keeps bounds on its group shares, with the smallest radius for given centres.

    Centres are rows, each as far as possible from those chosen before (Gonzalez 1985). In every cluster the share of
    group j must lie between ``mu_j (1 - tolerance)`` and ``mu_j / (1 - tolerance)``, mu_j being the group's share of
    the data. A linear program finds the smallest radius within which fractions of points can be assigned within these
    bounds, and its solution is rounded to whole points.

    Parameters
    ----------
    tolerance : float, default=0.2
        In [0, 1), as in `BeraFairKMeans`.
    n_init : int, default=1
        Number of starts, each from a row drawn at random. The one with the smallest radius is kept.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Rows of X. New rows cannot be assigned fairly: there is no `predict`.
    center_indices_ : ndarray of shape (n_clusters,)
        The rows that are centres.
    radius_ : float
        The largest distance of a row to its centre. It is at most four times the smallest radius of any centres
        with any assignment within the bounds.
    plain_radius_ : float
        The radius if every row goes to the nearest of the same centres.
    violation_ : float
        The largest number of points by which any group exceeds or misses its bounds in any cluster; below 2.

    Notes
    -----
    A cluster may be left without points if the bounds require it, and `fit` warns of that.

    References
    ----------
    Harb and Lam, "KFC: a scalable approximation algorithm for k-center fair clustering", NeurIPS 2020; Bera et
    al., "Fair algorithms for clustering", NeurIPS 2019, for the factor.

    Examples
    --------
    >>> from fairclust import FairKCenter
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairKCenter(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> round(model.radius_, 2)
    3.0
    """

    tolerance: float = 0.2
    n_init: int = 1
    random_state: Any = None

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        shares = np.bincount(codes) / len(codes)
        lower, upper = shares * (1 - self.tolerance), shares / (1 - self.tolerance)
        self.history_: list[dict[str, float]] = []
        best = np.inf
        for step in range(1, self.n_init + 1):
            begin = perf_counter()
            rows = farthest_first(X, self.n_clusters, [int(rng.randint(len(X)))])
            distances = cdist(X, X[rows])
            labels, radius = least_radius_assignment(distances, codes, lower=lower, upper=upper)
            table = contingency(labels, codes, self.n_clusters)
            violation = float(bound_violation(table, table.sum(axis=0), lower, upper).max())
            self.history_.append(record(step, begin, radius, radius, violation))
            if radius < best:
                best = self.radius_ = radius
                self.labels_, self.center_indices_, self.violation_ = labels, rows, violation
                self.plain_radius_ = float(distances.min(axis=1).max())
        self.cluster_centers_ = X[self.center_indices_].astype(np.float64)
        self.n_iter_ = self.n_init
        n_empty = self.n_clusters - len(np.unique(self.labels_))
        if n_empty:
            self._complain(
                f"{n_empty} of {self.n_clusters} clusters have no rows, because no rows near their centres have the "
                "shares that the bounds require: raise tolerance or n_init, or take fewer clusters"
            )
