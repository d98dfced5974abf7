"""Fair clustering via alignment (Kim et al., ICML 2025) for k-means."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from fairclust.base import COUNT, NON_NEGATIVE, Diverged, FairClusterer, NotSupported, record
from fairclust.kernels.tiles import blocks
from fairclust.solvers.lloyd import Lloyd, nearest_centers

# Lloyd steps on the aligned points in every round.
_LLOYD_STEPS = 50
# The alternation ends after this many rounds without gain. A single round is not enough, because every round draws new
# random blocks.
_PATIENCE = 3
# Pairs and points are read in blocks of this many. Where every block reads all pairs, there are at most _MOST_BLOCKS.
_BLOCK_ROWS, _MOST_BLOCKS = 1 << 14, 16


class _Plan(NamedTuple):
    """Matched pairs: their rows in the first and in the second group, their masses, which sum to one, and their costs.

    The cost of a pair is the first term of the objective.
    """

    first: np.ndarray
    second: np.ndarray
    mass: np.ndarray
    cost: np.ndarray


@dataclass(eq=False, repr=False, kw_only=True)
class FairAlignmentKMeans(FairClusterer):
    """K-means of pairs: every point is matched to points of the other group, and pairs are clustered.

    A matching Q moves the mass of group 0 onto that of group 1. With the groups' shares pi_0 and pi_1, the matching and
    the centres minimise

        E_Q [ w pi_0 pi_1 ||x_0 - x_1||^2 + min_k ||pi_0 x_0 + pi_1 x_1 - c_k||^2 ].

    Both points of a pair go to the cluster of their weighted mean, so each cluster has the same share of both groups.
    The papers' tables call this method FCA. There can be at most two groups.

    Parameters
    ----------
    epsilon : float, default=0.0
        In [0, 1]. Pairs with this mass are split, those that save most, and their points go to their own nearest
        centres. It bounds the difference between the parts of the two groups in any cluster, before rounding to labels.
    transport_weight : float, default=2.0
        w. The authors' program has 2, and 1 gives the k-means cost.
    block_size : int, default=1024
        Approximate number of points of the smaller group that are matched at a time. Every round cuts the data into new
        random blocks. A block takes time between quadratic and cubic in its size.
    init : "k-means++" or array-like of shape (n_clusters, n_features)
    n_init : int, default=10
        Number of starts of the k-means that finds the first centres. If `init` is an array there is one start.
    max_iter : int, default=20
        Largest number of rounds.
    tol : float, default=1e-3
        The alternation ends after three rounds in a row that do not lower the best objective by this fraction.

    Attributes
    ----------
    labels_, groups_
        A point whose mass is split between clusters gets the one with most of its mass. Ties are broken at random.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the round with the lowest objective, which also gave `labels_`. There is no `predict`.
    shares_ : ndarray of shape (n_groups, n_clusters)
        The share of each group's mass that is in every cluster, before rounding.
    objective_ : float
        The objective above, times the number of points.
    n_iter_ : int
        Number of rounds.
    history_ : list of dict
        `objective`, `clustering` (the objective without the cost of the matching) and `fairness` (the largest
        difference between the groups' rows of `shares_`).
    converged_ : bool

    References
    ----------
    Kim, Lee, Park, Kim: Fair Clustering via Alignment, ICML 2025.

    Examples
    --------
    >>> from fairclust import FairAlignmentKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairAlignmentKMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 1, 1, 0, 0, 0, 0]
    """

    _power = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "epsilon": [Interval(Real, 0, 1, closed="both")],
        "transport_weight": NON_NEGATIVE,
        "block_size": COUNT,
    }

    epsilon: float = 0.0
    transport_weight: float = 2.0
    block_size: int = 1024
    init: Any = "k-means++"
    n_init: int = 10
    max_iter: int = 20
    tol: float = 1e-3

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        if len(self.groups_) > 2:
            raise NotSupported(
                f"alignment is made for two groups, found {len(self.groups_)}: pass a column with two values"
            )
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        start = Lloyd.started_as(self, random_state=rng).fit(X)
        if len(self.groups_) == 1:
            self.labels_, self.cluster_centers_ = start.labels_, start.cluster_centers_
            self.objective_, self.n_iter_, self.converged_ = float(start.inertia_), 1, True
            self.shares_ = np.bincount(self.labels_, minlength=self.n_clusters)[None] / len(X)
            self.history_ = [record(1, begin, self.objective_, self.objective_, 0.0)]
            return
        shift = X.mean(axis=0, dtype=float)
        Z = X - shift
        # The rows of a block are drawn from one group after the other, and the result must not depend on names. The
        # smaller group comes first, and of two groups of one size the one with the smaller squares.
        order = np.lexsort((np.bincount(codes, (Z**2).sum(axis=1)), np.bincount(codes)))
        rows = [np.flatnonzero(codes == j) for j in order]
        pi = np.array([len(r) for r in rows]) / len(X)
        centers = start.cluster_centers_ - shift

        self.history_ = []
        self.objective_, stale = np.inf, 0
        for step in range(1, self.max_iter + 1):
            plan = self._match(Z, rows, pi, centers, rng)
            apart = self._set_free(Z, plan, pi, centers)
            centers, objective, clustering, ends = self._recenter(Z, plan, apart, pi, centers)
            shares: np.ndarray = np.stack(
                [np.bincount(labels, plan.mass, self.n_clusters) for labels in ends]
            )
            gap = float(np.ptp(shares, axis=0).max())
            self.history_.append(record(step, begin, objective, clustering, gap))
            begin = perf_counter()
            stale = 0 if objective < self.objective_ * (1 - self.tol) else stale + 1
            if objective < self.objective_:
                self.objective_, self.shares_ = objective, shares[np.argsort(order)]
                self.cluster_centers_ = centers + shift
                self.labels_ = _labels(plan, ends, len(Z), self.n_clusters, rng)
            if stale == _PATIENCE:
                break
        self.n_iter_, self.converged_ = step, stale == _PATIENCE
        if not self.converged_:
            self._complain(
                f"stopped after {step} rounds; the objective last fell by more than the fraction {self.tol:g} {stale} "
                "rounds ago: raise max_iter or tol"
            )

    def _match(
        self,
        Z: np.ndarray,
        rows: list[np.ndarray],
        pi: np.ndarray,
        centers: np.ndarray,
        rng: np.random.RandomState,
    ) -> _Plan:
        """Optimal transport between the groups, block by block."""
        from ot import emd

        n_blocks = max(1, min(map(len, rows)) // self.block_size)
        shuffled = [np.array_split(rng.permutation(r), n_blocks) for r in rows]
        parts = []
        for first, second in zip(*shuffled, strict=True):
            costs = _pair_costs(Z[first], Z[second], pi, centers, self.transport_weight)
            if not np.isfinite(costs).all():
                raise Diverged("the costs of pairs are not finite")
            # The masses are whole numbers, so that their sums are equal and the plan is exact.
            supply, demand = np.full(len(first), float(len(second))), np.full(len(second), float(len(first)))
            flow = emd(supply, demand, costs, numItermax=10_000_000)
            i, j = np.nonzero(flow)
            mass = flow[i, j] / flow.sum() * (len(first) + len(second)) / len(Z)
            apart = self.transport_weight * pi[0] * pi[1] * ((Z[first[i]] - Z[second[j]]) ** 2).sum(axis=1)
            parts.append(_Plan(first[i], second[j], mass, apart))
        return _Plan(*(np.concatenate(p) for p in zip(*parts, strict=True)))

    def _set_free(self, Z: np.ndarray, plan: _Plan, pi: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Which pairs are split: those that save most, up to a mass of epsilon."""
        apart = np.zeros(len(plan.mass), bool)
        if self.epsilon == 0:
            return apart
        saved = np.empty(len(plan.mass))
        for block in blocks(len(saved), _BLOCK_ROWS):
            a, b = Z[plan.first[block]], Z[plan.second[block]]
            costs_a, costs_b, mean_costs = (
                nearest_centers(z, centers)[1] for z in (a, b, pi[0] * a + pi[1] * b)
            )
            saved[block] = plan.cost[block] - pi[0] * costs_a - pi[1] * costs_b + mean_costs
        order = np.argsort(-saved, kind="stable")
        apart[order] = (np.cumsum(plan.mass[order]) <= self.epsilon + 1e-12) & (saved[order] > 0)
        return apart

    def _recenter(
        self, Z: np.ndarray, plan: _Plan, apart: np.ndarray, pi: np.ndarray, centers: np.ndarray
    ) -> tuple[np.ndarray, float, float, np.ndarray]:
        """Weighted Lloyd steps on the means of pairs and the points of split pairs, then costs and clusters.

        Returns the centres, the objective and its clustering term, both multiplied by the number of points, and the
        clusters of the pairs' rows in the first and in the second group, shape (2, n_pairs).
        """
        joint, split = np.flatnonzero(~apart), np.flatnonzero(apart)
        n_joint, n_split = len(joint), len(split)
        points = np.empty((n_joint + 2 * n_split, Z.shape[1]))
        for block in blocks(n_joint, _BLOCK_ROWS):
            pairs = joint[block]
            points[block] = pi[0] * Z[plan.first[pairs]] + pi[1] * Z[plan.second[pairs]]
        points[n_joint : n_joint + n_split] = Z[plan.first[split]]
        points[n_joint + n_split :] = Z[plan.second[split]]
        weights = np.concatenate([plan.mass[joint], pi[0] * plan.mass[split], pi[1] * plan.mass[split]])
        labels = np.full(len(points), -1)
        for _ in range(_LLOYD_STEPS):
            old, (labels, squares) = labels, nearest_centers(points, centers)
            if np.array_equal(old, labels):
                break
            mass = np.bincount(labels, weights, len(centers))
            sums = np.stack([np.bincount(labels, weights * x, len(centers)) for x in points.T], axis=1)
            # An empty cluster keeps its centre.
            centers = np.where(mass[:, None] > 0, sums / np.where(mass > 0, mass, 1)[:, None], centers)
        else:
            labels, squares = nearest_centers(points, centers)
        clustering = float(weights @ squares)
        transport = float(plan.mass[joint] @ plan.cost[joint])

        ends = np.empty((2, len(plan.mass)), int)
        ends[:, joint] = labels[:n_joint]
        ends[:, split] = labels[n_joint:].reshape(2, n_split)
        n = len(Z)
        return centers, n * (clustering + transport), n * clustering, ends


