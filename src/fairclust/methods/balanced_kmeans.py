"""Balanced fair k-means (Pan, Zhong, Qian, IEEE TII 2023); fair k-means (FrKM) without its balance term."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import NON_NEGATIVE, Diverged, FairClusterer, record
from fairclust.kernels.assignment import cluster_moments
from fairclust.kernels.moves import sweep
from fairclust.messages import count
from fairclust.metrics import contingency

# The default weight of fairness, in multiples of the cost of all points in one cluster.
_DEFAULT_RHO = 10.0


class _Run(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    history: list[dict[str, float]]
    converged: bool


@dataclass(eq=False, repr=False, kw_only=True)
class BalancedFairKMeans(FairClusterer):
    """K-means with two penalties on counts: one on unfair clusters and one on small clusters.

    Minimises, one point at a time, ::

        sum_p ||x_p - c_k(p)||^2 + rho * sum_jk (n_jk / N_j - n_k / N)^2 + lam * sum_k 1 / n_k

    with n_jk points of group j in cluster k, N_j in group j, n_k in cluster k and N in all. With several sensitive
    columns their fairness penalties are added. ``lam=0`` is the paper's FrKM. The first labels are random, with
    clusters of equal size. No cluster becomes empty.

    Parameters
    ----------
    rho : float, optional
        Weight of fairness. A number is absolute, as in the paper: a suitable one grows with the number of rows N and
        the square of the unit of the data. The default is ten times the cost of all points in one cluster. Parts of it
        from 0.1 to 10, see `rho_`, span the trade-off.
    lam : float, default=0.0
        Weight of the last term, which favours clusters of equal size. Like a number for `rho`, it is absolute.
    n_init : int, default=1
        Number of starts, of which the one with the lowest objective is kept.
    max_iter : int, default=100
        Largest number of sweeps.
    tol : float, default=1e-6
        Stops when no point moves, or when a sweep changes the objective by no more than this fraction.
    match_reference : bool, default=False
        Whether a move counts only the terms of the point's own group, as in the authors' program. The objective above
        may then rise.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters. There is no `predict`.
    objective_ : float
    n_iter_ : int
        Number of sweeps of the start that was kept.
    history_ : list of dict
        One record for each sweep of that start, after the centres were updated: clustering, fairness and size term
        (the last two without their weights), and the number of points that moved.
    converged_ : bool
    rho_ : float
        The weight that was used, absolute.

    References
    ----------
    Pan, Zhong, Qian: Balanced fair k-means clustering, IEEE Transactions on Industrial Informatics, 2023,
    Algorithms 1 and 2.

    Examples
    --------
    >>> from fairclust import BalancedFairKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = BalancedFairKMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 1, 1, 1, 0, 1, 0]
    """

    takes_columns = True
    _power = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "rho": [None, *NON_NEGATIVE],
        "lam": NON_NEGATIVE,
    }

    rho: float | None = None
    lam: float = 0.0
    n_init: int = 1
    max_iter: int = 100
    tol: float = 1e-6
    match_reference: bool = False

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        # Rows that are mapped from a file, or that all have the same length, have not been centred before.
        shift = X.mean(axis=0, dtype=np.float64)
        Z = X - shift
        # The weights have the unit of the costs, so they are converted into the frame in which the rows are.
        unit, whole = self._frame.unit**2, self._frame.whole_cost(len(X), 2)
        lam, self.rho_ = self.lam / unit, _DEFAULT_RHO * whole if self.rho is None else self.rho / unit
        labels = np.arange(len(X), dtype=np.int32) % self.n_clusters
        starts = [rng.permutation(labels) for _ in range(self.n_init)]
        runs = [self._descend(Z, codes, start, self.rho_, lam) for start in starts]
        best = min(runs, key=lambda run: run.history[-1]["objective"])
        self.labels_, self.history_, self.converged_ = best.labels, best.history, best.converged
        self.cluster_centers_ = best.centers + shift
        self.objective_ = best.history[-1]["objective"]
        self.n_iter_ = len(best.history)
        if not best.converged:
            moving = count(int(best.history[-1]["moved"]), "point")
            self._complain(
                f"stopped after {count(self.n_iter_, 'sweep')} with {moving} still moving: "
                "raise max_iter or tol"
            )

    def _descend(self, X: np.ndarray, codes: np.ndarray, labels: np.ndarray, rho: float, lam: float) -> _Run:
        counts = contingency(labels, codes, self.n_clusters).astype(np.int64)
        centers = _means(X, labels, self.n_clusters)
        members = np.vstack(self._members())
        history: list[dict[str, float]] = []
        last = np.inf
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            state, own_group = (np.ascontiguousarray(centers.T), labels, counts), self.match_reference
            moved, summed = sweep(X, codes, *state, members, rho, lam, own_group)
            sizes = counts.sum(axis=0)
            old, centers = centers, _means(X, labels, self.n_clusters)
            # The cost at the new centres follows exactly from the old one, without another pass over the points.
            clustering = summed - float(sizes @ ((centers - old) ** 2).sum(axis=1))
            by_value = members @ counts
            gaps = by_value / by_value.sum(axis=1, keepdims=True) - sizes / len(X)
            fairness, size = float((gaps**2).sum()), float((1 / sizes).sum())
            objective = clustering + rho * fairness + lam * size
            if not np.isfinite(objective):
                raise Diverged(f"the objective is {objective} after sweep {step} (rho={rho:g}, lam={lam:g})")
            history.append(record(step, begin, objective, clustering, fairness, size=size, moved=moved))
            if moved == 0 or abs(last - objective) <= self.tol * abs(objective):
                return _Run(labels, centers, history, True)
            last = objective
        return _Run(labels, centers, history, False)


def _means(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    sizes, sums = cluster_moments(X, labels, n_clusters)
    return sums / sizes[:, None]
