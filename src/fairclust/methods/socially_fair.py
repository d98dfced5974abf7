"""Socially fair k-means (Ghadiri et al., FAccT 2021): the largest mean cost of a group is as small as possible.

With the clusters fixed, the mean squared distance of group j is ``f_j(c) = rest_j + sum_k w_jk |c_k - m_jk|^2``, see
`GroupMoments`. The minimum over c of ``max_j f_j(c)`` is the maximum of ``min_c sum_j g_j f_j(c)`` over weights g of
the groups that sum to one. For given weights, the best centres are the means of the m_jk with the weights g_j w_jk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from fairclust.base import initial_centers
from fairclust.kernels.points import TiledPoints
from fairclust.messages import count
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, Run, Step, alternate, judge_fall

# Costs with a smaller relative difference than this differ by rounding errors of the search only.
_ALIKE = 1e-9
# The least weight of a group. With weight zero, a cluster that has only points of this group would have no centre.
_LEAST = 1e-12
# Tolerance of the search for the weights.
_TOL = 1e-10


@dataclass(eq=False, repr=False, kw_only=True)
class SociallyFairKMeans(PrototypeClusterer):
    """K-means that minimises the largest cost of a group, its rows' mean squared distance to their centres.

    This is the paper's Fair-Lloyd. Every row goes to its nearest centre. Then the centres move to where the largest
    cost of a group is smallest for these clusters. The shares of the groups in the clusters are not bounded.

    Parameters
    ----------
    n_init : int, default=10
        Number of starts, of which the one with the smallest largest cost of a group is kept. If `init` is an array
        there is one start.
    max_iter : int, default=200
        Largest number of steps of a start.
    tol : float, default=1e-5
        A start ends once a step lowers the largest cost by no more than this fraction.

    Attributes
    ----------
    history_ : list of dict
        The objective is the largest cost of a group, the clustering term is the mean squared distance
        of all rows, and the fairness term is the difference between the largest and the smallest cost of a group.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        They are not the means of the clusters, but lie closer to the rows of groups with a large cost.
    group_costs_ : ndarray of shape (n_groups,)
        The cost of each group, in the order of `groups_`.
    weights_ : ndarray of shape (n_groups,)
        The weight of each group in the centres. The weights sum to one. A group whose cost is below the largest one
        even without any weight has the weight 0. They are equal if the fit ends with its first centres.
    gap_ : float
        Relative duality gap of the centres, for the clusters in `labels_`. With these clusters, no other centres lower
        the largest cost of a group by a larger fraction than this.
    converged_ : bool

    References
    ----------
    Ghadiri, Samadi, Vempala, "Socially fair k-means clustering", FAccT 2021.

    Examples
    --------
    >>> from fairclust import SociallyFairKMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = SociallyFairKMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model.group_costs_.round(2).tolist()
    [1.25, 1.25]
    """

    __metadata_request__fit: ClassVar[dict[str, bool | None]] = {"sample_weight": None}
    takes_weights = True
    _COST_TERMS = ("objective", "clustering", "fairness")
    init: Any = "k-means++"
    n_init: int = 10
    max_iter: int = 200
    tol: float = 1e-5
    precision: str = "single"

    def _fit(self, X: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> None:
        rng = check_random_state(self.random_state)
        points = self._points(X, codes)
        weights = np.ones(len(X)) if weights is None else weights
        best: Run | None = None
        for _ in range(self.n_init if isinstance(self.init, str) else 1):
            start = initial_centers(X, self.n_clusters, self._framed_init(), rng)
            run = self._run(points, codes, start, weights)
            if best is None or run.last.objective < best.last.objective * (1 - _ALIKE):
                best = run
        assert best is not None
        self.labels_, self.history_, self.n_iter_ = best.last.labels, best.history, len(best.history)
        self.group_costs_, self.weights_, self.gap_ = best.last.state
        self.converged_ = best.verdict == "at rest"
        if not self.converged_:
            self._complain(
                f"stopped after {count(self.n_iter_, 'step')}, the largest cost still falling: raise max_iter or tol"
            )
        self._keep(points, best.prototypes, best.last.offset)

    def _run(self, points: TiledPoints, codes: np.ndarray, start: np.ndarray, weights: np.ndarray) -> Run:
        centred, masses = points.X - points.shift, np.bincount(codes, weights)
        nothing = np.zeros((points.n_groups, self.n_clusters))
        centers, of_groups = start, np.full(points.n_groups, 1 / points.n_groups)

        def assign(points: TiledPoints, last: Step | None) -> Step | None:
            nonlocal centers, of_groups
            labels, counts, _ = points.hard(1.0, nothing)
            moments = group_moments(centred, codes, labels, self.n_clusters, weights)
            costs = moments.costs(centers - points.shift)
            worst = float(costs.max())
            if last is not None and worst > last.objective:
                # Rounding errors of the new centres can make the last step a little worse than the one before.
                return None
            old = of_groups
            fairer, of_groups, least = fair_centers(moments, centers - points.shift, of_groups)
            centers = fairer + points.shift
            # Gap and weights are those of this step's centres, which the fit keeps if the step is the last one.
            gap = max(0.0, 1 - least / worst) if worst > 0 else 0.0
            mean, apart = float(masses @ costs / masses.sum()), worst - float(costs.min())
            return Step(labels, counts, 1.0, nothing, worst, mean, apart, 0, state=(costs, old, gap))

        alternation = Alternation(assign, lambda *_: Prototypes(centers), partial(judge_fall, tol=self.tol))
        return alternate(alternation, points, Prototypes(start), max_iter=self.max_iter)


class GroupMoments(NamedTuple):
    """The moments of the groups in given clusters, from which their costs are computed."""

    shares: np.ndarray  # (n_groups, n_clusters); w_jk, the share of group j that lies in cluster k
    means: np.ndarray  # (n_groups, n_clusters, n_features); m_jk; zeros if there are no points
    rest: np.ndarray  # (n_groups,); mean squared distance of each group's points to the m_jk

    def costs(self, centers: np.ndarray) -> np.ndarray:
        """Mean squared distance of each group to these centres, shape (n_groups,)."""
        squares = ((self.means - centers) ** 2).sum(axis=2)
        return self.rest + (self.shares * squares).sum(axis=1)

    def best_for(self, weights: np.ndarray, old: np.ndarray) -> np.ndarray:
        """The centres with the least weighted sum of the groups' costs. An empty cluster keeps its old centre."""
        mass = np.maximum(weights, _LEAST)[:, None] * self.shares
        total = mass.sum(axis=0)
        sums = (mass[:, :, None] * self.means).sum(axis=0)
        return np.where(total[:, None] > 0, sums / np.where(total > 0, total, 1.0)[:, None], old)