def _labels(
    plan: _Plan, ends: np.ndarray, n_samples: int, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """The cluster with most of the mass of each point, shape (n_samples,), from the clusters of the pairs' rows.

    The table of the masses of points in clusters is made for one block of points after the other. Every block reads all
    pairs, so there are at most `_MOST_BLOCKS` of them.
    """
    labels = np.empty(n_samples, int)
    for rows in blocks(n_samples, max(_BLOCK_ROWS, -(-n_samples // _MOST_BLOCKS))):
        n_rows = rows.stop - rows.start
        table = np.zeros(n_rows * n_clusters)
        for points, clusters in zip((plan.first, plan.second), ends, strict=True):
            inside = np.flatnonzero((points >= rows.start) & (points < rows.stop))
            cells = (points[inside] - rows.start) * n_clusters + clusters[inside]
            table += np.bincount(cells, plan.mass[inside], len(table))
        # Points with half of their mass in two clusters are common if one group is twice as large as the other. Ties
        # must not favour the first clusters.
        table *= 1 + 1e-9 * rng.uniform(size=len(table))
        labels[rows] = table.reshape(n_rows, n_clusters).argmax(axis=1)
    return labels


def _pair_costs(
    a: np.ndarray, b: np.ndarray, pi: np.ndarray, centers: np.ndarray, weight: float
) -> np.ndarray:
    """Cost of every pair of rows of `a` and `b`, of shape (len(a), len(b)).

    With w = 1, the two terms of a pair are ``pi_0 ||a - c||^2 + pi_1 ||b - c||^2``, a sum of the distances of its two
    points. No table with a row for every pair and a column for every feature or centre is therefore needed.
    """
    costs_a = pi[0] * cdist(a, centers, "sqeuclidean")
    costs_b = pi[1] * cdist(b, centers, "sqeuclidean")
    costs = (weight - 1) * pi[0] * pi[1] * cdist(a, b, "sqeuclidean")
    least = np.full_like(costs, np.inf)
    for k in range(len(centers)):
        np.minimum(least, costs_a[:, k, None] + costs_b[:, k], out=least)
    return costs + least
