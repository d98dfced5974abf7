"""Moves of single points near the boundaries, for data about whose cost a group-by-cluster table says too little."""

from __future__ import annotations

import numpy as np

from fairclust.kernels.flow import all_clusters
from fairclust.methods.price.criteria import Criterion
from fairclust.methods.price.tables import GAP, bound_table
from fairclust.solvers.points import Points
from fairclust.solvers.programs import SECONDS, Program, table_sums

# `move_nearby`: _POINTS points can move, and in addition the nearest _OF_BOUNDARY of each pair of clusters, in a search
# of at most _NODES nodes. With 25 points, or one at each boundary, up to 3 of 20 mixed problems cost up to 0.1 % more.
# With 50 nodes instead of 10 none of them is better, and rounding takes more than twice as long.
_POINTS, _OF_BOUNDARY, _NODES = 40, 2, 10
# `move_singly`: the number of points of each group that can move at each boundary, and the most moves for each cell of
# the table.
_NEARBY, _MOST_MOVES = 6, 10
# This fraction of the mean regret is added to every regret, so that none is zero. An excess below _ROUNDING times the
# number of points is a rounding error.
_FREE, _ROUNDING = 1e-6, 1e-9


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

    Labels and table are those of `Points.priced` at these prices, and `unit` is the scale of the potentials. Returns
    new ones, or the same if the program has no solution, and the increase of the sum of the labels' potentials.
    """
    # If there are many small groups, a table of counts says little about the cost, because a cell of two points may
    # have no point near a boundary. Here the labels of single points are the variables of a small program.
    group, rows, cost = _nearest_rows(points, prices, labels)
    n_points = len(rows)
    own, each = labels[rows], np.arange(n_points)
    weight = np.ones(n_points) if weights is None else weights[rows]
    fixed = counts.copy()
    np.subtract.at(fixed, (group, own), weight)
    program = Program()
    paid = weight[:, None] * (cost - cost[each, own][:, None]) / unit
    program.variables("shares", paid, 0.0, 1.0, whole=True)
    program.rows(1.0, 1.0, shares=table_sums(paid.shape)[0])
    members = np.zeros((len(counts), n_points))
    members[group, each] = weight
    bound_table(program, criterion, "shares", members, fixed)
    criterion.work.program(program.n_entries)
    found = program.solve(nodes=_NODES, gap=GAP, seconds=SECONDS)
    if found is None:
        return labels, counts, 0.0
    new = found.values["shares"].argmax(axis=1)
    moved = labels.copy()
    moved[rows] = new
    np.add.at(fixed, (group, new), weight)
    return moved, fixed, float((weight * (cost[each, new] - cost[each, own])).sum())


def _nearest_rows(
    points: Points, prices: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, row and potentials of the points for which a change of cluster costs least."""
    n_clusters = prices.shape[1]
    group, rows, cost = _movable_rows(points, prices, labels, np.full(len(prices), _OF_BOUNDARY))
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


def _movable_rows(
    points: Points, prices: np.ndarray, labels: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, row and potentials of all points of `Points.movable`."""
    found = list(points.movable(prices, labels, units))
    group = np.concatenate([np.full(len(rows), j) for j, rows, *_ in found])
    rows = np.concatenate([rows for _, rows, *_ in found])
    # Clusters that a point does not list are too dear for it.
    cost = np.full((len(rows), prices.shape[1]), np.inf)
    first = 0
    for _, own, excess, listed in found:
        of_group = cost[first : first + len(own)]
        np.put_along_axis(of_group, all_clusters(*excess.shape) if listed is None else listed, excess, axis=1)
        first += len(own)
    return group, rows, cost


def cell_regrets(
    points: Points,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    unit: float,
    wanted: np.ndarray,
) -> np.ndarray:
    """What it costs at these prices to have `wanted` points in each cell, of shape (n_groups, n_clusters, n).

    A move costs its regret, half of which is counted in each of its two clusters. The costs are divided by `unit`.
    """
    change = (wanted - np.rint(counts)[:, :, None]).astype(int)
    units = np.abs(change).max(axis=(1, 2))
    group, rows, cost = _movable_rows(points, prices, labels, units)
    paid = np.empty(change.shape)
    for j in range(len(counts)):
        own, reduced = labels[rows[group == j]], cost[group == j] + prices[j]
        each = np.arange(len(own))
        regret = np.maximum(reduced - reduced[each, own][:, None], 0.0)
        regret[each, own] = np.inf
        least = regret.min(axis=1)
        # The sums of the least regrets of points that enter a cluster, and of those that leave it.
        sums = np.full((2, units[j] + 1, counts.shape[1]), np.inf)
        sums[:, 0] = 0.0
        entering = np.sort(regret, axis=0)[: units[j]]
        sums[0, 1 : len(entering) + 1] = entering.cumsum(axis=0)
        for k in range(counts.shape[1]):
            leaving = np.sort(least[own == k])[: units[j]]
            sums[1, 1 : len(leaving) + 1, k] = leaving.cumsum()
        paid[j] = sums[(change[j] < 0).astype(int), np.abs(change[j]), np.arange(counts.shape[1])[:, None]]
    return paid / (2 * unit)


def move_singly(
    points: Points,
    criterion: Criterion,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    weights: np.ndarray | None = None,
) -> float:
    """Change labels in place, one at a time, until no change brings the table nearer to its bounds.

    This is for points with weights, and for bounds with so many helpers that mixed-integer programs take minutes. A
    point is never divided, so a cell can stay outside its bounds by up to the weight of a point near a boundary. Labels
    are those of `Points.priced`, `counts` changes with them, and the increase of their weighted cost is returned.
    """
    n_groups, n_clusters = counts.shape
    if n_clusters == 1:
        return 0.0
    group, rows, cost = _movable_rows(points, prices, labels, np.full(n_groups, _NEARBY))
    each = np.arange(len(rows))
    weights = np.ones(len(rows)) if weights is None else weights[rows]
    reduced = cost + prices[group]
    change = np.zeros((n_groups, len(rows)))
    change[group, each] = weights
    added = 0.0
    off, left, more = np.empty(n_clusters), np.empty(len(rows)), np.empty((len(rows), n_clusters))
    changed = np.arange(n_clusters)
    for _ in range(_MOST_MOVES * counts.size):
        # Only the clusters of the last move have other excesses now.
        own = labels[rows]
        off[changed] = criterion.excess_of(counts[:, changed], changed).sum(axis=0)
        leaving = np.flatnonzero(np.isin(own, changed))
        before = counts[:, own[leaving]] - change[:, leaving]
        left[leaving] = criterion.excess_of(before, own[leaving]).sum(axis=0) - off[own[leaving]]
        for k in changed:
            joined = counts[:, [k]] + change
            more[:, k] = criterion.excess_of(joined, np.full(len(rows), k)).sum(axis=0)
        worse = left[:, None] + more - off
        worse[each, own] = 0.0
        regret = weights[:, None] * np.maximum(reduced - reduced[each, own][:, None], 0.0)
        gain = np.where(
            worse < -_ROUNDING * counts.sum(),
            -worse / (regret + _FREE * (regret[np.isfinite(regret)].mean() or 1.0)),
            0.0,
        )
        p, k = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[p, k] <= 0:
            break
        changed = np.array([own[p], k])
        counts[group[p], own[p]] -= weights[p]
        counts[group[p], k] += weights[p]
        added += float(weights[p] * (cost[p, k] - cost[p, own[p]]))
        labels[rows[[p]]] = np.array([k])
    return added