def group_moments(
    X: np.ndarray, codes: np.ndarray, labels: np.ndarray, n_clusters: int, weights: np.ndarray
) -> GroupMoments:
    """Shares and means of the groups in the clusters. The mean of X should be near zero, against rounding errors."""
    of_group = np.bincount(codes, weights)
    cells, n_cells = codes.astype(np.int64) * n_clusters + labels, len(of_group) * n_clusters
    sizes = np.bincount(cells, weights, n_cells)
    sums = np.stack([np.bincount(cells, weights * column, n_cells) for column in X.T], axis=1)
    means = sums / np.where(sizes > 0, sizes, 1)[:, None]
    rest = np.bincount(codes, weights * ((X - means[cells]) ** 2).sum(axis=1))
    shares = sizes.reshape(-1, n_clusters) / of_group[:, None]
    return GroupMoments(shares, means.reshape(*shares.shape, -1), rest / of_group)


def fair_centers(
    moments: GroupMoments, old: np.ndarray, start: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Centres that minimise the highest cost of a group, the weights of the groups, and a lower bound on this cost.

    The dual is maximised over the simplex by sequential quadratic programming, from near the weights `start`. Empty
    clusters keep the centres of `old`.
    """
    n_groups = len(start)
    scale = max(float(moments.costs(moments.best_for(np.ones(n_groups), old)).max()), 1e-300)

    def dual(weights: np.ndarray) -> tuple[float, np.ndarray]:
        costs = moments.costs(moments.best_for(weights, old)) / scale
        return -float(weights @ costs), -costs

    solution = minimize(
        dual,
        0.9 * start + 0.1 / n_groups,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_groups,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n_groups)},
        options={"ftol": _TOL, "maxiter": 200},
    )
    weights = np.clip(solution.x, 0.0, 1.0)
    weights /= weights.sum()
    centers = moments.best_for(weights, old)
    return centers, weights, float(weights @ moments.costs(centers))
