"""MS-FlowFC (Mantuano, Kammermann, Baumann 2026): fair k-means by a sequence of flows, one for each group."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, initial_centers, record
from fairclust.kernels.assignment import cluster_moments
from fairclust.kernels.flow import shortest_paths
from fairclust.metrics import balance, contingency

# Largest number of times that the centres of clusters without a point of the largest group are drawn again.
_TRIES = 10


@dataclass(eq=False, repr=False, kw_only=True)
class MultiStageFlowKMeans(FairClusterer):
    """K-means with a lower bound on the balance of every cluster, in which one group after the other is assigned.

    In every step the points of the largest group go to their nearest centres. The other groups follow from the largest
    to the smallest. A flow of minimal cost assigns each, with bounds on the number of its points in every cluster that
    keep the balance with the groups assigned before. The centres then move to the means of the clusters.

    Parameters
    ----------
    tolerance : float, default=0.1
        In [0, 1): the lower bound on the balance of a cluster is ``1 - tolerance`` times that of the data.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        The first centres. "k-means++" picks them from the rows of the largest group.
    n_init : int, default=1
        Number of starts, of which the cheapest is kept. If `init` is an array there is one start.
    max_iter : int, default=100
        Largest number of steps of a start.
    tol : float, default=1e-3
        A start ends at the first step that lowers the cost by no more than this fraction, and keeps the result of the
        step before.

    Attributes
    ----------
    history_ : list of dict
        The fairness term is how far the balance is below `target_balance_`, or 0.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters. There is no `predict`.
    cost_ : float
        Sum of squared distances to the means.
    target_balance_ : float
        The lower bound on the balance. In all clusters together, a group can lack fewer points than there are clusters,
        because points are whole. With three or more groups it can lack many more, and `fit` then warns.

    References
    ----------
    Mantuano, Kammermann, Baumann, "Fast and effective algorithms for fair clustering at scale", 2026,
    arXiv:2605.13759.

    Examples
    --------
    >>> from fairclust import MultiStageFlowKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = MultiStageFlowKMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 0, 0]
    """

    _power = 2

    tolerance: float = 0.1
    init: Any = "k-means++"
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-3

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        sizes = np.bincount(codes)
        by_size = np.argsort(-sizes, kind="stable")
        members = [np.flatnonzero(codes == j) for j in by_size]
        self.target_balance_ = float((1 - self.tolerance) * sizes.min() / sizes.max())
        starts = self.n_init if isinstance(self.init, str) else 1
        best = min((self._run(X, codes, members, rng) for _ in range(starts)), key=lambda run: run[0])
        self.cost_, self.labels_, self.cluster_centers_, self.history_ = best
        self.n_iter_ = len(self.history_)
        table = contingency(self.labels_, codes, self.n_clusters)
        wanted = np.ceil(self.target_balance_ * table.max(axis=0) - 1e-9)
        lacking = np.maximum(wanted - table, 0).sum(axis=1)
        if lacking.max() >= self.n_clusters:
            reached = balance(table[:, table.any(axis=0)])
            self._complain(
                f"the balance is {reached:.3g}, below target_balance_={self.target_balance_:.3g}, because the larger "
                f"groups leave group {self.groups_[lacking.argmax()]} short of {lacking.max():.0f} points. "
                "PriceFairKMeans(min_balance=...) keeps this bound"
            )

    def _run(
        self, X: np.ndarray, codes: np.ndarray, members: list[np.ndarray], rng: np.random.RandomState
    ) -> tuple[float, np.ndarray, np.ndarray, list[dict[str, float]]]:
        """The cost, labels and centres of the cheapest step of a start, and the history."""
        pool = X[members[0]] if len(members[0]) >= self.n_clusters else X
        centers = initial_centers(pool, self.n_clusters, self._framed_init(), rng)
        best: Any = None
        history: list[dict[str, float]] = []
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            labels = self._assign(X, members, pool, centers, rng)
            counts, sums = cluster_moments(X, labels, self.n_clusters)
            centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
            cost = float(((X - centers[labels]) ** 2).sum())
            table = contingency(labels, codes, self.n_clusters)[:, counts > 0]
            lacking = max(0.0, self.target_balance_ - float((table.min(axis=0) / table.max(axis=0)).min()))
            history.append(record(step, begin, cost, cost, lacking))
            if best is not None and cost >= best[0] * (1 - self.tol):
                break
            best = cost, labels, centers, history
        return best

    def _assign(
        self,
        X: np.ndarray,
        members: list[np.ndarray],
        pool: np.ndarray,
        centers: np.ndarray,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """Labels for given centres. A centre that is nearest to no point of the largest group is drawn again."""
        centers = centers.copy()
        labels = np.empty(len(X), np.int32)
        table = np.zeros((len(members), self.n_clusters), np.int64)
        for attempt in range(_TRIES + 1):
            nearest = cdist(X[members[0]], centers, "sqeuclidean").argmin(axis=1)
            table[0] = np.bincount(nearest, minlength=self.n_clusters)
            empty = np.flatnonzero(table[0] == 0)
            if not len(empty) or attempt == _TRIES:
                break
            centers[empty] = initial_centers(pool, len(empty), "k-means++", rng)
        labels[members[0]] = nearest
        for number, rows in enumerate(members[1:], 1):
            lower, upper = _size_bounds(table[:number], len(rows), self.target_balance_)
            labels[rows] = assign_within_sizes(cdist(X[rows], centers, "sqeuclidean"), lower, upper)
            table[number] = np.bincount(labels[rows], minlength=self.n_clusters)
        return labels


def _size_bounds(table: np.ndarray, n_points: int, balance: float) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the points of the next group in every cluster, relaxed where its points would not fit otherwise.

    `table` counts the groups that are assigned, `n_points` is the size of the next group, and `balance` is the lower
    bound on the balance of every cluster.
    """
    most, least = table.max(axis=0), table.min(axis=0)
    lower = np.ceil(balance * most - 1e-9).astype(np.int64)
    while lower.sum() > n_points:
        # Lower the bound of the cluster whose balance stays highest with one point less.
        after = np.where(lower > 0, (lower - 1) / np.maximum(most, 1), -1.0)
        lower[after.argmax()] -= 1
    upper = np.maximum(np.floor(least / balance + 1e-9).astype(np.int64), lower)
    while upper.sum() < n_points:
        upper[(least / (upper + 1)).argmax()] += 1
    return lower, upper


