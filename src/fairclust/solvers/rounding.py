"""Labels with a given group-by-cluster table, from prices that all but meet it.

The prices' argmin is the cheapest assignment of all with its own table, which misses the bounds by the points
that lie level between two clusters. The nearest integer table within the bounds is a mixed-integer program
over J x K numbers; moving to it at the least cost is a flow on the K clusters, group by group.
"""

from __future__ import annotations

import heapq
from itertools import pairwise

import numpy as np
from numba import njit
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp

from fairclust.solvers.criteria import Criterion
from fairclust.solvers.points import Points

# The integers searched lie so close to the soft table, and further off where many points are too many in it.
_WINDOW, _PER_EXCESS = 3, 2
# Nodes, not seconds: the same table on every machine.
_MAX_NODES = 50
_TOLERANCE = 0.05
# Where rows must be broken: a point's worth of excess, in terms of the cost.
_WORST, _ALL = 100.0, 10.0
# Larger tables are rounded by a flow where the rows cannot all be met: within a point, fast.
_SEARCHED_CELLS = 30
_PRICED = 0.2


def integer_table(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> np.ndarray:
    """Integers close to a soft table, cheap, that break the criterion's rows as little as possible.

    Where the rows can be met they are. Elsewhere the largest excess over a row comes first, then the sum of
    them, then the cost.

    Parameters
    ----------
    soft : ndarray of shape (n_groups, n_clusters)
        Its rows sum to integers.
    prices : ndarray of shape (n_groups, n_clusters)
        What a point more in a cell saves, in units of the mean gap of the potentials.
    criterion : Criterion

    Returns
    -------
    ndarray of int, shape (n_groups, n_clusters)
    """
    if not criterion.equal:
        found = _search(soft, prices, criterion, strict=True)
        if found is not None:
            return found
    tables = [_round_by_flow(soft, prices, criterion)]
    if soft.size <= _SEARCHED_CELLS:
        tables.append(_search(soft, prices, criterion, strict=False))
    found = min(
        (table for table in tables if table is not None),
        key=lambda table: float(criterion.excess(table.astype(float)).max()),
        default=None,
    )
    if found is None:
        raise RuntimeError("HiGHS found no integer table")
    return found


def _round_by_flow(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> np.ndarray | None:
    """Every cell rounded up or down, the sums of the rows kept, those of the columns rounded as well.

    A flow has whole solutions, so a linear program will do. For exact shares the cells are first set to the
    shares of whole cluster sizes: each is then off by less than a point.
    """
    n_groups, n_clusters = soft.shape
    totals = np.rint(soft.sum(axis=1))
    sizes = np.floor(soft.sum(axis=0) + 1e-9)
    missing = int(totals.sum() - sizes.sum())
    sizes[np.argsort(sizes - soft.sum(axis=0), kind="stable")[:missing]] += 1
    if criterion.equal:
        soft = np.outer(totals / totals.sum(), sizes)
    down = np.floor(soft + 1e-9)
    part = soft - down
    up = (part > 1e-9).astype(float)
    # High powers: the largest deviation counts most. The prices decide between deviations that are alike.
    cost = np.abs(1 - part) ** 4 - np.abs(part) ** 4 - _PRICED * prices
    done = linprog(
        cost.ravel(),
        A_eq=sparse.vstack(
            [
                sparse.kron(sparse.eye_array(n_groups), np.ones((1, n_clusters))),
                sparse.kron(np.ones((1, n_groups)), sparse.eye_array(n_clusters)),
            ]
        ),
        b_eq=np.r_[totals - down.sum(axis=1), sizes - down.sum(axis=0)],
        bounds=np.column_stack([np.zeros(soft.size), up.ravel()]),
        method="highs-ds",
    )
    return (down + np.rint(done.x).reshape(soft.shape)).astype(np.int64) if done.success else None


def _search(soft: np.ndarray, prices: np.ndarray, criterion: Criterion, strict: bool) -> np.ndarray | None:
    """A mixed-integer program over the tables near the soft one; None if there is none, or none is found."""
    n_groups, n_clusters = soft.shape
    rows, limits, helpers = criterion.rows, criterion.limits, criterion.helpers
    if criterion.equal:
        # The row left out, and both sides of each.
        rows = np.vstack([rows, -rows.sum(axis=0)])
        rows, limits = np.vstack([rows, -rows]), np.zeros(2 * len(rows))
        helpers = np.empty((len(rows), 0))
    each, cells = sparse.eye_array(n_clusters), sparse.eye_array(soft.size)
    n_rows = len(rows) * n_clusters
    # Unknowns: table, distance to the soft one, helpers, excess of the rows, the largest of them.
    sizes = [soft.size, soft.size, helpers.shape[1] * n_clusters, n_rows, 1]
    ends = np.cumsum([0, *sizes])
    table, far, helper, excess, worst = (slice(a, b) for a, b in pairwise(ends))

    def rows_of(**blocks: sparse.sparray) -> sparse.sparray:
        height = next(iter(blocks.values())).shape[0]
        names = ("table", "far", "helper", "excess", "worst")
        return sparse.hstack(
            [
                blocks.get(name, sparse.csr_array((height, size)))
                for name, size in zip(names, sizes, strict=True)
            ]
        )

    totals = sparse.kron(sparse.eye_array(n_groups), np.ones((1, n_clusters)))
    over = sparse.eye_array(n_rows)
    system = sparse.vstack(
        [
            rows_of(table=totals),
            rows_of(table=cells, far=-cells),
            rows_of(table=-cells, far=-cells),
            rows_of(table=sparse.kron(rows, each), helper=sparse.kron(helpers, each), excess=-over),
            rows_of(excess=over, worst=sparse.csr_array(-np.ones((n_rows, 1)))),
        ]
    )
    in_group = np.rint(soft.sum(axis=1))
    above = np.r_[in_group, soft.ravel(), -soft.ravel(), np.repeat(limits, n_clusters), np.zeros(n_rows)]
    below = np.r_[in_group, np.full(len(above) - n_groups, -np.inf)]
    low, high = np.zeros(ends[-1]), np.full(ends[-1], np.inf)
    window = _WINDOW + _PER_EXCESS * int(criterion.excess(soft).max())
    low[table] = np.maximum(np.floor(soft) - window, 0).ravel()
    high[table] = (np.ceil(soft) + window).ravel()
    low[helper] = -np.inf
    if strict:
        high[excess] = high[worst] = 0
    objective = np.zeros(ends[-1])
    # Constants for each group change nothing but the size of the objective, of which HiGHS takes a share.
    by_group = (soft * prices).sum(axis=1, keepdims=True) / in_group[:, None]
    objective[table] = (by_group - prices).ravel()
    # Points lie the closer to level the more there are.
    objective[far] = 2 / (1 + soft.ravel())
    objective[excess], objective[worst] = _ALL, _WORST
    done = milp(
        objective,
        constraints=LinearConstraint(system.tocsc(), below, above),
        integrality=np.arange(ends[-1]) < soft.size,
        bounds=(low, high),
        options={"node_limit": _MAX_NODES, "mip_rel_gap": _TOLERANCE},
    )
    return None if done.x is None else np.rint(done.x[table]).astype(np.int64).reshape(soft.shape)


def move_to_table(
    points: Points, prices: np.ndarray, labels: np.ndarray, counts: np.ndarray, table: np.ndarray
) -> float:
    """Change labels in place until their counts are those of `table`, at the least cost.

    Parameters
    ----------
    points : Points
    prices : ndarray of shape (n_groups, n_clusters)
    labels : ndarray of shape (n_samples,), int32
        Those of `Points.priced` at these prices.
    counts, table : ndarray of shape (n_groups, n_clusters)
        Counts of `labels` and wanted counts, of the same row sums.

    Returns
    -------
    float
        What the potentials of the labels have grown by.
    """
    surplus = (counts - table).astype(np.int64)
    added = 0.0
    for j, rows, excess in points.movable(prices, labels, np.maximum(surplus, 0).sum(axis=1)):
        old = labels[rows].astype(np.int64)
        new = shortest_paths(excess + prices[j], old, surplus[j].copy())
        added += float((excess[np.arange(len(rows)), new] - excess[np.arange(len(rows)), old]).sum())
        labels[rows] = new
    return added


@njit(cache=True, nogil=True)
def shortest_paths(cost, before, surplus):  # type: ignore[no-untyped-def]
    """Cheapest labels in whose clusters no point is too many, by successive shortest paths.

    The nodes are the clusters, and an edge costs what the point that changes most cheaply along it pays.

    Parameters
    ----------
    cost : ndarray of shape (n_points, n_clusters)
        ``inf`` where a point cannot go.
    before : ndarray of int64, shape (n_points,)
        Labels that are the cheapest for the cluster sizes that they have.
    surplus : ndarray of int64, shape (n_clusters,)
        Points too many (negative: too few) in each cluster; changed in place.

    Returns
    -------
    ndarray of int64, shape (n_points,)

    Notes
    -----
    Dijkstra's algorithm on costs reduced by the clusters' heights, as in Suurballe's: rounding errors then
    cannot close a negative cycle.
    """
    n_points, n_clusters = cost.shape
    own = before.copy()
    edges = [[(0.0, 0) for _ in range(0)] for _ in range(n_clusters * n_clusters)]
    for p in range(n_points):
        k = own[p]
        for other in range(n_clusters):
            if other != k:
                edges[k * n_clusters + other].append((cost[p, other] - cost[p, k], p))
    for edge in edges:
        heapq.heapify(edge)
    height = np.zeros(n_clusters)
    distance = np.empty(n_clusters)
    parent = np.empty(n_clusters, np.int64)
    done = np.empty(n_clusters, np.bool_)
    while surplus.max() > 0:
        for k in range(n_clusters):
            distance[k] = 0.0 if surplus[k] > 0 else np.inf
            parent[k] = -1
            done[k] = False
        for _ in range(n_clusters):
            k = -1
            for other in range(n_clusters):
                if not done[other] and distance[other] < np.inf and (k < 0 or distance[other] < distance[k]):
                    k = other
            if k < 0:
                break
            done[k] = True
            for other in range(n_clusters):
                if done[other]:
                    continue
                edge = edges[k * n_clusters + other]
                while len(edge) > 0 and own[edge[0][1]] != k:
                    heapq.heappop(edge)
                if len(edge) > 0:
                    reach = distance[k] + max(0.0, edge[0][0] + height[k] - height[other])
                    if reach < distance[other]:
                        distance[other] = reach
                        parent[other] = k
        end = -1
        for k in range(n_clusters):
            if surplus[k] < 0 and distance[k] < np.inf and (end < 0 or distance[k] < distance[end]):
                end = k
        if end < 0:
            break
        for k in range(n_clusters):
            height[k] += min(distance[k], distance[end])
        surplus[end] += 1
        while parent[end] >= 0:
            k = parent[end]
            p = heapq.heappop(edges[k * n_clusters + end])[1]
            own[p] = end
            for other in range(n_clusters):
                if other != end:
                    heapq.heappush(edges[end * n_clusters + other], (cost[p, other] - cost[p, end], p))
            end = k
        surplus[end] -= 1
    return own
