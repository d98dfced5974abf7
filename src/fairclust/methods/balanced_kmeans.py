"""Balanced fair k-means (Pan, Zhong, Qian, IEEE TII 2023); fair k-means (FrKM) without its balance term."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from fairclust.base import COUNT, NON_NEGATIVE, Diverged, initial_centers, without_empty
from fairclust.kernels.assignment import cluster_moments
from fairclust.kernels.moves import sweep
from fairclust.methods._columns import ColumnsClusterer
from fairclust.metrics import contingency


class _Run(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    history: list[dict[str, float]]
    converged: bool


class BalancedFairKMeans(ColumnsClusterer):
    """K-means with two penalties on counts: one on unfair clusters, one on small ones.

    Minimises, one point at a time, ::

        sum_p ||x_p - c_k(p)||^2 + rho * sum_jk (n_jk / N_j - n_k / N)^2 + lam * sum_k 1 / n_k

    with n_jk points of group j in cluster k, N_j in group j, n_k in cluster k, N in all. The penalties
    of several sensitive columns are added. ``lam=0`` is the paper's FrKM. Every sweep visits the points in the order of
    the data, at fixed centres; the centres become the means of their clusters after it. The objective never rises. No
    cluster is ever empty: a point that is alone in its cluster stays.

    Parameters
    ----------
    n_clusters : int, default=8
    rho : float, default=100.0
        Weight of fairness. It is absolute, as in the paper: it grows with the number of rows N and the scale
        of the data. On standardised data with rows of unit length, from N to 100 N spans the trade-off.
    lam : float, default=0.0
        Weight of balance, that is of clusters of equal size; (N / K)^2 is a large one.
    init : "random", "k-means++" or array-like of shape (n_clusters, n_features), default="random"
        Labels to start with: drawn, with clusters of equal size, as in the paper; or those of the nearest
        k-means++ pick or given centre. A cluster that has no point gets half of the largest one.
    n_init : int, default=1
        Starts, of which the lowest objective is kept; one where `init` is an array.
    max_iter : int, default=100
        Sweeps.
    tol : float, default=1e-6
        Stops when no point moves, or when a sweep changes the objective by no more than this part of it.
    match_reference : bool, default=False
        Weigh moves as the authors' program does: by the terms of the point's own group alone. Of two groups
        the smaller one then has the larger rho, and the objective above may rise.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, groups_
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters. Where a point goes depends on the counts that it finds, so new points have no
        cluster of their own: there is no `predict`.
    objective_ : float
    n_iter_ : int
        Sweeps of the start that was kept.
    history_ : list of dict
        One record per sweep of that start, after the centres were updated: clustering, fairness and size term
        (the last two without their weights), and how many points moved.
    converged_ : bool

    References
    ----------
    Pan, Zhong, Qian: Balanced fair k-means clustering, IEEE Transactions on Industrial Informatics, 2023,
    Algorithms 1 and 2.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "rho": NON_NEGATIVE,
        "lam": NON_NEGATIVE,
        "init": [StrOptions({"random", "k-means++"}), "array-like"],
        "n_init": COUNT,
        "max_iter": COUNT,
        "tol": NON_NEGATIVE,
        "match_reference": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        rho: float = 100.0,
        lam: float = 0.0,
        init: Any = "random",
        n_init: int = 1,
        max_iter: int = 100,
        tol: float = 1e-6,
        match_reference: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.rho = rho
        self.lam = lam
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.match_reference = match_reference
        self.random_state = random_state

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        shift = X.mean(axis=0, dtype=np.float64)
        X = X - shift
        n_starts = self.n_init if isinstance(self.init, str) else 1
        runs = [self._descend(X, codes, self._start(X, codes, shift, rng)) for _ in range(n_starts)]
        best = min(runs, key=lambda run: run.history[-1]["objective"])
        self.labels_, self.history_, self.converged_ = best.labels, best.history, best.converged
        self.cluster_centers_ = best.centers + shift
        self.objective_ = best.history[-1]["objective"]
        self.n_iter_ = len(best.history)
        if not best.converged:
            warnings.warn(
                f"stopped after {self.n_iter_} sweeps with {best.history[-1]['moved']} points still moving "
                f"(rho={self.rho:g}, lam={self.lam:g})",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _start(
        self, X: np.ndarray, codes: np.ndarray, shift: np.ndarray, rng: np.random.RandomState
    ) -> np.ndarray:
        if isinstance(self.init, str) and self.init == "random":
            return rng.permutation(np.arange(len(X)) % self.n_clusters).astype(np.int32)
        if isinstance(self.init, str):
            centers = initial_centers(X, self.n_clusters, self.init, rng)
        else:
            centers = initial_centers(X, self.n_clusters, self.init, rng) - shift
        return without_empty(pairwise_distances_argmin(X, centers), codes, self.n_clusters)

    def _descend(self, X: np.ndarray, codes: np.ndarray, labels: np.ndarray) -> _Run:
        counts = contingency(labels, codes, self.n_clusters).astype(np.int64)
        centers = _means(X, labels, self.n_clusters)
        by_column = self._members()
        members = np.vstack(by_column) if by_column else None
        history: list[dict[str, float]] = []
        last = np.inf
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            moved, summed = sweep(
                X,
                codes,
                centers,
                labels,
                counts,
                rho=self.rho,
                lam=self.lam,
                own_group=self.match_reference,
                members=members,
            )
            sizes = counts.sum(axis=0)
            old, centers = centers, _means(X, labels, self.n_clusters)
            # Exact, and without a pass: what the new centres save.
            clustering = summed - float(sizes @ ((centers - old) ** 2).sum(axis=1))
            by_value = counts if members is None else members @ counts
            gaps = by_value / by_value.sum(axis=1, keepdims=True) - sizes / len(X)
            fairness, size = float((gaps**2).sum()), float((1 / sizes).sum())
            objective = clustering + self.rho * fairness + self.lam * size
            if not np.isfinite(objective):
                raise Diverged(f"the objective is {objective} after sweep {step}")
            history.append(
                {
                    "step": step,
                    "objective": objective,
                    "clustering": clustering,
                    "fairness": fairness,
                    "size": size,
                    "moved": moved,
                    "seconds": perf_counter() - begin,
                }
            )
            if moved == 0 or abs(last - objective) <= self.tol * abs(objective):
                return _Run(labels, centers, history, True)
            last = objective
        return _Run(labels, centers, history, False)


def _means(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    sizes, sums = cluster_moments(X, labels, n_clusters)
    return sums / sizes[:, None]
