"""Labels within the bounds, chosen among the points nearest to the boundaries between clusters.

If there are many small groups, a table of counts says little about the cost, because a cell of two points may have no
point near a boundary. Here the labels of single points are the unknowns of a small mixed-integer program. Only the
points nearest to the boundaries can move; all others keep their labels.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint

from fairclust.solvers.criteria import Criterion
from fairclust.solvers.highs import SECONDS, milp
from fairclust.solvers.points import Points

# _POINTS points can move, and in addition the nearest _OF_BOUNDARY of each pair of clusters.
_POINTS, _OF_BOUNDARY = 40, 2
# A limit on nodes instead of seconds gives the same labels on every machine.
_NODES, _TOLERANCE = 50, 0.05
# Costs of one point of excess, in units of the mean gap of the potentials: of the largest excess, and of their sum.
_WORST, _ALL = 100.0, 10.0


def move_nearby(
    points: Points,
    criterion: Criterion,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    unit: float,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Move the points nearest to the boundaries so that the criterion's rows are met, or broken as little as possible.

    `labels` are those of `Points.priced` at these prices, and `counts` is their table. Returns new ones, or the same if
    the program has no solution, and the increase of the sum of the labels' potentials. `unit` is the scale of the
    potentials.
    """
    group, rows, cost = _nearest(points, prices, labels)
    n_points, n_clusters = cost.shape
    own, each = labels[rows], np.arange(n_points)
    weight = np.ones(n_points) if weights is None else weights[rows]
    fixed = counts.copy()
    np.subtract.at(fixed, (group, own), weight)
    limits = np.broadcast_to(criterion.limits, (len(criterion.rows), n_clusters))
    exact = criterion.exact
    # An equality is a bound on both sides.
    sides = np.vstack([criterion.rows, -criterion.rows[exact]])
    helpers = np.vstack([criterion.helpers, -criterion.helpers[exact]])
    most = np.vstack([limits, -limits[exact]]) - sides @ fixed
    cells, n_sides = cost.size, most.size
    eye = sparse.eye_array(n_clusters)
    over = sparse.eye_array(n_sides)
    # Unknowns: the share of every point in every cluster, the helpers, the excess of every row, the largest excess.
    system = sparse.block_array(
        [
            [sparse.kron(sparse.eye_array(n_points), np.ones((1, n_clusters))), None, None, None],
            [
                sparse.kron(sides[:, group] * weight, eye),
                sparse.kron(helpers, eye) if helpers.size else None,
                -over,
                None,
            ],
            [None, None, over, sparse.csr_array(-np.ones((n_sides, 1)))],
        ]
    )
    n_helpers = helpers.shape[1] * n_clusters
    paid = weight[:, None] * (cost - cost[each, own][:, None]) / unit
    least = np.r_[np.zeros(cells), np.full(n_helpers, -np.inf), np.zeros(n_sides + 1)]
    last = np.r_[np.ones(cells), np.full(n_helpers + n_sides + 1, np.inf)]
    criterion.work.program(system.nnz)
    done = milp(
        np.r_[paid.ravel(), np.zeros(n_helpers), np.full(n_sides, _ALL), _WORST],
        constraints=LinearConstraint(
            system.tocsc(),
            np.r_[np.ones(n_points), np.full(2 * n_sides, -np.inf)],
            np.r_[np.ones(n_points), most.ravel(), np.zeros(n_sides)],
        ),
        integrality=np.arange(len(least)) < cells,
        bounds=(least, last),
        options={"node_limit": _NODES, "mip_rel_gap": _TOLERANCE, "time_limit": SECONDS},
    )
    if done.x is None:
        return labels, counts, 0.0
    new = done.x[:cells].reshape(cost.shape).argmax(axis=1)
    moved = labels.copy()
    moved[rows] = new
    np.add.at(fixed, (group, new), weight)
    return moved, fixed, float((weight * (cost[each, new] - cost[each, own])).sum())


def _nearest(
    points: Points, prices: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, row and potentials of the points for which a change of cluster costs least."""
    n_groups, n_clusters = prices.shape
    found = list(points.movable(prices, labels, np.full(n_groups, _OF_BOUNDARY)))
    group = np.concatenate([np.full(len(rows), j) for j, rows, _ in found])
    rows = np.concatenate([rows for _, rows, _ in found])
    cost = np.concatenate([excess for *_, excess in found])
    own, each = labels[rows], np.arange(len(rows))
    regret = cost + prices[group]
    regret -= regret[each, own][:, None]
    regret[each, own] = np.inf
    least = regret.min(axis=1)
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[np.argsort(least, kind="stable")[:_POINTS]] = True
    for k in range(n_clusters):
        inside = np.flatnonzero(own == k)
        for other in range(n_clusters):
            if other != k:
                chosen[inside[np.argsort(regret[inside, other], kind="stable")[:_OF_BOUNDARY]]] = True
    return group[chosen], rows[chosen], cost[chosen]
