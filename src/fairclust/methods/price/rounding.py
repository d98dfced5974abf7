"""Round prices to labels whose group-by-cluster table meets the bounds.

The argmin at the prices is the cheapest of all assignments with the same table. That table violates the bounds by a few
points, which cost about the same in two clusters. `move_points` moves single points and pairs of points between
clusters, as long as their cost plus what violations are charged falls. With many points for each cell of the table, or
many equal points, the soft table of the prices is first rounded to whole numbers, and a flow on the K clusters moves
the points of each group to the rounded table at the least cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairclust.kernels.flow import shortest_paths
from fairclust.kernels.points import Points, TiledPoints
from fairclust.solvers.alternation import Run
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.prices import Prices, lower_bound, solve, temperature_unit
from fairclust.solvers.programs import Program, table_sums

# With fewer points for each cell and at most _FEW_CELLS cells, every point may move, and no table is rounded first.
_FEW_TO_MOVE, _FEW_CELLS = 50, 300
# In other cases, this many points of each group may move at each boundary, and one more for each point by which the
# table exceeds its bounds, or as many as a flow needs.
_NEARBY = 10
# If a cell of the argmin's table is off the soft table by more points, many points are equally cheap in two clusters,
# and a flow divides them. It counts in mean weights, so up to _FEW_TIED points with weights try the moves alone, too.
_TIED, _FEW_TIED = 2, 10_000
# With this many clusters, at most _FEW_MOVED points may move at each boundary, each to its _FEW_ENTERED cheapest
# clusters.
_MANY_CLUSTERS, _FEW_MOVED, _FEW_ENTERED = 64, 32, 16
# What violations are charged, in units of the mean gap of the potentials: for `_burden` of the largest excess, for the
# sum of all burdens, and at the end for each cluster with an excess, unless some bounds are equalities, which whole
# points rarely meet.
_WORST, _ALL, _ANY = 100.0, 3.0, 100.0
# If labels are off bounds on sizes by a point or more, the charge is raised by this factor, so many times at most.
_RAISED, _RAISES = 1e3, 4
# Smaller burdens are rounding errors, and so are smaller changes of the cost, in units of the mean potential. If a
# cluster lies far from all others, this mean is large, and _FAR times the mean gap replaces it. _ERROR is the rounding
# error of a potential, relative to the largest one.
_MET, _CHEAPER, _FAR, _ERROR = 1e-10, 1e-6, 1e4, 1e-14
# `move_points` takes at most _MOST_STEPS steps. Pairs move only if the square of the number of cells, or with weights
# that times the number of groups, is at most _MOST_PAIRS. The tables that pairs would leave must also have at most
# _MOST_ENTRIES entries, so that each array of them takes no more than 32 MB.
_MOST_STEPS, _MOST_PAIRS, _MOST_ENTRIES = 2000, 1 << 20, 1 << 22
# The weight of the prices in `whole_table`, beside deviations of up to one point to the fourth power.
_PRICED = 0.2
# With fewer points for each cell of the table, labels within the bounds can cost much more than the soft assignment,
# and runs are compared by their labels.
_FEW_FOR_PRICES = 200
# A run is compared with a cheaper one if it can save more than this fraction.
_WORTH = 2e-3


def round_prices(
    points: Points, criterion: Criterion, solved: Prices, unit: float = 0.0
) -> tuple[Any, float, np.ndarray]:
    """Labels within the bounds, obtained from the argmin at the prices by moving few points.

    Returns them with the sum of their potentials and their table. Violations are charged in multiples of `unit`, by
    default that of the temperatures.
    """
    labels, counts, cost, _ = points.priced(solved.prices)
    n_groups, n_clusters = counts.shape
    if n_clusters == 1:
        return labels, cost, counts
    unit, table = unit or temperature_unit(points), counts
    few = counts.size <= _FEW_CELLS and points.n_samples < _FEW_TO_MOVE * counts.size and points.lists is None
    heaviest = 1.0 if points.weights is None else points.weights.max()
    # The argmin puts all equal points of a group into one cluster.
    tied = np.abs(counts - solved.mass).max() > _TIED * heaviest
    if points.weights is None and (tied or not few):
        table = whole_table(solved.mass, solved.prices / temperature_unit(points), criterion)
    elif tied:
        table = solved.mass
    units = np.full(n_groups, points.n_samples)
    if not few:
        least = _NEARBY + int(criterion.excess(table).max())
        units = np.maximum(np.maximum(counts - table, 0).sum(axis=1).astype(int), least)
    near, found = _near(points, solved.prices, labels, units), []
    # Sometimes the moves end at better labels without the flow.
    both = tied and (few or (points.weights is not None and points.n_samples <= _FEW_TIED))
    for wanted in (table, counts) if both else (table,):
        near = near._replace(labels=labels[near.rows].astype(np.int64))
        added, moved = _flow(near, solved.prices, counts, wanted)
        more, moved = move_points(near, criterion, moved, unit)
        if n_clusters >= _MANY_CLUSTERS and points.weights is None:
            # Moves that are not chained leave labels that are not the cheapest ones with their counts.
            near.labels[:] = labels[near.rows]
            added, moved = _flow(near, solved.prices, counts, moved)
            more, moved = move_points(near, criterion, moved, unit)
        found.append((cost + added + more, moved, near))
    total, moved, near = min(found, key=lambda end: _charged(end[0], end[1], criterion, unit))
    # Bounds on sizes, whose rows count all groups alike, are kept whatever they cost. Bounds on groups, which a few far
    # points can make many times as expensive, may be exceeded by points.
    bounds_sizes = bool((np.ptp(criterion.rows, axis=1) == 0).any())
    for _ in range(_RAISES if bounds_sizes else 0):
        if criterion.excess(moved).max() < max(1.0, near.weights.max()):
            break
        unit *= _RAISED
        more, moved = move_points(near, criterion, moved, unit)
        total += more
    labels[near.rows] = near.labels
    return labels, total, moved


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
            cost = _charged(cost, counts, criterion, temperature_unit(points))
        # Starts with the same result differ by rounding errors, which must not choose between them.
        if best is None or cost < best[0] * (1 - tol):
            best = cost, run, prices
    assert best is not None
    return best[1:]


def whole_table(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> np.ndarray:
    """Round every cell up or down, so that the rows sum to the sizes of the groups and the columns to rounded sums.

    This is a flow problem, so the vertices of its linear program are whole numbers. For exact shares, the cells are
    first set to the shares of whole cluster sizes. Rounding then changes each by less than a point.
    """
    totals = np.rint(soft.sum(axis=1))
    soft = soft * (totals / soft.sum(axis=1))[:, None]
    sizes = np.floor(soft.sum(axis=0) + 1e-9)
    missing = int(totals.sum() - sizes.sum())
    sizes[np.argsort(sizes - soft.sum(axis=0), kind="stable")[:missing]] += 1
    if criterion.shares is not None:
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
        solution = program.solve()
        if solution is not None:
            return (down + np.rint(solution.values["up"])).astype(np.int64)
    raise RuntimeError(f"HiGHS found no integer table: {program.message}")


class Near(NamedTuple):
    """Points that may move, and the clusters to which each may move, its own included."""

    group: np.ndarray  # (n_points,)
    rows: np.ndarray  # (n_points,)
    weights: np.ndarray  # (n_points,)
    clusters: np.ndarray  # (n_points, n_listed)
    costs: np.ndarray  # (n_points, n_listed); the potentials in these clusters, minus the least one
    labels: np.ndarray  # (n_points,); changed by the functions that move points


def _near(points: Points, prices: np.ndarray, labels: np.ndarray, units: np.ndarray) -> Near:
    """The points of `Points.movable`, with the labels of `Points.priced`."""
    n_clusters = prices.shape[1]
    many = n_clusters >= _MANY_CLUSTERS
    most = np.minimum(units, _FEW_MOVED) if many else units
    rows, group, costs, *listed = points.movable(prices, labels, most)
    if listed:
        clusters = listed[0]
    elif many:
        reduced = costs + prices[group]
        # With equal costs, the cluster of the label must be among the cheapest.
        np.put_along_axis(reduced, labels[rows].astype(np.int64)[:, None], -np.inf, axis=1)
        clusters = np.argpartition(reduced, _FEW_ENTERED, axis=1)[:, :_FEW_ENTERED].astype(np.int32)
        costs = np.take_along_axis(costs, clusters, axis=1)
    else:
        clusters = np.tile(np.arange(n_clusters, dtype=np.int32), (len(rows), 1))
    weights = np.ones(len(rows)) if points.weights is None else points.weights[rows]
    return Near(group, rows, weights, clusters, costs, labels[rows].astype(np.int64))


def _flow(near: Near, prices: np.ndarray, counts: np.ndarray, table: np.ndarray) -> tuple[float, np.ndarray]:
    """Change the labels until their counts are those of the table; returns the cost and the new counts.

    The labels must be the cheapest ones at these prices. If no path is left to move a point, it stays. Points with
    weights move as if all had the mean weight of their group.
    """
    surplus, counts, added = counts - table, counts.astype(float), 0.0
    for j in np.flatnonzero(surplus.any(axis=1)):
        mine = near.group == j
        here = Near(*(part[mine] for part in near))
        too_many = np.rint(surplus[j] / here.weights.mean()).astype(np.int64)
        new = shortest_paths(here.costs + prices[j, here.clusters], here.clusters, here.labels, too_many)
        paid, saved = (here.costs[here.clusters == labels[:, None]] for labels in (new, here.labels))
        added += float((here.weights * (paid - saved)).sum())
        gained, lost = (np.bincount(labels, here.weights, counts.shape[1]) for labels in (new, here.labels))
        counts[j] += gained - lost
        near.labels[mine] = new
    return added, counts


def move_points(
    near: Near, criterion: Criterion, counts: np.ndarray, unit: float
) -> tuple[float, np.ndarray]:
    """Change labels as long as their cost plus what violations are charged falls; returns the cost and the new counts.

    A step moves one point, or two points of different groups between the same two clusters. `unit` is that of
    `temperature_unit`. The labels must be the cheapest ones with these counts.
    """
    moves, counts, added = _Moves(near, counts.shape, unit), counts.astype(float), 0.0
    n_groups, n_clusters = counts.shape
    any_excess = 0.0

    def charges(columns: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The largest burden of each column, (n_groups, ...), of the table, and what else it is charged."""
        of_columns = np.broadcast_to(clusters, columns.shape[1:]).ravel()
        excess = criterion.excess_of(columns.reshape(n_groups, -1), of_columns).reshape(columns.shape)
        burden = _burden(excess)
        worst = burden.max(axis=0)
        return worst, unit * (_ALL * burden.sum(axis=0) + any_excess * (worst > _MET))

    each, total, one_by_one = np.arange(n_clusters), np.inf, n_clusters < _MANY_CLUSTERS
    # The charges of the old and of the new cluster after every move. Those of a cluster change only with its counts,
    # and with weights also with the points that would move from or to it. `stale` clusters are charged again.
    width, stale = (n_clusters if moves.weighted else 1), each
    old = np.empty((2, moves.n_kinds, n_clusters, width))
    new = np.empty((2, moves.n_kinds, width, n_clusters))
    for _ in range(_MOST_STEPS):
        worst, charged = charges(counts, each)
        # Several moves in a step that are each cheaper alone can be dearer together, and undo each other for ever.
        before, total = total, added + float(charged.sum()) + unit * _WORST * float(worst.max())
        one_by_one = one_by_one or total >= before
        cost, moved = moves.tried()
        leaving, entering = (moved[:, :, stale], moved[..., stale]) if moves.weighted else (moved, moved)
        old[:, :, stale] = charges(counts[:, None, stale, None] - leaving, stale[:, None])
        new[..., stale] = charges(counts[:, None, None, stale] + entering, stale)
        if moves.weighted and len(stale) < n_clusters:
            # The next point to move from or to a stale cluster may be another one now, and have another weight.
            old[..., stale] = charges(counts[:, None, :, None] - entering, each[:, None])
            new[:, :, stale] = charges(counts[:, None, None] + leaving, each)
        (old_worst, old_charged), (new_worst, new_charged) = old, new
        most = np.maximum(np.maximum(old_worst, new_worst), _largest_of_others(worst))
        change = cost + old_charged + new_charged - charged[:, None] - charged
        change += unit * _WORST * (most - worst.max())
        lower = np.flatnonzero(change < -moves.least)
        if not len(lower):
            if any_excess or criterion.exact.any() or worst.max() <= _MET:
                break
            # At first, small violations are left where they save cost. Now most of them are removed.
            any_excess, total, stale = _ANY, np.inf, each
            continue
        lower = lower[np.argsort(change.flat[lower], kind="stable")]
        taken = np.zeros(n_clusters, bool)
        for place in lower[:1] if one_by_one else lower:
            kind, k, m = np.unravel_index(place, change.shape)
            if taken[k] or taken[m]:
                continue
            taken[[k, m]] = True
            shift = np.broadcast_to(moved, (n_groups, *change.shape))[:, kind, k, m]
            counts[:, k] -= shift
            counts[:, m] += shift
            added += float(cost[kind, k, m])
            moves.make(kind, k, m)
        stale = np.flatnonzero(taken)
        moves.look_again()
    return added, counts


