"""Socially fair k-means (Ghadiri et al., FAccT 2021): the largest mean cost of a group is as small as possible."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import initial_centers, record
from fairclust.kernels.points import TiledPoints
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.methods._social import FairCenters, fair_centers, group_moments
from fairclust.solvers.alternation import Prototypes

# Costs with a smaller relative difference than this differ by rounding errors only.
_ALIKE = 1e-9


@dataclass(eq=False, repr=False)
class SociallyFairKMeans(PrototypeClusterer):
    """K-means that minimises the largest cost of a group, its rows' mean squared distance to their centres.

    This is the paper's Fair-Lloyd. Every row goes to its nearest centre. Then the centres move to where the largest
    cost of a group is smallest for these clusters. Neither step raises the largest cost.

    Parameters
    ----------
    n_clusters : int, default=8
    init : "k-means++" or array-like of shape (n_clusters, n_features)
    n_init : int, default=10
        Number of starts, of which the one with the smallest largest cost of a group is kept. If `init` is an array
        there is one start.
    max_iter : int, default=200
        Largest number of steps of a start.
    tol : float, default=1e-5
        A start ends once a step lowers the largest cost by no more than this fraction.
    precision : "single" or "double", default="single"
        Arithmetic of the distances.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, groups_, n_iter_, history_
        The objective in the history is the largest cost of a group, the clustering term is the mean squared distance
        of all rows, and the fairness term is the difference between the largest and the smallest cost of a group.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        They are not the means of the clusters, but lie closer to the rows of groups with a large cost.
    group_costs_ : ndarray of shape (n_groups,)
        The cost of each group, in the order of `groups_`.
    weights_ : ndarray of shape (n_groups,)
        The weight of each group in the centres. The weights sum to one. A group whose cost is below the largest one
        even without any weight has the weight 0.
    gap_ : float
        Relative duality gap of the centres, for the clusters of the last step. With these clusters, no other centres
        lower the largest cost of a group by a larger fraction than this.

    Notes
    -----
    The shares of the groups in the clusters are not bounded. The result is a local optimum, as in k-means. For more
    than two groups the centres come from the convex dual, see `fairclust.methods._social`.

    References
    ----------
    Ghadiri, Samadi, Vempala, "Socially fair k-means clustering", FAccT 2021.
    """

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = {
        "sensitive_features": True,
        "sample_weight": None,
    }
    takes_weights = True
    _accept_sparse = False
    n_clusters: int = 8
    _: KW_ONLY
    init: Any = "k-means++"
    n_init: int = 10
    max_iter: int = 200
    tol: float = 1e-5
    precision: str = "single"
    random_state: Any = None

    def _fit(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> None:
        rng = check_random_state(self.random_state)
        points = self._points(X, codes)
        starts = self.n_init if isinstance(self.init, str) else 1
        runs = [
            self._run(points, codes, initial_centers(X, self.n_clusters, self._framed_init(), rng), weights)
            for _ in range(starts)
        ]
        best = runs[0]
        for run in runs[1:]:
            # Starts with the same result differ by rounding errors, which must not choose between them.
            if run.group_costs.max() < best.group_costs.max() * (1 - _ALIKE):
                best = run
        self.labels_, self.group_costs_, self.history_ = best.labels, best.group_costs, best.history
        self.weights_ = best.fair.weights
        worst = float(best.fair.costs.max())
        self.gap_ = max(0.0, 1 - best.fair.lower_bound / worst) if worst > 0 else 0.0
        self.n_iter_ = len(best.history)
        self._keep(points, Prototypes(best.centers), np.zeros((len(self.groups_), self.n_clusters)))

    def _run(
        self, points: TiledPoints, codes: np.ndarray, centers: np.ndarray, weights: np.ndarray | None
    ) -> _Run:
        nothing = np.zeros((points.n_groups, self.n_clusters))
        centred = points.X - points.shift
        masses = np.bincount(codes, weights, points.n_groups)
        history: list[dict[str, float]] = []
        kept: _Run | None = None
        for step in range(1, self.max_iter + 1):
            begin = perf_counter()
            points.measure(centers)
            labels = points.hard(1.0, nothing)[0]
            moments = group_moments(centred, codes, labels, points.n_groups, self.n_clusters, weights)
            costs = moments.costs(centers - points.shift)
            worst = float(costs.max())
            last = np.inf if kept is None else float(kept.group_costs.max())
            if kept is not None and worst > last:
                # Rounding errors of the new centres can make the last step a little worse than the one before.
                break
            fair = fair_centers(
                moments, centers - points.shift, start=None if kept is None else kept.fair.weights
            )
            mean = float(masses @ costs / masses.sum())
            history.append(record(step, begin, worst, mean, worst - float(costs.min())))
            kept = _Run(labels, centers, costs, fair, history)
            if last - worst <= self.tol * worst:
                break
            centers = fair.centers + points.shift
        assert kept is not None
        return kept


class _Run(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    group_costs: np.ndarray
    fair: FairCenters
    history: list[dict[str, float]]
