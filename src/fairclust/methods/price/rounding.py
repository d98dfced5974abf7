"""Round prices to labels whose group-by-cluster table meets the bounds.

The argmin at the prices is the cheapest of all assignments with the same table. That table violates the bounds by a few
points, which cost the same in two clusters. `tables.py` finds integer tables nearby that are within the bounds. For
each group, a flow on the K clusters then moves points to such a table at the least cost. Where a table says too little
about the cost, single points near the boundaries are moved instead. With few points, `move_cheaper` then makes the
labels cheaper without a larger violation. The prices are the same for near and far points, so if a few points lie far
from all others, `loose_labels` also tries to exceed the bounds by a point in every cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from fairclust.kernels.flow import all_clusters, shortest_paths
from fairclust.kernels.points import TiledPoints
from fairclust.methods.price.tables import (
    GAP,
    MOST_POINTS,
    WORST,
    accepted,
    bound_table,
    flow_table,
    integer_tables,
    tables_near,
)
from fairclust.solvers.alternation import Prototypes, Run
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.points import Points
from fairclust.solvers.prices import COLD, Prices, dual_prices, lower_bound, solve, temperature_unit
from fairclust.solvers.programs import SECONDS, Program, table_sums

# With fewer than _POINTS_PER_CELL points per cell of the table, `move_nearby` chooses single points. With more than
# _MOST_MULTIPLIERS multipliers it takes too long, and with more than _MOST_CLUSTERS clusters there are points at every
# boundary.
_POINTS_PER_CELL, _MOST_MULTIPLIERS, _MOST_CLUSTERS = 20, 200, 12
# With this many clusters, the flows of all points take long. So many points of a cluster, and so many of the cheapest
# clusters of each, are tried first.
_MANY_CLUSTERS, _FEW_MOVED, _FEW_ENTERED = 64, 32, 16
# With more helpers in all clusters than this, mixed-integer programs take minutes.
_MOST_HELPERS = 100
# `move_nearby`: _POINTS points can move, and the nearest _OF_BOUNDARY of each pair of clusters, in at most _NODES
# nodes.
_POINTS, _OF_BOUNDARY, _NODES = 40, 2, 10
# `move_singly`: the number of points of each group that can move at each boundary, and the most moves for each cell of
# the table.
_NEARBY, _MOST_MOVES = 6, 10
# This fraction of the mean regret is added to every regret, so that none is zero. An excess below _ROUNDING times the
# number of points is a rounding error.
_FREE, _ROUNDING = 1e-6, 1e-9
# `move_cheaper` makes at most _MOST_STEPS steps. In each it tries to move one point, or two points of different groups,
# one of them by one of the _PAIRED cheapest moves.
_MOST_STEPS, _PAIRED = 2000, 50
# `round_prices` uses it with fewer than _FEW_TO_MOVE points per cell and at most _FEW_CELLS cells.
_FEW_TO_MOVE, _FEW_CELLS = 200, 300
_MET = 1e-9
# Labels are used if their cost is lower by more than _CHEAPER. If they come from moving points one by one, and their
# violation is more than _NO_WORSE points larger than that of the other labels, their cost must be lower by more than
# the factor _FAR_CHEAPER. In other cases labels closer to the bounds are better.
_CHEAPER, _FAR_CHEAPER, _NO_WORSE = 0.05, 1.5, 0.1
# With fewer points for each cell of the table, labels within the bounds can cost much more than the soft assignment,
# and runs are compared by their labels.
_FEW_FOR_PRICES = 200
# A run is compared with a cheaper one if it can save more than this fraction.
_WORTH = 2e-3


def round_prices(
    points: Points, criterion: Criterion, solved: Prices
) -> tuple[np.ndarray, float, np.ndarray]:
    """Labels within the bounds, obtained from the argmin at the prices by moving few points.

    Returns them with the sum of their potentials and their table.
    """
    labels, counts, cost, _ = points.priced(solved.prices)
    few = points.n_samples < _FEW_TO_MOVE * counts.size and counts.shape[1] > 1 and counts.size <= _FEW_CELLS
    if not few or points.weights is not None or points.lists is not None:
        labels, added, counts = _near_table(points, criterion, solved, labels, counts)
        return labels, cost + added, counts
    every = np.full(len(counts), points.n_samples)
    group, rows, costs = _movable_rows(points, solved.prices, labels, every)
    near_labels, _, near = _near_table(points, criterion, solved, labels.copy(), counts.copy())
    _, _, cheaper = move_cheaper(costs, group, near_labels[rows], near, criterion, as_fair=True)
    # Moves are chosen one after the other, so other moves to the same table can cost less.
    added, counts = move_to_table(points, solved.prices, labels, counts, [np.rint(cheaper)])
    return labels, cost + added, counts


def cheapest(
    points: TiledPoints, criterion: Criterion, runs: Sequence[Run], tol: float
) -> tuple[Run, Prices]:
    """The cheapest run with its prices, or with few points for each cell the one with the cheapest labels."""
    best: tuple[float, Run, Prices] | None = None
    few = points.n_samples < _FEW_FOR_PRICES * criterion.n_counted * points.n_clusters
    by_labels = few and len(runs) > 1 and not criterion.combined and points.weights is None
    for run in runs:
        if best is not None and run.last.objective >= best[0] * (1 - _WORTH):
            # The objective is a lower bound on the cost of this run.
            continue
        points.measure(run.prototypes.centers)
        prices = solve(points, criterion, run.last.state)
        # The lower bound alone is not enough, because it is too low for prices that are far from optimal.
        cost = max(prices.cost, lower_bound(points, criterion, prices))
        if by_labels:
            _, cost, counts = round_prices(points, criterion, prices)
            cost += WORST * temperature_unit(points) * float(criterion.excess(counts).max())
        # Starts with the same result differ by rounding errors, which must not choose between them.
        if best is None or cost < best[0] * (1 - tol):
            best = cost, run, prices
    assert best is not None
    return best[1:]


def _near_table(
    points: Points, criterion: Criterion, solved: Prices, labels: Any, counts: np.ndarray
) -> tuple[Any, float, np.ndarray]:
    """Change the labels and the table that `Points.priced` returns until the bounds are met as well as possible.

    Returns them with the increase of the sum of the labels' potentials.
    """
    unit = temperature_unit(points)
    soft, prices = soft_table(solved), solved.prices / unit

    def moved(labels: Any, counts: np.ndarray, tables: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
        # The prices do not show how much it costs to move points that lie far from all others, so a table is chosen by
        # what it costs.
        charges = [WORST * unit * float(criterion.excess(table).max()) for table in tables]
        return move_to_table(points, solved.prices, labels, counts, tables, charges)

    nearby = None
    small = (
        criterion.combined
        and solved.multipliers.size <= _MOST_MULTIPLIERS
        and counts.shape[1] <= _MOST_CLUSTERS
        and points.n_samples < _POINTS_PER_CELL * counts.size
    )
    if small:
        nearby = move_nearby(points, criterion, solved.prices, labels, counts, unit)
        if criterion.excess(nearby[1]).max() <= accepted(criterion):
            return nearby[0], nearby[2], nearby[1]
    if points.weights is not None:
        added = move_singly(points, criterion, solved.prices, labels, counts)
    elif criterion.helpers.shape[1] * counts.shape[1] > _MOST_HELPERS:
        free = labels.copy(), counts.copy()
        added, counts = moved(labels, counts, [flow_table(soft, prices, criterion)])
        added += move_singly(points, criterion, solved.prices, labels, counts)
        # Single moves are chosen one after the other, so other moves to the same table can cost less.
        again, _ = moved(*free, [np.rint(counts)])
        if again < added:
            labels, added = free[0], again
    else:
        few_points = points.n_samples <= MOST_POINTS
        regrets = partial(cell_regrets, points, solved.prices, labels, counts, unit) if few_points else None
        tables = integer_tables(soft, prices, criterion, solved.multipliers / unit, regrets)
        added, counts = moved(labels, counts, tables)
    if nearby is not None and criterion.excess(nearby[1]).max() <= criterion.excess(counts).max():
        labels, counts, added = nearby
    return labels, added, counts


def soft_table(solved: Prices) -> np.ndarray:
    """The table at the prices, scaled so that its rows sum to whole numbers, the sizes of the groups."""
    totals = solved.mass.sum(axis=1, keepdims=True)
    return solved.mass * (np.rint(totals) / totals)


def move_to_table(
    points: Points,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    tables: Sequence[np.ndarray],
    charges: Sequence[float] | float = 0.0,
) -> tuple[float, np.ndarray]:
    """Change labels in place until their counts are those of one of the tables; returns the cost and the table.

    The table for which the least cost of moving points plus its charge is least is chosen. The labels are those that
    `Points.priced` returns for these prices.
    """
    wanted = [(counts - table).astype(np.int64) for table in tables]
    units = np.max([np.maximum(of_table, 0).sum(axis=1) for of_table in wanted], axis=0)
    few = np.minimum(units, _FEW_MOVED) if len(prices[0]) >= _MANY_CLUSTERS else units
    for most in few, units:
        surplus, added = [of_table.copy() for of_table in wanted], np.zeros(len(tables))
        moved: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in tables]
        for j, rows, excess, listed in points.movable(prices, labels, most):
            clusters = all_clusters(*excess.shape) if listed is None else listed
            old = labels[rows].astype(np.int64)
            if most is not units and listed is None:
                reduced = excess + prices[j]
                # With equal costs, the cluster of the label must be among the cheapest.
                np.put_along_axis(reduced, old[:, None], -np.inf, axis=1)
                clusters = np.argpartition(reduced, _FEW_ENTERED, axis=1)[:, :_FEW_ENTERED]
                excess = np.take_along_axis(excess, clusters, axis=1)
            for i, of_table in enumerate(surplus):
                new = shortest_paths(excess + prices[j, clusters], clusters, old, of_table[j])
                present = excess[clusters == old[:, None]]
                added[i] += float((excess[clusters == new[:, None]] - present).sum())
                moved[i].append((rows, new))
        best = int(np.argmin(added + np.asarray(charges)))
        if not surplus[best].any() or most is units:
            break
    for rows, new in moved[best]:
        labels[rows] = new
    # If the lists of clusters leave no way to move a point, it stays.
    return float(added[best]), (tables[best] + surplus[best]).astype(float)


def move_nearby(
    points: Points,
    criterion: Criterion,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    unit: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Move the points nearest to the boundaries so that the criterion's rows are met, or broken as little as possible.

    Labels and table are those of `Points.priced` at these prices, and `unit` is the scale of the potentials. Returns
    new ones, or the same if the program has no solution, and the increase of the sum of the labels' potentials.
    """
    # If there are many small groups, a table of counts says little about the cost, because a cell of two points may
    # have no point near a boundary. Here the labels of single points are the variables of a small program.
    group, rows, cost = _movable_rows(points, prices, labels, np.full(len(prices), _OF_BOUNDARY))
    present, each = labels[rows], np.arange(len(rows))
    regret = cost + prices[group]
    regret -= regret[each, present][:, None]
    regret[each, present] = np.inf
    # The points for which a change of cluster costs least, of all and of those of each boundary.
    chosen = np.zeros(len(rows), dtype=bool)
    chosen[np.argsort(regret.min(axis=1), kind="stable")[:_POINTS]] = True
    for k, other in permutations(range(prices.shape[1]), 2):
        inside = np.flatnonzero(present == k)
        chosen[inside[np.argsort(regret[inside, other], kind="stable")[:_OF_BOUNDARY]]] = True
    group, rows, cost = group[chosen], rows[chosen], cost[chosen]
    n_points = len(rows)
    present, each = labels[rows], np.arange(n_points)
    weight = np.ones(n_points) if points.weights is None else points.weights[rows]
    fixed = counts.copy()
    np.subtract.at(fixed, (group, present), weight)
    program = Program()
    paid = weight[:, None] * (cost - cost[each, present][:, None]) / unit
    program.variables("shares", paid, 0.0, 1.0, whole=True)
    program.rows(1.0, 1.0, shares=table_sums(paid.shape)[0])
    members = np.zeros((len(counts), n_points))
    members[group, each] = weight
    bound_table(program, criterion, "shares", members, fixed)
    criterion.work.program(program.n_entries)
    solution = program.solve(nodes=_NODES, gap=GAP, seconds=SECONDS)
    if solution is None:
        return labels, counts, 0.0
    new = solution.values["shares"].argmax(axis=1)
    moved = labels.copy()
    moved[rows] = new
    np.add.at(fixed, (group, new), weight)
    return moved, fixed, float((weight * (cost[each, new] - cost[each, present])).sum())


