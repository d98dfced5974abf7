"""The assignment step of price methods. It takes the points at fixed centres and the step before (None at first)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fairclust.base import Diverged
from fairclust.methods.price.criteria import Criterion
from fairclust.methods.price.fair_assignment import certified_gap, lower_bound, paid_limits
from fairclust.methods.price.prices import dual_prices
from fairclust.solvers.alternation import Prototypes, Step
from fairclust.solvers.points import MeasuredPoints, Points

# Temperatures of `price_step`, for the first step and for later ones. They are not low, because the last assignment of
# a run is solved again with lower ones.
_FIRST = (0.2, 0.04, 0.008, 0.0016)
_NEXT = (0.0016,)
# Temperatures of rough prices, in the search for good centres. With .05 all fits of twelve data sets took .79 times as
# long as with .008, and were as good. The first one is taken whose gap is small enough: on data of few different
# numbers rough prices can be a per cent off, and then no longer tell good centres from bad ones.
_ROUGH_LEVELS = (0.05, 0.016, 0.005)
_ROUGH_GAP = 2e-3
_STEPS, _TOL, _FAR = 15, 3e-5, 1e-4
# Temperatures, steps at each, and the most rounds of `approach`. It ends when no cell is off its bounds by more than
# this part of the mean cell.
_APPROACH, _APPROACH_STEPS, _MOST_APPROACHES, _NEARLY = (0.04,), 20, 30, 0.1
# The part of the work that may be spent before the last assignment is solved.
_PART = 0.5
# Factor for `_TOL` and `_FAR` during the search for the best of several starts.
ROUGH = 30
# No temperature is below this level divided by the number of points for each cell of the table.
_LEAST_LEVEL = 0.5
# The table may always be off its bounds by this part of a point, because the centres hardly depend on it.
_PART_OF_A_POINT = 0.3


def _levels(
    levels: tuple[float, ...], points: Points, criterion: Criterion, rough: float
) -> tuple[float, ...]:
    """Raise temperatures to `rough`, and further if there are few points for each cell of the table.

    At low temperatures, few of these points are near a boundary. The smoothed dual then has almost no curvature in
    some cells, and most of Newton's steps fail.
    """
    least = _LEAST_LEVEL * criterion.n_counted * points.n_clusters / points.n_samples
    return tuple(dict.fromkeys(max(level, least, rough) for level in levels))


def rough_level(points: MeasuredPoints, criterion: Criterion, start: Prototypes) -> float:
    """The temperature of rough prices, chosen at the centres of a start."""
    if points.lists is not None:
        # Prices far from those of the lists would have to be found first, see `approach`.
        return _ROUGH_LEVELS[-1]
    points.measure(start.centers)
    for level in _ROUGH_LEVELS:
        levels = _levels(_FIRST, points, criterion, level)
        found = dual_prices(points, criterion, levels=levels, max_steps=_STEPS, tol=ROUGH * _TOL, part=_PART)
        bound = lower_bound(points, criterion, found)
        if found.cost - bound <= _ROUGH_GAP * abs(bound):
            break
    return level


def approach(
    points: MeasuredPoints,
    criterion: Criterion,
    update: Callable[[Any, Any, Prototypes], Prototypes],
    start: Prototypes,
) -> tuple[Prototypes, Any]:
    """Centres and multipliers from which the bounds can be met with the clusters that the points list.

    Prices change by as much as the lists allow, and then the centres follow, until the bounds are nearly met.
    """
    prototypes: Prototypes = start
    multipliers: Any = None
    for _ in range(_MOST_APPROACHES):
        points.measure(prototypes.centers)
        levels = _levels(_APPROACH, points, criterion, 0.0)
        found = dual_prices(points, criterion, start=multipliers, levels=levels, max_steps=_APPROACH_STEPS)
        labels, counts, *_ = points.priced(found.prices)
        multipliers = found.multipliers
        if criterion.excess(counts).max() <= max(1.0, _NEARLY * counts.sum() / counts.size):
            break
        prototypes = update(points, labels, prototypes)
    return prototypes, multipliers


def price_step(
    points: Points,
    last: Step | None,
    *,
    criterion: Criterion,
    multipliers: np.ndarray | None = None,
    rough: float = 0.0,
) -> Step | None:
    """The cheapest table within the bounds; None if its lower bound is above the last step's, or the work is spent.

    At the first step, Newton's method starts from `multipliers`, if given. With a temperature `rough`, it stops there,
    and early.
    """
    if not np.isfinite(points.row_min_sum):
        raise Diverged(f"the distances sum to {points.row_min_sum}")
    start = multipliers if last is None else last.state
    factor = ROUGH if rough else 1
    tol = max(factor * _TOL, _PART_OF_A_POINT / points.n_samples)
    levels = _levels(_FIRST if start is None else _NEXT, points, criterion, rough)
    solve = partial(dual_prices, points, criterion, max_steps=_STEPS, part=_PART)
    found = solve(start=start, levels=levels, tol=tol)
    n_passes = found.n_passes + 1
    if start is not None and found.error > max(1.0, factor * _FAR * points.n_samples):
        # The centres have moved too far for a start at the lowest temperature.
        levels = _levels(_FIRST[1:], points, criterion, rough)
        heated = solve(start=start, levels=levels, tol=tol)
        n_passes += heated.n_passes
        found = min(found, heated, key=lambda prices: prices.error)
    labels, counts, _, least = points.priced(found.prices)
    bound = least - paid_limits(criterion, found)
    if last is not None and bound > last.objective:
        return None
    # Without further Newton steps the bound is too low, which looks like progress, and the centres would follow a table
    # that is far off its bounds.
    if last is not None and not found.converged and criterion.work.is_done(_PART):
        criterion.work.is_cut = True
        return None
    more = {
        "gap": certified_gap(criterion, found, found.cost, bound, found.mass),
        "violation": float(criterion.excess(found.mass).max()),
    }
    excess = float(criterion.excess(counts).max())
    return Step(
        labels, counts, 1.0, found.prices, bound, found.cost, excess, n_passes, found.multipliers, more
    )
