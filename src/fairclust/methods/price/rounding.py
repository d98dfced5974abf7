"""Round prices to labels whose group-by-cluster table meets the bounds.

The argmin at the prices is the cheapest of all assignments with the same table. That table violates the bounds by a few
points, which cost the same in two clusters. `tables.py` finds integer tables nearby that are within the bounds. For
each group, a flow on the K clusters then moves points to such a table at the least cost. Where a table says too little
about the cost, the moves of `single_points.py` are used instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fairclust.kernels.flow import all_clusters, shortest_paths
from fairclust.methods.price.criteria import Criterion
from fairclust.methods.price.prices import Prices, temperature_unit
from fairclust.methods.price.single_points import cell_regrets, move_nearby, move_singly
from fairclust.methods.price.tables import MOST_POINTS, WORST, accepted, flow_table, integer_tables
from fairclust.solvers.points import Points

# With fewer than _FEW points per cell of the table, `move_nearby` chooses single points. With more than _FEW_ROWS
# multipliers it is not tried, because it would take long. With more than _FEW_CLUSTERS clusters it is not tried either,
# because there are points at every boundary. Without it, 9 of 67 mixed problems of 20 to 260 points violated their
# bounds by up to 0.5 points more.
_FEW, _FEW_ROWS, _FEW_CLUSTERS = 20, 200, 12
# With this many clusters, at most so many points of a cluster are tried before all that may have to move, and so many
# of the cheapest clusters of each before all. In 300 clusters of 18,000 points, the flows of all took a third of a fit.
_MANY_CLUSTERS, _FEW_MOVED, _FEW_ENTERED = 64, 32, 16
# With more helpers in all clusters than this, mixed-integer programs take minutes. With fewer helpers, single moves
# instead of programs ended .19 to .4 points nearer to the bounds for six tables of more than 300 cells, but the labels
# cost 16 to 48 % more.
_MOST_HELPERS = 100


def round_prices(
    points: Points, criterion: Criterion, solved: Prices
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Labels within the bounds, obtained from the argmin at the prices by moving few points.

    Returns them with the sum of their potentials, their table, and the least of `Potentials.priced`.
    """
    labels, counts, cost, least = points.priced(solved.prices)
    unit = temperature_unit(points)
    weights = points.weights
    soft, prices = soft_table(solved), solved.prices / unit

    def moved(labels: Any, counts: np.ndarray, tables: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
        # The prices do not show how much it costs to move points that lie far from all others, so a table is chosen by
        # what it costs.
        charges = [WORST * unit * float(criterion.excess(table).max()) for table in tables]
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
        if criterion.excess(nearby[1]).max() <= accepted(criterion):
            return nearby[0], cost + nearby[2], nearby[1], least
    if weights is not None:
        added = move_singly(points, criterion, solved.prices, labels, counts, weights)
    elif criterion.helpers.shape[1] * counts.shape[1] > _MOST_HELPERS:
        free, table = (labels.copy(), counts.copy()), flow_table(soft, prices, criterion)
        added, counts = moved(labels, counts, [np.rint(counts) if table is None else table])
        added += move_singly(points, criterion, solved.prices, labels, counts)
        # Single moves are chosen one after the other, so other moves to the same table can cost less. Without
        # these, 2 of 20 mixed problems cost 0.2 % and 27 % more.
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
    return labels, cost + added, counts, least


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
    if not tables:
        raise RuntimeError("HiGHS found no integer table")
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
                own = excess[clusters == old[:, None]]
                added[i] += float((excess[clusters == new[:, None]] - own).sum())
                moved[i].append((rows, new))
        best = int(np.argmin(added + np.asarray(charges)))
        if not surplus[best].any() or most is units:
            break
    for rows, new in moved[best]:
        labels[rows] = new
    # If the lists of clusters leave no way to move a point, it stays.
    return float(added[best]), (tables[best] + surplus[best]).astype(float)