def assign_within_sizes(distances: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Labels with the least sum of distances for which every cluster has between `lower` and `upper` points.

    Idle points that cost nothing fill every cluster to its upper bound, so that all sizes are fixed. The search starts
    from the nearest clusters and moves points along cheapest paths.
    """
    n_samples, n_clusters = distances.shape
    upper = np.minimum(upper, n_samples)
    nearest = distances.argmin(axis=1)
    sizes = np.bincount(nearest, minlength=n_clusters)
    if ((lower <= sizes) & (sizes <= upper)).all():
        return nearest
    idle = upper - lower
    inside = np.clip(upper - sizes, 0, idle)
    home = np.repeat(np.arange(n_clusters), idle)
    rank = np.arange(len(home)) - np.repeat(np.cumsum(idle) - idle, idle)
    cost = np.full((n_samples + len(home), n_clusters + 1), np.inf)
    cost[:n_samples, :n_clusters] = distances
    cost[n_samples + np.arange(len(home)), home] = 0.0
    cost[n_samples:, n_clusters] = 0.0
    before = np.r_[nearest, np.where(rank < inside[home], home, n_clusters)]
    wanted = np.r_[upper, n_samples - lower.sum()]
    surplus = np.bincount(before, minlength=n_clusters + 1) - wanted
    clusters = np.tile(np.arange(cost.shape[1], dtype=np.int32), (len(cost), 1))
    return shortest_paths(cost, clusters, before.astype(np.int64), surplus.astype(np.int64))[:n_samples]
