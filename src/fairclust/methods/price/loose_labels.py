"""Cheaper labels for data in which a few points lie far from all others.

If bounds may be exceeded by a point in every cell, then the few points that cost most can go to better clusters. The
prices do not show this, because they are the same for near and far points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from fairclust.kernels.points import TiledPoints
from fairclust.methods.price.criteria import Criterion
from fairclust.methods.price.prices import COLD, Prices, dual_prices, solve, temperature_unit
from fairclust.methods.price.rounding import move_to_table, soft_table
from fairclust.methods.price.tables import tables_near
from fairclust.solvers.alternation import Prototypes

_MOST_MOVES = 2000
# Numbers of the cheapest moves that are tried in pairs with moves of other groups.
_PAIRED = 50
_MET = 1e-9
# Labels are used if their cost is lower by more than _CHEAPER. If they come from moving points one by one, and their
# violation is more than _NO_WORSE points larger than that of the other labels, their cost must be lower by more than
# the factor _FAR_CHEAPER. In other cases labels closer to the bounds are better.
_CHEAPER, _FAR_CHEAPER, _NO_WORSE = 0.05, 1.5, 0.1


class Labels(NamedTuple):
    """Labels with their cost and table, and the centres and prices from which they were found."""

    labels: Any  # An array, or `LazyLabels` for rows in chunks
    cost: float
    counts: np.ndarray
    prototypes: Prototypes
    found: Prices


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
    at_once = _round_loosely(points, criterion, strict.prototypes, strict.found)
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
            labels, cost, counts = move_dearest(
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
    return best._replace(found=solve(points, criterion)) if best is moved else best


def _round_loosely(
    points: TiledPoints, criterion: Criterion, prototypes: Prototypes, found: Prices
) -> Labels | None:
    """The cheapest labels at the current centres that are found in a table off by at most a point in every cell.

    If a point lies far from all others, `round_prices` may move it at a very high cost to remove an excess of less than
    a point. These labels avoid that.
    """
    labels, counts, cost, _ = points.priced(found.prices)
    unit = temperature_unit(points)
    tables = [np.rint(counts), *tables_near(soft_table(found), found.prices / unit, criterion)]
    tables = [table for table in tables if criterion.excess(table).max() <= 1]
    if not tables:
        return None
    added, counts = move_to_table(points, found.prices, labels, counts, tables)
    return Labels(labels, cost + added, counts, prototypes, found)


def move_dearest(
    costs: np.ndarray, codes: np.ndarray, labels: np.ndarray, counts: np.ndarray, criterion: Criterion
) -> tuple[np.ndarray, float, np.ndarray]:
    """Move one point after the other to a cheaper cluster, as long as every cell is off its bounds by at most a point.

    A move of another group between the same two clusters may be made with it, which keeps their shares. If a cell is
    off by more at the start, all cells may be off by that much. Returns labels, cost and table.
    """
    labels, counts = labels.astype(np.int32), counts.astype(float)
    n_groups, n_clusters = counts.shape
    members = [np.flatnonzero(codes == j) for j in range(n_groups)]
    allowed = max(1.0, float(criterion.excess(counts).max())) + _MET
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
    for _ in range(_MOST_MOVES):
        cheapest = np.argsort(saved, axis=None, kind="stable")
        single: list[tuple[int, ...]] = [
            tuple(map(int, np.unravel_index(i, saved.shape))) for i in cheapest[: int((saved < 0).sum())]
        ]
        tried: list[tuple[float, tuple[tuple[int, ...], ...]]] = [(saved[move], (move,)) for move in single]
        for j, k, m in single[:_PAIRED]:
            others = [(i, *ends) for i in range(n_groups) if i != j for ends in ((k, m), (m, k))]
            tried += [(saved[j, k, m] + saved[other], ((j, k, m), other)) for other in others]
        for change, moves in sorted(tried, key=lambda found: found[0]):
            table = counts.copy()
            for j, k, m in moves:
                table[j, k] -= 1
                table[j, m] += 1
            if change < 0 and criterion.excess(table).max() <= allowed:
                break
        else:
            break
        counts = table
        for move in moves:
            labels[point[move]] = move[2]
        for j in {move[0] for move in moves}:
            look(j)
    return labels, float(costs[np.arange(len(costs)), labels].sum()), counts
