"""Fair assignment to the centres of k-means (Bera et al., NeurIPS 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from fairclust.base import FairClusterer, record
from fairclust.messages import count
from fairclust.methods.programs.fair_lp import fair_assignment_lp, round_assignment
from fairclust.metrics import contingency
from fairclust.solvers.criteria import share_bounds
from fairclust.solvers.lloyd import Lloyd


@dataclass(eq=False, repr=False, kw_only=True)
class BeraFairKMeans(FairClusterer):
    """K-means centres, to which the points are then assigned fairly at the least cost.

    In every cluster the share of group j lies between ``mu_j (1 - tolerance)`` and ``mu_j / (1 - tolerance)``, where
    mu_j is the group's share of the data. The labels, which are rounded from the solution of a linear program, violate
    these bounds by less than two points. The tables of balanced fair k-means call this method FAC.

    Parameters
    ----------
    tolerance : float, default=0.2
        In [0, 1), the paper's delta. With 0 every cluster must have the shares of the data.
    n_init, max_iter : int, default=10, 300
        Number of starts and largest number of Lloyd steps of k-means. If `init` is an array there is one start.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres of k-means, which are not the means of the fair clusters. There is no `predict`.
    cost_, lp_cost_ : float
        Sum of squared distances to `cluster_centers_`, of the labels and of the linear program. `lp_cost_` is a lower
        bound on the cost of labels within the bounds at these centres, and `cost_` is at most `lp_cost_`.
    price_of_fairness_ : float
        `cost_` divided by the cost of the nearest centres; 1 if both are zero.
    violation_ : float
        The largest number of points by which any group exceeds or misses its bounds in any cluster; below 2.
    n_iter_ : int
        Number of Lloyd steps of k-means.
    history_ : list of dict
        One record each for k-means, the linear program and the rounding. The clustering term is the cost at
        `cluster_centers_`, and the fairness term is the violation in points.

    References
    ----------
    Bera, Chakrabarty, Flores, Negahbani, "Fair algorithms for clustering", NeurIPS 2019.

    Examples
    --------
    >>> from fairclust import BeraFairKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = BeraFairKMeans(2, tolerance=0.1, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> round(float(model.violation_), 2)
    0.8
    """

    _power = 2

    tolerance: float = 0.2
    init: Any = "k-means++"
    n_init: int = 10
    max_iter: int = 300

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        effort = {"max_iter": self.max_iter, "random_state": self.random_state}
        vanilla = Lloyd.started_as(self, **effort).fit(X)
        self.n_iter_ = int(vanilla.n_iter_)
        if self.n_iter_ == self.max_iter:
            self._complain(
                f"k-means stopped after {count(self.max_iter, 'step')} and may not have converged: raise max_iter"
            )
        self.cluster_centers_ = vanilla.cluster_centers_
        costs = cdist(X, self.cluster_centers_, "sqeuclidean")
        nearest = float(costs.min(axis=1).sum())
        shares = np.bincount(codes) / len(codes)
        bounds = {"lower": shares * (1 - self.tolerance), "upper": shares / (1 - self.tolerance)}
        excess = share_bounds(**bounds).excess

        def violation(labels: np.ndarray) -> float:
            return float(excess(contingency(labels, codes, self.n_clusters)).max())

        self.history_ = [record(1, begin, nearest, nearest, violation(vanilla.labels_))]
        begin = perf_counter()
        fractional = fair_assignment_lp(costs, codes, **bounds)
        self.lp_cost_ = float(fractional.multiply(costs).sum())
        self.history_.append(record(2, begin, self.lp_cost_, self.lp_cost_, 0.0))
        begin = perf_counter()
        self.labels_ = round_assignment(fractional, costs, codes)
        self.cost_ = float(costs[np.arange(len(costs)), self.labels_].sum())
        self.violation_ = violation(self.labels_)
        self.history_.append(record(3, begin, self.cost_, self.cost_, self.violation_))
        self.price_of_fairness_ = self.cost_ / nearest if nearest > 0 else 1.0 if self.cost_ <= 0 else np.inf
