"""Fair assignment to fixed centres, exact up to the rounding of a few points, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairclust.base import encode_groups, resolve_target
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import make_layout
from fairclust.solvers.criteria import Criterion, make_criterion
from fairclust.solvers.highs import linprog
from fairclust.solvers.points import Points
from fairclust.solvers.prices import Prices, dual_prices, temperature_unit
from fairclust.solvers.rounding import integer_table, loose_tables, move_to_table

# Temperatures from no prices, and from those of a similar problem: the last decides how tight the bound is.
COLD = (0.2, 0.04, 0.008, 0.0016, 0.0003)
WARM = (0.0016, 0.0003)
# Further down where there are so few points that the bound is not yet tight; not in single precision.
_DEEPER = tuple(0.0003 / 5**i for i in range(1, 8))
_TIGHT = 1e-7
_STEPS, _TOL = 30, 1e-5
# Where steps fail at a temperature, smaller drops.
_SLOW = tuple(float(t) for t in np.geomspace(0.5, 0.0003, 16))
# Tiles of smaller problems are kept in double precision.
_DOUBLE_ENTRIES = 1 << 23
_BLOCK_ROWS = 1 << 16
# Sums as exact as these can tell lower temperatures apart.
_DOUBLE_ROUNDING = 1e-12


@dataclass(frozen=True)
class FairAssignment:
    """Labels within the bounds, and how far they can be from the best.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), int32
    prices : ndarray of shape (n_groups, n_clusters)
        All points but the few that were rounded are in ``argmin_k distances[p, k] + prices[group of p, k]``.
    groups : ndarray of shape (n_groups,)
        The groups in the order of the rows of `prices`.
    cost : float
        Sum of the labels' distances.
    lower_bound : float
        What every assignment within the bounds costs at least, fractional ones included.
    gap : float
        No assignment within the bounds, or breaking none of their rows by more than the labels do, is cheaper
        than `cost` by more than this fraction of it. Where `violation` is 0 it is
        ``cost / lower_bound - 1``; elsewhere what the violation may have saved is taken from the lower bound
        first. Never negative.
    violation : ndarray of shape (n_groups, n_clusters)
        Points that each cell of the table is off its bounds by; 0 within.
    """

    labels: np.ndarray
    prices: np.ndarray
    groups: np.ndarray
    cost: float
    lower_bound: float
    gap: float
    violation: np.ndarray

    @property
    def slack(self) -> float:
        """The largest violation, in points."""
        return float(self.violation.max())


def fair_assignment(
    distances: Any,
    sensitive_features: Any,
    *,
    target: Any = None,
    tolerance: float = 0.0,
    min_balance: float | None = None,
    max_gap: float | None = None,
) -> FairAssignment:
    """Cheapest assignment of points to clusters with bounded group shares, balance or gap.

    One of three criteria counts: the shares (the default), `min_balance` or `max_gap`.

    Parameters
    ----------
    distances : array-like of shape (n_samples, n_clusters)
        Cost of each point in each cluster, finite. An array mapped from a file is read in blocks.
    sensitive_features : array-like of shape (n_samples,)
        The group of every row.
    target : None, mapping of group to share, or array-like of shape (n_groups,), default=None
        Wanted shares mu of the groups in every cluster; None takes the data's own.
    tolerance : float, default=0.0
        t in [0, 1): the share of group j in every cluster lies in ``[(1 - t) mu_j, mu_j / (1 - t)]``.
    min_balance : float, optional
        r: instead, ``n_ik >= r n_jk`` for the counts of all groups i, j in every cluster k.
    max_gap : float, optional
        Instead, a bound on Delta, `fairclust.metrics.delta`.

    Returns
    -------
    FairAssignment
        The labels are within the bounds where whole points can be; elsewhere as close as was found, within a
        point or so: see `FairAssignment.violation`. Clusters may be empty.

    Raises
    ------
    ValueError
        Bad input, more than one criterion, or bounds that these groups cannot meet: the message names those
        that they can.

    Notes
    -----
    The linear program over N x K shares is solved through its dual, a concave function of J x K group prices.
    Bounds on shares are those of Bera et al., "Fair algorithms for clustering", NeurIPS 2019.

    Examples
    --------
    >>> from fairclust import fair_assignment
    >>> found = fair_assignment([[0, 1], [0, 1], [0, 2], [0, 3]], ["a", "b", "a", "b"])
    >>> found.labels.tolist(), found.cost
    ([0, 0, 0, 0], 0.0)
    """
    costs = np.asarray(distances)
    if costs.ndim != 2 or not costs.size:
        raise ValueError(f"distances must be a non-empty matrix, found shape {costs.shape}")
    if costs.dtype not in (np.float32, np.float64):
        costs = costs.astype(np.float64)
    codes, names = encode_groups(sensitive_features, len(costs))
    sizes = np.bincount(codes)
    criterion = make_criterion(
        names,
        sizes,
        target=None if target is None else resolve_target(target, names, codes),
        tolerance=tolerance,
        min_balance=min_balance,
        max_gap=max_gap,
    )
    dtype = np.float64 if costs.size <= _DOUBLE_ENTRIES else np.float32
    potentials = Potentials.empty(make_layout(codes, len(names)), len(names), costs.shape[1], dtype)
    potentials.set_costs(costs)
    if not np.isfinite(potentials.row_min_sum) or not np.isfinite(potentials.a).all():
        raise ValueError("distances has entries that are not finite")
    solved = solve(potentials, criterion)
    labels, _, counts, _ = round_prices(potentials, criterion, solved)
    # In double precision, whatever the tiles hold.
    cost = least = 0.0
    for first in range(0, len(costs), _BLOCK_ROWS):
        rows = np.asarray(costs[first : first + _BLOCK_ROWS], dtype=np.float64)
        block = slice(first, first + len(rows))
        cost += float(rows[np.arange(len(rows)), labels[block]].sum())
        least += float((rows + solved.prices[codes[block]]).min(axis=1).sum())
    lower_bound = least - paid_limits(criterion, solved)
    gap = certified_gap(criterion, solved, cost, lower_bound, counts)
    return FairAssignment(labels, solved.prices, names, cost, lower_bound, gap, criterion.excess(counts))


def solve(points: Points, criterion: Criterion, start: np.ndarray | None = None) -> Prices:
    """Prices to the last temperature, from none or from the multipliers of a similar problem."""
    found = dual_prices(
        points,
        criterion,
        start=start,
        levels=COLD if start is None else WARM,
        max_steps=_STEPS,
        tol=_TOL,
    )
    # A point's worth is rounded away; more may mean that a step went astray, not that it is small numbers.
    if found.error > max(1.0, 10 * _TOL * points.n_samples):
        slow = dual_prices(points, criterion, levels=_SLOW, max_steps=_STEPS, tol=_TOL)
        found = min(found, slow, key=lambda prices: prices.error)
    if points.rounding > _DOUBLE_ROUNDING or not criterion.rows.size:
        return found
    found, tight = _deepen(points, criterion, found)
    if not tight:
        # Groups of a point or two: prices far from zero, found by small drops only.
        slow = dual_prices(points, criterion, levels=_SLOW, max_steps=_STEPS, tol=_TOL)
        slow, _ = _deepen(points, criterion, slow)
        found = max(found, slow, key=lambda prices: lower_bound(points, criterion, prices))
    return found


def _deepen(points: Points, criterion: Criterion, found: Prices) -> tuple[Prices, bool]:
    """Lower temperatures, until smoothing takes nothing off the bound; whether the cost nearly meets it."""
    least = lower_bound(points, criterion, found)
    for level in _DEEPER:
        # At these prices, and so without what the soft table is off its bounds by.
        reduced = found.cost + float((found.prices * found.mass).sum()) - paid_limits(criterion, found)
        if found.converged and reduced - least <= _TIGHT * abs(least):
            break
        new = dual_prices(
            points, criterion, start=found.multipliers, levels=(level,), max_steps=_STEPS, tol=_TOL
        )
        new_least = lower_bound(points, criterion, new)
        if new_least < least:
            break
        found, least = new, new_least
    return found, abs(found.cost - least) <= 100 * _TIGHT * abs(least)


def round_prices(
    points: Points, criterion: Criterion, solved: Prices
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """Labels within the bounds, as near to the prices' argmin as can be.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
    cost : float
        Sum of the labels' points.
    counts : ndarray of shape (n_groups, n_clusters), float64
    least : float
        As `Potentials.priced`.
    """
    labels, counts, cost, least = points.priced(solved.prices)
    table = integer_table(_soft(solved), solved.prices / temperature_unit(points), criterion)
    added = move_to_table(points, solved.prices, labels, counts, table)
    return labels, cost + added, table.astype(float), least


def round_loosely(
    points: Points, criterion: Criterion, solved: Prices
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """The cheapest labels found that are off the bounds by a point in a cell at most; None if there are none.

    Where a point lies far from all others, `round_prices` may pay any cost for a part of a point.

    Returns
    -------
    labels : ndarray of shape (n_samples,), int32
    cost : float
    counts : ndarray of shape (n_groups, n_clusters), float64
    """
    free, counts, cost, _ = points.priced(solved.prices)
    tables = loose_tables(_soft(solved), solved.prices / temperature_unit(points), criterion)
    if criterion.excess(counts).max() <= 1:
        tables.append(np.rint(counts).astype(np.int64))
    best = None
    for table in tables:
        labels = free.copy()
        value = cost + move_to_table(points, solved.prices, labels, counts, table)
        if best is None or value < best[1]:
            best = labels, value, table.astype(float)
    return best


def _soft(solved: Prices) -> np.ndarray:
    """The prices' table, whose rows sum to the sizes of the groups."""
    totals = solved.mass.sum(axis=1, keepdims=True)
    return solved.mass * (np.rint(totals) / totals)


