"""Centres of given clusters that minimise the cost of the group with the highest cost.

With the clusters fixed, the mean squared distance of group j is ``f_j(c) = rest_j + sum_k w_jk |c_k - m_jk|^2``, where
w_jk is the share of the group that lies in cluster k and m_jk its mean there. By duality, the minimum over c of
``max_j f_j(c)`` is the maximum of ``min_c sum_j g_j f_j(c)`` over weights g of the groups that sum to one. For given
weights, the best centres are the means of the m_jk with the weights g_j w_jk. A search over J numbers, whatever the
number of points, therefore finds the centres, and the dual value is a lower bound on the cost.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize

from fairclust.kernels.assignment import cluster_moments

# The least weight of a group. With weight zero, a cluster that has only points of this group would have no centre.
_LEAST = 1e-12


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


class FairCenters(NamedTuple):
    """Centres, the cost of each group, a lower bound on the highest cost of a group, and the weights of the groups."""

    centers: np.ndarray
    costs: np.ndarray
    lower_bound: float
    weights: np.ndarray


def group_moments(
    X: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    n_groups: int,
    n_clusters: int,
    weights: np.ndarray | None = None,
) -> GroupMoments:
    """Shares and means of the groups in the clusters. The mean of X should be near zero, against rounding errors."""
    cells = codes.astype(np.int64) * n_clusters + labels
    n_cells = n_groups * n_clusters
    if weights is None:
        sizes, sums = cluster_moments(X, cells, n_cells)
    else:
        sizes = np.bincount(cells, weights, n_cells)
        sums = np.stack([np.bincount(cells, weights * column, n_cells) for column in X.T], axis=1)
    means = sums / np.where(sizes > 0, sizes, 1)[:, None]
    squares = ((X - means[cells]) ** 2).sum(axis=1)
    of_group = np.bincount(codes, weights, n_groups)
    rest = np.bincount(codes, squares if weights is None else weights * squares, n_groups)
    counts = sizes.reshape(n_groups, n_clusters)
    return GroupMoments(counts / of_group[:, None], means.reshape(n_groups, n_clusters, -1), rest / of_group)


def fair_centers(
    moments: GroupMoments, old: np.ndarray, *, start: np.ndarray | None = None, tol: float = 1e-10
) -> FairCenters:
    """Centres that minimise the cost of the group with the highest cost; empty clusters keep those of `old`.

    For two groups, the difference of their costs falls with the weight of the first one, and a line search finds its
    zero, as in Ghadiri et al. For more, the dual is maximised over the simplex by sequential quadratic programming.
    """
    n_groups = len(moments.rest)
    if n_groups == 1:
        weights = np.ones(1)
    elif n_groups == 2:
        weights = _two_weights(moments, old, tol)
    else:
        weights = _weights(moments, old, start, tol)
    centers = moments.best_for(weights, old)
    costs = moments.costs(centers)
    return FairCenters(centers, costs, float(weights @ costs), weights)


def _two_weights(moments: GroupMoments, old: np.ndarray, tol: float) -> np.ndarray:
    def difference(weight: float) -> float:
        costs = moments.costs(moments.best_for(np.array([weight, 1 - weight]), old))
        return float(costs[0] - costs[1])

    if difference(1.0) >= 0:
        return np.array([1.0, 0.0])
    if difference(0.0) <= 0:
        return np.array([0.0, 1.0])
    weight = brentq(difference, 0.0, 1.0, xtol=tol)
    return np.array([weight, 1 - weight])


def _weights(moments: GroupMoments, old: np.ndarray, start: np.ndarray | None, tol: float) -> np.ndarray:
    n_groups = len(moments.rest)
    scale = max(float(moments.costs(moments.best_for(np.ones(n_groups), old)).max()), 1e-300)

    def dual(weights: np.ndarray) -> tuple[float, np.ndarray]:
        costs = moments.costs(moments.best_for(weights, old)) / scale
        return -float(weights @ costs), -costs

    begin = np.full(n_groups, 1 / n_groups) if start is None else 0.9 * start + 0.1 / n_groups
    found = minimize(
        dual,
        begin,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * n_groups,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n_groups)},
        options={"ftol": tol, "maxiter": 200},
    )
    weights = np.clip(found.x, 0.0, 1.0)
    return weights / weights.sum()