def _movable_rows(
    points: Points, prices: np.ndarray, labels: np.ndarray, units: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group, row and potentials of all points of `Points.movable`."""
    parts = list(points.movable(prices, labels, units))
    group = np.concatenate([np.full(len(rows), j) for j, rows, *_ in parts])
    rows = np.concatenate([rows for _, rows, *_ in parts])
    # Clusters that a point does not list are too expensive for it.
    cost = np.full((len(rows), prices.shape[1]), np.inf)
    first = 0
    for _, members, excess, listed in parts:
        of_group = cost[first : first + len(members)]
        np.put_along_axis(of_group, all_clusters(*excess.shape) if listed is None else listed, excess, axis=1)
        first += len(members)
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
        present, reduced = labels[rows[group == j]], cost[group == j] + prices[j]
        each = np.arange(len(present))
        regret = np.maximum(reduced - reduced[each, present][:, None], 0.0)
        regret[each, present] = np.inf
        least = regret.min(axis=1)
        # The sums of the least regrets of points that enter a cluster, and of those that leave it.
        sums = np.full((2, units[j] + 1, counts.shape[1]), np.inf)
        sums[:, 0] = 0.0
        entering = np.sort(regret, axis=0)[: units[j]]
        sums[0, 1 : len(entering) + 1] = entering.cumsum(axis=0)
        for k in range(counts.shape[1]):
            leaving = np.sort(least[present == k])[: units[j]]
            sums[1, 1 : len(leaving) + 1, k] = leaving.cumsum()
        paid[j] = sums[(change[j] < 0).astype(int), np.abs(change[j]), np.arange(counts.shape[1])[:, None]]
    return paid / (2 * unit)


def move_singly(
    points: Points, criterion: Criterion, prices: np.ndarray, labels: np.ndarray, counts: np.ndarray
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
    weights = np.ones(len(rows)) if points.weights is None else points.weights[rows]
    reduced = cost + prices[group]
    change = np.zeros((n_groups, len(rows)))
    change[group, each] = weights
    added = 0.0
    off, left, more = np.empty(n_clusters), np.empty(len(rows)), np.empty((len(rows), n_clusters))
    changed = np.arange(n_clusters)
    for _ in range(_MOST_MOVES * counts.size):
        # Only the clusters of the last move have other excesses now.
        present = labels[rows]
        off[changed] = criterion.excess_of(counts[:, changed], changed).sum(axis=0)
        leaving = np.flatnonzero(np.isin(present, changed))
        before = counts[:, present[leaving]] - change[:, leaving]
        left[leaving] = criterion.excess_of(before, present[leaving]).sum(axis=0) - off[present[leaving]]
        for k in changed:
            joined = counts[:, [k]] + change
            more[:, k] = criterion.excess_of(joined, np.full(len(rows), k)).sum(axis=0)
        worse = left[:, None] + more - off
        worse[each, present] = 0.0
        regret = weights[:, None] * np.maximum(reduced - reduced[each, present][:, None], 0.0)
        gain = np.where(
            worse < -_ROUNDING * counts.sum(),
            -worse / (regret + _FREE * (regret[np.isfinite(regret)].mean() or 1.0)),
            0.0,
        )
        p, k = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[p, k] <= 0:
            break
        changed = np.array([present[p], k])
        counts[group[p], present[p]] -= weights[p]
        counts[group[p], k] += weights[p]
        added += float(weights[p] * (cost[p, k] - cost[p, present[p]]))
        labels[rows[[p]]] = np.array([k])
    return added


class Labels(NamedTuple):
    """Labels with their cost and table, and the centres and prices from which they were found."""

    labels: Any  # An array, or `ChunkLabels` for rows in chunks
    cost: float
    counts: np.ndarray
    prototypes: Prototypes
    solved: Prices


def loose_labels(
    points: TiledPoints,
    criterion: Criterion,
    strict: Labels,
    starts: Iterable[Prototypes],
    codes: np.ndarray,
    *,
    update: Callable[[TiledPoints, np.ndarray, Prototypes], Prototypes],
    max_iter: int,
    tol: float,
) -> Labels:
    """Labels that are off the bounds by at most a point in every cell, if they are much cheaper than `strict`.

    They come from moving points at the same centres, or from moving points and centres in turn, from the same centres
    and from `starts`. The points are measured at the centres of the result, whose prices are those of `solve`.
    """
    best = strict
    at_once = _round_loosely(points, criterion, strict.prototypes, strict.solved)
    if at_once is not None and at_once.cost < (1 - _CHEAPER) * strict.cost:
        best = at_once
    moved: Labels | None = None
    for prototypes in (strict.prototypes, *starts):
        last = np.inf
        for _ in range(max_iter):
            points.measure(prototypes.centers)
            # These labels may miss the bounds by a point, so rough prices are enough here. `solve` goes on to lower
            # temperatures until its lower bound on the cost is tight, and takes up to thirty times as long.
            prices = dual_prices(points, criterion, levels=COLD)
            rounded = _round_loosely(points, criterion, prototypes, prices)
            if rounded is None:
                break
            costs = cdist(points.X, prototypes.centers)
            labels, cost, counts = move_cheaper(
                costs**2 if points.squared else costs, codes, rounded.labels, rounded.counts, criterion
            )
            if moved is None or cost < moved.cost * (1 - tol):
                moved = rounded._replace(labels=labels, cost=cost, counts=counts)
            if cost >= last * (1 - tol):
                break
            last, prototypes = cost, update(points, labels, prototypes)
    if moved is not None:
        worse = criterion.excess(moved.counts).max() > criterion.excess(best.counts).max() + _NO_WORSE
        if moved.cost < best.cost * (1 / _FAR_CHEAPER if worse else 1 - _CHEAPER):
            best = moved
    points.measure(best.prototypes.centers)
    return best._replace(solved=solve(points, criterion)) if best is moved else best


def _round_loosely(
    points: TiledPoints, criterion: Criterion, prototypes: Prototypes, solved: Prices
) -> Labels | None:
    """The cheapest labels at the current centres that are found in a table off by at most a point in every cell.

    If a point lies far from all others, `round_prices` may move it at a very high cost to remove an excess of less than
    a point. These labels avoid that.
    """
    labels, counts, cost, _ = points.priced(solved.prices)
    unit = temperature_unit(points)
    tables = [np.rint(counts), *tables_near(soft_table(solved), solved.prices / unit, criterion)]
    tables = [table for table in tables if criterion.excess(table).max() <= 1]
    if not tables:
        return None
    added, counts = move_to_table(points, solved.prices, labels, counts, tables)
    return Labels(labels, cost + added, counts, prototypes, solved)


def move_cheaper(
    costs: np.ndarray,
    codes: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    criterion: Criterion,
    *,
    as_fair: bool = False,
) -> tuple[np.ndarray, float, np.ndarray]:
    """Move one point after the other to a cheaper cluster, as long as every cell is off its bounds by at most a point.

    A move of another group between the same two clusters may be made with it, which keeps their shares. If a cell is
    off by more at the start, all cells may be off by that much. With `as_fair`, neither the largest excess nor the sum
    of all may grow. Returns labels, cost and table.
    """
    labels, counts = labels.astype(np.int32), counts.astype(float)
    n_groups, n_clusters = counts.shape
    members = [np.flatnonzero(codes == j) for j in range(n_groups)]
    allowed = max(0.0 if as_fair else 1.0, float(criterion.excess(counts).max())) + _MET
    # Smaller differences may be rounding errors.
    least = _FREE * float(costs.mean())
    # saved[j, k, l] is the most negative change of the cost if a point of group j moves from cluster k to l.
    saved = np.zeros((n_groups, n_clusters, n_clusters))
    point = np.full(saved.shape, -1)

    def look(j: int) -> None:
        change = costs[members[j]] - costs[members[j], labels[members[j]]][:, None]
        for k in range(n_clusters):
            inside = np.flatnonzero(labels[members[j]] == k)
            if len(inside):
                best = inside[change[inside].argmin(axis=0)]
                saved[j, k], point[j, k] = change[best, np.arange(n_clusters)], members[j][best]
            else:
                saved[j, k], point[j, k] = np.inf, -1
            saved[j, k, k] = np.inf

    for j in range(n_groups):
        look(j)
    for _ in range(_MOST_STEPS):
        change, group, old, new, other, sign = _cheaper_moves(saved, least)
        moved = np.eye(n_groups)[:, group] + sign * np.eye(n_groups)[:, other]
        columns = np.hstack([counts[:, old] - moved, counts[:, new] + moved])
        off = criterion.excess_of(columns, np.r_[old, new]).reshape(n_groups, 2, -1)
        is_allowed = off.max(axis=(0, 1)) <= allowed
        if as_fair:
            in_all = criterion.excess(counts).sum(axis=0)
            is_allowed &= off.sum(axis=(0, 1)) <= in_all[old] + in_all[new] + _MET
        within = np.flatnonzero(is_allowed)
        if not len(within):
            break
        best = within[change[within].argmin()]
        k, m = old[best], new[best]
        counts[:, k] -= moved[:, best]
        counts[:, m] += moved[:, best]
        moves = [(group[best], k, m)]
        if sign[best]:
            moves.append((other[best], k, m) if sign[best] > 0 else (other[best], m, k))
        for move in moves:
            labels[point[move]] = move[2]
        for move in moves:
            look(move[0])
    return labels, float(costs[np.arange(len(costs)), labels].sum()), counts


class _Moves(NamedTuple):
    """Single moves and pairs of moves between the same two clusters, each array of shape (n_moves,)."""

    change: np.ndarray  # of the cost
    group: np.ndarray  # of the point that goes from the cluster `old` to `new`
    old: np.ndarray
    new: np.ndarray
    other: np.ndarray  # the group of the second point of a pair
    sign: (
        np.ndarray
    )  # 1 if the second point goes from `old` to `new` too, -1 if it goes back, 0 if there is none


def _cheaper_moves(saved: np.ndarray, least: float) -> _Moves:
    """The moves of `move_cheaper` that lower the cost by more than `least`: first single ones, then pairs."""
    cheapest = np.argsort(saved, axis=None, kind="stable")[: int((saved < -least).sum())]
    group, old, new = np.unravel_index(cheapest, saved.shape)
    change = saved[group, old, new]
    j, k, m = group[:_PAIRED], old[:_PAIRED], new[:_PAIRED]
    paired = change[:_PAIRED] + np.stack([saved[:, k, m], saved[:, m, k]])
    paired[:, j, np.arange(len(j))] = np.inf
    back, other, first = np.nonzero(paired < -least)
    single = np.zeros(len(change), int)
    return _Moves(
        np.r_[change, paired[back, other, first]],
        np.r_[group, j[first]],
        np.r_[old, k[first]],
        np.r_[new, m[first]],
        np.r_[single, other],
        np.r_[single, 1 - 2 * back],
    )