def lower_bound(points: Points, criterion: Criterion, solved: Prices) -> float:
    """The dual function of `fairclust.solvers.prices` at the multipliers, without smoothing."""
    return points.priced(solved.prices)[3] - paid_limits(criterion, solved)


def paid_limits(criterion: Criterion, solved: Prices) -> float:
    """h'y: what the dual function takes off the sum of least reduced costs."""
    return float((criterion.limits[:, None] * solved.multipliers).sum())


def certified_gap(
    criterion: Criterion, solved: Prices, cost: float, bound: float, counts: np.ndarray
) -> float:
    """Relative gap of a table's assignment to all that violate the rows by no more, see `FairAssignment`."""
    if criterion.equal:
        excess = np.abs(criterion.rows @ counts)
        saved = float((excess * np.abs(solved.multipliers)).sum())
    else:
        saved = _least_savings(criterion, solved.multipliers, counts)
    floor = bound - saved
    if cost <= floor:
        return 0.0
    return (cost - floor) / abs(floor) if floor else np.inf


def _least_savings(criterion: Criterion, multipliers: np.ndarray, counts: np.ndarray) -> float:
    """min over helpers v of the excess over the rows, in points, times the multipliers."""
    above = criterion.rows @ counts - criterion.limits[:, None]
    n_rows, n_helpers = criterion.helpers.shape
    if not n_helpers:
        return float((np.maximum(above, 0.0) * multipliers).sum())
    saved = 0.0
    for k in range(counts.shape[1]):
        done = linprog(
            np.r_[np.zeros(n_helpers), multipliers[:, k]],
            A_ub=np.hstack([criterion.helpers, -np.eye(n_rows)]),
            b_ub=-above[:, k],
            bounds=[(None, None)] * n_helpers + [(0, None)] * n_rows,
        )
        saved += float(done.fun) if done.success else np.inf
    return saved
