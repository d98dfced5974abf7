"""Round prices to labels whose group-by-cluster table meets the bounds.

The argmin at the prices is the cheapest of all assignments with the same table. That table violates the bounds by a few
points, which cost the same in two clusters. A mixed-integer program over J x K numbers finds an integer table nearby
that is within the bounds. For each group, a flow on the K clusters then moves points to this table at the least cost.
If a table says too little about the cost, a program (`move_nearby`) or a sequence of moves (`move_singly`) chooses
among the points near the boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from fairclust.kernels.flow import shortest_paths
from fairclust.kernels.weighted import WeightedPotentials
from fairclust.methods.price.criteria import Criterion
from fairclust.methods.price.prices import Prices, temperature_unit
from fairclust.solvers.points import Points
from fairclust.solvers.programs import SECONDS, Program, table_sums

# The search covers cells within _WINDOW of the soft table, and within _PER_EXCESS more for each point by which the
# soft table itself exceeds the bounds.
_WINDOW, _PER_EXCESS = 3, 2
# The search is limited by nodes instead of seconds, so that every machine finds the same table.
_MAX_NODES = 20
_TOLERANCE = 0.05
# If the rows cannot all be met, the objective adds these costs for each point of the largest excess and of the sum of
# all excesses.
_WORST, _ALL = 100.0, 10.0
# For exact shares of two groups, these limits on the deviation of a cell, in points, are tried in turn.
_MOST_OFF = 0.03, 0.06, 0.12, 0.25, 0.5, 1.0
# If the rows cannot all be met, tables with more cells than this are rounded by a flow only, which is fast and changes
# every cell by less than a point.
_SEARCHED_CELLS = 30
# Above this many cells, only the cluster sizes are rounded first, because a search over all tables takes seconds.
_LARGE = 300
# Cluster sizes up to _NEAR_SIZES below and above the soft sizes are tried, and then cells within _NEAR_CELLS of the
# soft table. The squared distance of a size costs _FAR_SIZES divided by the mean size, because in larger clusters the
# points that move lie closer to a boundary.
_NEAR_SIZES, _NEAR_CELLS, _FAR_SIZES = 40, 20, 3.0
# Numbers below these are rounding errors, here and in HiGHS.
_NEAR, _MET = 1e-9, 1e-5
# `move_nearby`: _POINTS points can move, and in addition the nearest _OF_BOUNDARY of each pair of clusters, in a search
# of at most _NODES nodes.
_POINTS, _OF_BOUNDARY, _NODES = 40, 2, 50
# `move_singly`: the number of points of each group that can move at each boundary, and the most moves for each cell of
# the table.
_NEARBY, _MOST_MOVES = 6, 10
# With fewer than _FEW points per cell of the table, `move_nearby` chooses single points. With more than _FEW_ROWS
# multipliers it is not tried, because it would take long.
# With more than _FEW_CLUSTERS clusters it is not tried either, because there are points at every boundary.
_FEW, _FEW_ROWS, _FEW_CLUSTERS = 20, 200, 12
# With more helpers in all clusters than this, mixed-integer programs take minutes.
_MOST_HELPERS = 100
# This fraction of the mean regret is added to every regret, so that none is zero.
_FREE = 1e-6
_PRICED = 0.2


def round_prices(
    points: Points, criterion: Criterion, solved: Prices
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Labels within the bounds, obtained from the argmin at the prices by moving few points.

    Returns them with the sum of their potentials, their table, and the least of `Potentials.priced`.
    """
    labels, counts, cost, least = points.priced(solved.prices)
    unit = temperature_unit(points)
    weights = points.weights if isinstance(points, WeightedPotentials) else None
    soft, prices = soft_table(solved), solved.prices / unit

    def moved(labels: Any, counts: np.ndarray, tables: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
        # The prices do not show how much it costs to move points that lie far from all others, so a table is chosen by
        # what it costs.
        charges = [_WORST * unit * float(criterion.excess(table).max()) for table in tables]
        return move_to_table(points, solved.prices, labels, counts, tables, charges)

    nearby = None
    small = (
        criterion.combined
        and solved.multipliers.size <= _FEW_ROWS
        and counts.shape[1] <= _FEW_CLUSTERS
        and points.n_samples < _FEW * counts.size
    )
    if small:
        nearby = move_nearby(points, criterion, solved.prices, labels, counts, unit, weights)
        if criterion.excess(nearby[1]).max() <= _accepted(criterion):
            return nearby[0], cost + nearby[2], nearby[1], least
    if weights is not None:
        added = move_singly(points, criterion, solved.prices, labels, counts, weights)
    elif criterion.helpers.shape[1] * counts.shape[1] > _MOST_HELPERS:
        free, table = (labels.copy(), counts.copy()), flow_table(soft, prices, criterion)
        added, counts = moved(labels, counts, [np.rint(counts) if table is None else table])
        added += move_singly(points, criterion, solved.prices, labels, counts)
        # Single moves are chosen one after the other, so other moves to the same table can cost less.
        again, _ = moved(*free, [np.rint(counts)])
        if again < added:
            labels, added = free[0], again
    else:
        tables = integer_tables(soft, prices, criterion, solved.multipliers / unit)
        added, counts = moved(labels, counts, tables)
    if nearby is not None and criterion.excess(nearby[1]).max() <= criterion.excess(counts).max():
        labels, counts, added = nearby
    return labels, cost + added, counts, least


def soft_table(solved: Prices) -> np.ndarray:
    """The table at the prices, scaled so that its rows sum to whole numbers, the sizes of the groups."""
    totals = solved.mass.sum(axis=1, keepdims=True)
    return solved.mass * (np.rint(totals) / totals)


def _accepted(criterion: Criterion) -> float:
    """The excess with which a table counts as within the bounds: a point if some are equalities, else a rounding error.

    Whole points can rarely meet equalities.
    """
    return 1.0 if criterion.exact.any() else _MET


def integer_tables(
    soft: np.ndarray, prices: np.ndarray, criterion: Criterion, multipliers: np.ndarray
) -> list[np.ndarray]:
    """The cheapest integer table that was found within the bounds, or several near the soft one if none was.

    `prices` say how much one more point in a cell saves, in units of the mean gap of the potentials, and `multipliers`
    how much a row's limit, raised by one, saves.
    """
    tables: list[np.ndarray | None] = []
    if not criterion.equal:
        large = criterion.combined or soft.size > _LARGE
        if large:
            sizes = _whole_sizes(criterion, multipliers, soft.sum(axis=0), int(np.rint(soft.sum())))
            tables.append(None if sizes is None else _search(soft, prices, criterion, sizes=sizes))
        if not large or soft.size <= _SEARCHED_CELLS:
            tables.append(_search(soft, prices, criterion, strict=True))
        accepted = _accepted(criterion)
        good = [table for table in tables if table is not None and criterion.excess(table).max() <= accepted]
        if good:
            return [max(good, key=lambda table: float((prices * table).sum()))]
    return [table for table in tables if table is not None] + tables_near(soft, prices, criterion)


def tables_near(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> list[np.ndarray]:
    """Integer tables near the soft one that exceed the bounds by little, mostly by less than a point in any cell."""
    tables = [flow_table(soft, prices, criterion)]
    if soft.size <= _SEARCHED_CELLS and criterion.equal and len(soft) == 2:
        tables.append(_shares_of_two(soft, prices, criterion.high))
    elif soft.size <= _SEARCHED_CELLS:
        tables.append(_search(soft, prices, criterion))
    return [table for table in tables if table is not None]


def _whole_sizes(
    criterion: Criterion, multipliers: np.ndarray, soft: np.ndarray, total: int
) -> np.ndarray | None:
    """Whole cluster sizes near the soft sizes, chosen so that rounding the bounds to whole points costs least.

    At some cluster size a row may allow 12.9 points. Only 12 of them can be used, and the loss is 0.9 times the row's
    multiplier. Dynamic programming finds the sizes that have the right total and the least sum of losses. Returns None
    if no sizes near the soft sizes are within the bounds.
    """
    factors = criterion.factors
    n_clusters = len(soft)
    alone = factors.value < 0
    limits = np.broadcast_to(criterion.limits, (len(factors.value), n_clusters))
    tried = np.floor(soft + _NEAR)[:, None] + np.arange(-_NEAR_SIZES, _NEAR_SIZES + 2)
    left = limits[:, :, None] - factors.size[:, None, None] * tried
    lost = np.where(_of_whole_numbers(criterion), left - np.floor(left + _NEAR), 0.0)
    # For a bound on the size itself, the loss is the whole unused part of the bound.
    lost[alone] = left[alone]
    # The multipliers predict the loss only near the soft sizes, so the distance to these costs something too.
    far = _FAR_SIZES * n_clusters / total
    loss = (multipliers[:, :, None] * lost).sum(axis=0) + far * (tried - soft[:, None]) ** 2
    loss[(left[alone] < -_NEAR).any(axis=0) | (tried < 0)] = np.inf
    first = tried[:, 0].astype(int)
    most = int(total - first.sum())
    if most < 0:
        return None
    # best[t] is the least loss of the clusters so far, if their sizes sum to t more than their smallest sizes.
    best, steps = np.full(most + 1, np.inf), []
    best[0] = 0.0
    for of_cluster in loss:
        options = np.full((len(of_cluster), most + 1), np.inf)
        for step, value in enumerate(of_cluster[: most + 1]):
            options[step, step:] = best[: most + 1 - step] + value
        steps.append(options.argmin(axis=0))
        best = options.min(axis=0)
    if not np.isfinite(best[most]):
        return None
    sizes = first.astype(float)
    for k in reversed(range(n_clusters)):
        step = int(steps[k][most])
        sizes[k] += step
        most -= step
    return sizes


def _of_whole_numbers(criterion: Criterion) -> np.ndarray:
    """Which rows are inequalities on a whole number of points, as booleans of shape (n_rows, 1, 1)."""
    factors = criterion.factors
    values = np.vstack([factors.values, np.zeros(factors.values.shape[1])])
    whole = np.all(np.isin(values, (0, 1)), axis=1)[factors.value] & ~criterion.helpers.any(axis=1)
    return (whole & (factors.value >= 0) & ~criterion.exact & (np.abs(factors.sign) == 1))[:, None, None]


def flow_table(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> np.ndarray | None:
    """Round every cell up or down, so that the row sums stay the same and the column sums are rounded up or down too.

    This is a flow problem, so the vertices of its linear program are whole numbers. For exact shares, the cells are
    first set to the shares of whole cluster sizes. Rounding then changes each by less than a point.
    """
    totals = np.rint(soft.sum(axis=1))
    sizes = np.floor(soft.sum(axis=0) + 1e-9)
    missing = int(totals.sum() - sizes.sum())
    sizes[np.argsort(sizes - soft.sum(axis=0), kind="stable")[:missing]] += 1
    if criterion.equal:
        soft = np.outer(totals / totals.sum(), sizes)
    down = np.floor(soft + 1e-9)
    part = soft - down
    up = (part > 1e-9).astype(float)
    # With the fourth power, large deviations count most. The prices decide between deviations of about the same size.
    cost = np.abs(1 - part) ** 4 - np.abs(part) ** 4 - _PRICED * prices
    rows, columns = table_sums(soft.shape)
    in_rows, sums = totals - down.sum(axis=1), part.sum(axis=0)
    # If no rounding of the cells has these sizes, some rounding has sizes that are rounded up or down otherwise.
    exactly = sizes - down.sum(axis=0)
    for least, most in (exactly, exactly), (np.floor(sums + 1e-9), np.ceil(sums - 1e-9)):
        program = Program()
        program.variables("up", cost, 0.0, up)
        program.rows(in_rows, in_rows, up=rows)
        program.rows(least, most, up=columns)
        found = program.solve()
        if found is not None:
            return (down + np.rint(found.values["up"])).astype(np.int64)
    return None


def _shares_of_two(soft: np.ndarray, prices: np.ndarray, shares: np.ndarray) -> np.ndarray | None:
    """The integer table near the soft one whose clusters are closest to the shares of two groups.

    It is found by dynamic programming over the clusters. The state is the number of points of both groups so far, and
    excess and cost are weighed as in `_search`. Returns None if no table in the window is within a point of the shares.
    """
    n_clusters = soft.shape[1]
    down, shifts = np.floor(soft + _NEAR), np.arange(-_WINDOW, _WINDOW + 2)
    counts = down[:, :, None] + shifts
    far = 2 / (1 + soft[:, :, None]) * np.abs(counts - soft[:, :, None])
    of_cell = np.where(counts < 0, np.inf, far - prices[:, :, None] * (counts - soft[:, :, None]))
    off = np.abs(shares[1] * counts[0][:, :, None] - shares[0] * counts[1][:, None, :])
    # A cluster has two cells, and the excess of both is the same.
    costs = of_cell[0][:, :, None] + of_cell[1][:, None, :] + 2 * _ALL * off
    first, second = (np.rint((soft - down).sum(axis=1)) + _WINDOW * n_clusters).astype(int)
    found: list[tuple[float, np.ndarray]] = []
    for most in _MOST_OFF:
        # best[i, j] is the least cost of the clusters so far, if they have i and j points more than the fewest.
        best, steps = np.full((first + 1, second + 1), np.inf), []
        best[0, 0] = 0.0
        for k in range(n_clusters):
            new, step = np.full_like(best, np.inf), np.zeros(best.shape, np.int16)
            for i, j in np.argwhere((off[k] <= most) & np.isfinite(costs[k])):
                if i > first or j > second:
                    continue
                trial = best[: first + 1 - i, : second + 1 - j] + costs[k, i, j]
                lower = trial < new[i:, j:]
                new[i:, j:][lower] = trial[lower]
                step[i:, j:][lower] = i * len(shifts) + j
            best = new
            steps.append(step)
        if np.isfinite(best[first, second]):
            table, at = down.copy(), [first, second]
            for k in reversed(range(n_clusters)):
                pair = divmod(int(steps[k][tuple(at)]), len(shifts))
                table[:, k] += shifts[list(pair)]
                at = [at[0] - pair[0], at[1] - pair[1]]
            worst = float(np.abs(shares[1] * table[0] - shares[0] * table[1]).max())
            found.append((best[first, second] + _WORST * worst, table))
        if len(found) == 3:
            break
    return min(found, key=lambda pair: pair[0])[1].astype(np.int64) if found else None


def _search(
    soft: np.ndarray,
    prices: np.ndarray,
    criterion: Criterion,
    *,
    sizes: np.ndarray | None = None,
    strict: bool = False,
) -> np.ndarray | None:
    """The best integer table near the soft one, by a mixed-integer program; None if none is found.

    If `strict`, the table must meet all rows. With `sizes`, the clusters have these sizes, and nearly all vertices of
    the linear program are integers. With one column all of them are, because the program is a flow.
    """
    window = _NEAR_CELLS if sizes is not None else _WINDOW + _PER_EXCESS * int(criterion.excess(soft).max())
    program = Program()
    in_group = np.rint(soft.sum(axis=1))
    # Subtracting a constant from each group's prices does not change which table is best. It makes the objective
    # smaller, and HiGHS's tolerance is a fraction of the objective.
    by_group = (soft * prices).sum(axis=1, keepdims=True) / in_group[:, None]
    low, high = np.maximum(np.floor(soft) - window, 0), np.ceil(soft) + window
    program.variables("table", by_group - prices, low, high, whole=True)
    # In a cell with many points, those that move lie close to a boundary, so a larger distance is allowed.
    program.variables("far", 2 / (1 + soft))
    cells = sparse.eye_array(soft.size)
    of_groups, of_clusters = table_sums(soft.shape)
    program.rows(in_group, in_group, table=of_groups)
    if sizes is not None:
        program.rows(sizes, sizes, table=of_clusters)
    program.rows(-np.inf, soft, table=cells, far=-cells)
    program.rows(-np.inf, -soft, table=-cells, far=-cells)
    _bound(program, criterion, "table", np.eye(len(soft)), np.zeros(soft.shape), sizes=sizes, strict=strict)
    criterion.work.program(program.n_entries)
    found = program.solve(nodes=_MAX_NODES, gap=_TOLERANCE, seconds=SECONDS)
    return None if found is None else np.rint(found.values["table"]).astype(np.int64)


def _bound(
    program: Program,
    criterion: Criterion,
    name: str,
    members: np.ndarray,
    fixed: np.ndarray,
    *,
    sizes: np.ndarray | None = None,
    strict: bool = False,
) -> None:
    """Bound the table ``fixed + members @ variables``, for variables `name` of shape (n, n_clusters).

    Unless `strict`, the bounds may be exceeded at a cost. `sizes` are those of the clusters if they are fixed.
    """
    sides, most, helpers = _sides(criterion, fixed.shape[1]) if sizes is None else _at_sizes(criterion, sizes)
    most = most - sides @ fixed
    each, over = sparse.eye_array(fixed.shape[1]), sparse.eye_array(most.size)
    program.variables("helpers", np.zeros((helpers.shape[1], fixed.shape[1])), -np.inf)
    highest = 0.0 if strict else np.inf
    program.variables("excess", np.full(most.shape, _ALL), 0.0, highest)
    program.variables("worst", np.array([_WORST]), 0.0, highest)
    matrix = {name: sparse.kron(sides @ members, each), "helpers": sparse.kron(helpers, each)}
    program.rows(-np.inf, most, **matrix, excess=-over)
    program.rows(-np.inf, 0.0, excess=over, worst=-np.ones((most.size, 1)))


def _sides(criterion: Criterion, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows on a table as inequalities, with their limits and helpers. An equality is a bound on both sides."""
    rows, helpers, exact = criterion.rows, criterion.helpers, criterion.exact
    limits = np.broadcast_to(criterion.limits, (len(rows), n_clusters))
    if criterion.equal:
        # Add the row of the last group, which the criterion leaves out.
        rows, limits = np.vstack([rows, -rows.sum(axis=0)]), np.zeros((len(rows) + 1, n_clusters))
        helpers, exact = np.empty((len(rows), 0)), np.ones(len(rows), bool)
    sides, helpers = np.vstack([rows, -rows[exact]]), np.vstack([helpers, -helpers[exact]])
    return sides, np.vstack([limits, -limits[exact]]), helpers


def _at_sizes(criterion: Criterion, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_sides` for clusters of these sizes, where each row bounds a sum of cells by a whole number."""
    factors = criterion.factors
    limits = np.broadcast_to(criterion.limits, (len(factors.value), len(sizes)))
    own = np.flatnonzero(factors.value >= 0)
    values, exact = factors.values[factors.value[own]], criterion.exact[own]
    scale = np.abs(factors.sign[own])[:, None]
    helpers = criterion.helpers[own] / scale
    # Divided by the magnitude of its sign, a row bounds the number of points of a value. That is a whole number, so the
    # bound is rounded to one.
    most = (limits - factors.size[:, None] * sizes)[own] / scale
    whole = ~helpers.any(axis=1) & np.isin(values, (0, 1)).all(axis=1)
    up, down = np.ceil(most - _NEAR), np.floor(most + _NEAR)
    rounded = np.where(exact[:, None], up, np.where(whole[:, None], down, most))
    rows = np.sign(factors.sign[own])[:, None] * values
    return (
        np.vstack([rows, -rows[exact]]),
        np.vstack([rounded, -down[exact]]),
        np.vstack([helpers, -helpers[exact]]),
    )


def move_to_table(
    points: Points,
    prices: np.ndarray,
    labels: np.ndarray,
    counts: np.ndarray,
    tables: Sequence[np.ndarray],
    charges: ArrayLike = 0.0,
) -> tuple[float, np.ndarray]:
    """Change labels in place until their counts are those of one of the tables; returns the cost and the table.

    The table for which the least cost of moving points plus its charge is least is chosen. The labels are those that
    `Points.priced` returns for these prices.
    """
    if not tables:
        raise RuntimeError("HiGHS found no integer table")
    surplus = [(counts - table).astype(np.int64) for table in tables]
    units = np.max([np.maximum(of_table, 0).sum(axis=1) for of_table in surplus], axis=0)
    added, moved = np.zeros(len(tables)), [[] for _ in tables]
    for j, rows, excess in points.movable(prices, labels, units):
        old, each = labels[rows].astype(np.int64), np.arange(len(rows))
        for i, of_table in enumerate(surplus):
            new = shortest_paths(excess + prices[j], old, of_table[j].copy())
            added[i] += float((excess[each, new] - excess[each, old]).sum())
            moved[i].append((rows, new))
    best = int(np.argmin(added + charges))
    for rows, new in moved[best]:
        labels[rows] = new
    return float(added[best]), tables[best].astype(float)


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
    _bound(program, criterion, "shares", members, fixed)
    criterion.work.program(program.n_entries)
    found = program.solve(nodes=_NODES, gap=_TOLERANCE, seconds=SECONDS)
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
    group, rows, cost = _movable_rows(points, prices, labels, _OF_BOUNDARY)
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
    points: Points, prices: np.ndarray, labels: np.ndarray, units: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`Points.movable` with the same number of `units` for all groups: group, row and potentials of the points."""
    found = list(points.movable(prices, labels, np.full(len(prices), units)))
    group = np.concatenate([np.full(len(rows), j) for j, rows, _ in found])
    rows, cost = (np.concatenate([item[i] for item in found]) for i in (1, 2))
    return group, rows, cost


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
    group, rows, cost = _movable_rows(points, prices, labels, _NEARBY)
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
            worse < -_NEAR * counts.sum(), -worse / (regret + _FREE * (regret.mean() or 1.0)), 0.0
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
