"""S-MPFC (Mantuano, Kammermann, Baumann 2026): fair k-means of batches by mixed-integer programs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import COUNT, FairClusterer, initial_centers, record
from fairclust.kernels.assignment import cluster_moments
from fairclust.metrics import contingency
from fairclust.solvers.lloyd import Lloyd
from fairclust.solvers.programs import Program, Solution, table_sums

# Largest number of steps of the k-means that makes the batches.
_BATCH_STEPS = 10
# The search is limited by nodes instead of seconds, so that every machine finds the same labels.
_MAX_NODES = 200
_GAP = 1e-3
# The mixed-integer program decides on at least this many batches for each cluster.
_FREE = 8


@dataclass(eq=False, repr=False, kw_only=True)
class BatchProgramKMeans(FairClusterer):
    """K-means on small batches of near points, with a lower bound on the balance of every cluster.

    Plain k-means cuts the data into many small batches, which are then assigned as wholes. In every step a
    mixed-integer program assigns the batches so that every cluster keeps the balance, and the centres move to the
    means of the clusters.

    Parameters
    ----------
    tolerance : float, default=0.1
        In [0, 1): every cluster has a balance of at least ``1 - tolerance`` times that of the data.
    n_batches : int or None, default=500
        Number of batches (S-MPFC in the paper), raised to `n_clusters` if it is less. None makes every point a batch
        of its own (MPFC), which is possible for a few thousand rows.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
        The first centres. "k-means++" picks them from the means of the batches.
    max_iter : int, default=100
        Largest number of steps.
    tol : float, default=1e-3
        The fit stops at the first step that lowers the cost by no more than this fraction, and keeps the result of the
        step before.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters. There is no `predict`.
    cost_ : float
        Sum of squared distances to the means.
    target_balance_ : float
        The lower bound on the balance, which every cluster keeps.

    Raises
    ------
    RuntimeError
        HiGHS finds no assignment of the batches that keeps the balance.

    References
    ----------
    Mantuano, Kammermann, Baumann, "Fast and effective algorithms for fair clustering at scale", 2026,
    arXiv:2605.13759.

    Examples
    --------
    >>> from fairclust import BatchProgramKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = BatchProgramKMeans(2, n_batches=None, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 0, 0, 1, 1, 1, 1]
    >>> round(model.target_balance_, 2)
    0.9
    """

    _power = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_batches": [None, *COUNT]}

    tolerance: float = 0.1
    n_batches: int | None = 500
    init: Any = "k-means++"
    max_iter: int = 100
    tol: float = 1e-3

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        group_sizes = np.bincount(codes)
        self.target_balance_ = float((1 - self.tolerance) * group_sizes.min() / group_sizes.max())
        n_batches = len(X) if self.n_batches is None else max(self.n_batches, self.n_clusters)
        batches = np.arange(len(X))
        if n_batches < len(X):
            model = Lloyd(n_batches, n_init=1, max_iter=_BATCH_STEPS, random_state=rng).fit(X)
            batches = np.unique(model.labels_, return_inverse=True)[1]
        n_batches = int(batches.max()) + 1
        sizes, sums = cluster_moments(X, batches, n_batches)
        means = sums / sizes[:, None]
        counts = contingency(batches, codes, n_batches).T
        # The part of the cost that no assignment changes: squared distances of the points to their batch's mean.
        within = float(((X - means[batches]) ** 2).sum())
        # If there are fewer different rows than clusters, there are fewer batches, too.
        pool = means if n_batches >= self.n_clusters else X
        centers = initial_centers(pool, self.n_clusters, self._framed_init(), rng)
        best = np.inf
        self.history_: list[dict[str, float]] = []
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            costs = sizes[:, None] * cdist(means, centers, "sqeuclidean")
            of_batch = assign_batches(costs, counts, self.target_balance_)
            if of_batch is None:
                raise RuntimeError(
                    f"HiGHS found no assignment of {n_batches} batches with a balance of "
                    f"{self.target_balance_:.4g}; take a larger tolerance or more batches"
                )
            weights = (of_batch[:, None] == np.arange(self.n_clusters)) * sizes[:, None]
            total = weights.sum(axis=0)
            centers = np.where(total[:, None] > 0, weights.T @ means / np.maximum(total, 1)[:, None], centers)
            cost = within + float((sizes * ((means - centers[of_batch]) ** 2).sum(axis=1)).sum())
            self.history_.append(record(step, begin, cost, cost, 0.0))
            if cost >= best * (1 - self.tol):
                break
            best = self.cost_ = cost
            self.labels_, self.cluster_centers_ = of_batch[batches].astype(np.int32), centers
        self.n_iter_ = len(self.history_)


def assign_batches(costs: np.ndarray, counts: np.ndarray, min_balance: float) -> np.ndarray | None:
    """Cheap assignment of whole batches, costs (n_batches, n_clusters), in which every cluster keeps the balance, or
    None.

    The solution of the linear program splits few batches, and its reduced costs say which others would change first. A
    mixed-integer program decides on these; as long as it has no solution, it is solved again with more batches.
    """
    n_batches, n_clusters = costs.shape
    above = costs - costs.min(axis=1, keepdims=True)
    above /= above.mean() or 1.0
    once, of_clusters = table_sums(costs.shape)
    balanced = []
    for i, j in permutations(range(counts.shape[1]), 2):
        # Points of one group minus `min_balance` times points of the other in each batch, at most 1 for HiGHS.
        excess = counts[:, i] - min_balance * counts[:, j]
        excess = excess[None, :] / (np.abs(excess).max() or 1.0)
        balanced.append(-sparse.kron(excess, sparse.eye_array(n_clusters)))

    def assigned(with_all: bool, low: Any, high: Any, *, whole: bool) -> Solution | None:
        """The assignment with shares between `low` and `high`, in which, `with_all`, no cluster is empty."""
        program = Program()
        program.variables("shares", above, low, high, whole=whole)
        program.rows(1, 1, shares=once)
        for rows in balanced:
            program.rows(-np.inf, 0, shares=rows)
        if with_all:
            program.rows(-np.inf, -1, shares=-of_clusters)
        return program.solve(nodes=_MAX_NODES, gap=_GAP)

    for with_all in (True, False):
        relaxed = assigned(with_all, 0, np.inf, whole=False)
        if relaxed is None:
            continue
        shares = relaxed.values["shares"]
        # The least cost of changing a batch's cluster. It is below zero for split batches, so that they come first.
        regret = np.sort(relaxed.reduced_costs["shares"], axis=1)
        split = shares.max(axis=1) < 1 - 1e-6
        regret = np.where(split, -1.0, regret[:, min(1, n_clusters - 1)])
        order = np.argsort(regret, kind="stable")
        n_free = max(_FREE * n_clusters, 2 * int(split.sum()))
        while True:
            lower, upper = np.round(shares), np.round(shares)
            lower[order[:n_free]], upper[order[:n_free]] = 0, 1
            done = assigned(with_all, lower, upper, whole=True)
            if done is not None:
                return done.values["shares"].argmax(axis=1)
            if n_free >= n_batches:
                break
            n_free *= 2
    return None