def _charged(cost: float, counts: np.ndarray, criterion: Criterion, unit: float) -> float:
    """The cost plus what the largest violation is charged."""
    return cost + _WORST * unit * float(_burden(criterion.excess(counts)).max())


def _burden(excess: np.ndarray) -> np.ndarray:
    """Excesses with parts of a point squared, because parts that whole points cannot avoid are worth little cost."""
    return np.where(excess < 1, excess**2, 2 * excess - 1)


def _largest_of_others(values: np.ndarray) -> np.ndarray:
    """For each two of the values, shape (n, n), the largest of all others; 0 if there are none."""
    rest = np.zeros((len(values), len(values)))
    for k in np.argsort(-values)[2::-1]:
        others = np.arange(len(values)) != k
        rest[np.ix_(others, others)] = values[k]
    return rest


class _Moves:
    """The cheapest move of a point of each group from each cluster to each other one, and pairs of these.

    Without weights and with few clusters, a move may be a chain: a point goes to a third cluster, and another point
    from there to the end. The labels then stay the cheapest ones with their counts.
    """

    def __init__(self, near: Near, shape: tuple[int, int], unit: float) -> None:
        (n_groups, n_clusters), self._near = shape, near
        costs = np.abs(near.costs)
        self.least = max(_CHEAPER * min(float(costs.mean()), _FAR * unit), _ERROR * float(costs.max()))
        self._members = [np.flatnonzero(near.group == j) for j in range(n_groups)]
        self.weighted = bool((near.weights != 1).any())
        self._chained = n_clusters < _MANY_CLUSTERS and not self.weighted
        # The cost, the point that leaves the old cluster, and the cluster to which it goes.
        self._cost = np.empty((n_groups, n_clusters, n_clusters))
        self._point, self._first = np.empty((2, *self._cost.shape), int)
        self._changed = set(range(n_groups))
        self.look_again()
        # The groups of two points that move together. Points of a group that change places matter if weights differ.
        few = n_groups**2 * n_clusters**2 * (n_groups if self.weighted else 1) <= _MOST_PAIRS
        few = few and n_groups**3 * n_clusters <= _MOST_ENTRIES
        self._pairs = np.array(np.triu_indices(n_groups if few else 0, 0 if self.weighted else 1))
        self.n_kinds = n_groups + 2 * self._pairs.shape[1]

    def look_again(self) -> None:
        """Find the cheapest moves of the groups whose labels have changed."""
        near, n_clusters = self._near, self._cost.shape[1]
        for j in self._changed:
            members = self._members[j]
            labels, clusters, costs = near.labels[members], near.clusters[members], near.costs[members]
            present = clusters == labels[:, None]
            change = (costs - costs[present][:, None]) * near.weights[members][:, None]
            change[present] = np.inf
            move, of = (
                labels[:, None] * n_clusters + clusters,
                np.broadcast_to(members[:, None], change.shape),
            )
            cost, point = np.full(n_clusters**2, np.inf), np.zeros(n_clusters**2, int)
            np.minimum.at(cost, move, change)
            is_least = change == cost[move]
            point[move[is_least]] = of[is_least]
            self._cost[j], self._point[j] = cost.reshape(-1, n_clusters), point.reshape(-1, n_clusters)
            self._first[j] = np.arange(n_clusters)
            if self._chained:
                self._chain(self._cost[j], self._first[j])
        self._changed = set()

    def _chain(self, cost: np.ndarray, first: np.ndarray) -> None:
        """Replace moves by cheaper chains, by the algorithm of Floyd and Warshall."""
        for via in range(len(cost)):
            chain = cost[:, [via]] + cost[via]
            np.fill_diagonal(chain, np.inf)
            shorter = chain < cost - self.least
            cost[shorter] = chain[shorter]
            first[shorter] = np.broadcast_to(first[:, [via]], first.shape)[shorter]

    def tried(self) -> tuple[np.ndarray, np.ndarray]:
        """What moves cost, shape (n_kinds, n_clusters, n_clusters), from and to each cluster, and how much moves.

        The latter has the shape (n_groups, n_kinds, 1, 1), or (n_groups, n_kinds, n_clusters, n_clusters) with weights.
        """
        cost, (one, two) = self._cost, self._pairs
        weight = self._near.weights[self._point] if self.weighted else np.ones((len(cost), 1, 1))
        moved = np.eye(len(cost))[:, :, None, None] * weight
        # The second point goes the same way, or the other way.
        costs = cost, cost[one] + cost[two], cost[one] + cost[two].swapaxes(1, 2)
        costs[1][one == two] = np.inf
        both = moved, moved[:, one] + moved[:, two], moved[:, one] - moved[:, two].swapaxes(2, 3)
        return np.concatenate(costs), np.concatenate(both, axis=1)

    def make(self, kind: int, old: int, new: int) -> None:
        """Make a move of `tried`."""
        n_groups, (one, two) = len(self._cost), self._pairs
        if kind < n_groups:
            self._move(kind, old, new)
            return
        back, pair = divmod(kind - n_groups, len(one))
        self._move(one[pair], old, new)
        self._move(two[pair], *((new, old) if back else (old, new)))

    def _move(self, group: int, old: int, new: int) -> None:
        self._changed.add(int(group))
        while old != new:
            point, old = self._point[group, old, self._first[group, old, new]], self._first[group, old, new]
            self._near.labels[point] = old
