"""Group prices for linear rows on the group-by-cluster table, by ascent of the dual function.

At fixed potentials the cheapest assignment whose table n satisfies ``G n + B v <= h`` (or ``= h``) is a
linear program over N x K shares. Its dual has one multiplier y for each row. These are not negative (of any sign for
equalities) and satisfy ``B'y = 0``. With the prices ``W = G'y`` of shape (n_groups, n_clusters), the dual function is
``D(y) = sum_p min_k (a_pk + W[g(p), k]) - h'y``. D is concave, one pass over the points evaluates it, and its value
at every feasible y is a lower bound on the cost. The min is smoothed by the softmin ``-T log sum_k exp(-. / T)``, and
T is lowered. Each step maximises the quadratic model of the smoothed dual over all feasible y, which also decides
which rows bind.

`price_step` is the assignment step of an alternation, in which the prices follow the centres. `solve` finds the prices
of the last assignment, at lower temperatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from fairclust.base import Diverged
from fairclust.solvers.alternation import Prototypes, Step
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.newton import (
    RowSystem,
    interior_step,
    step_of_equal_shares,
    step_of_rows,
    step_of_rows_that_bind,
)
from fairclust.solvers.points import MeasuredPoints, Points

# Temperatures in units of the mean gap between a point's two smallest potentials.
START_LEVELS = (0.2, 0.04, 0.02)
_STEPS_PER_LEVEL = 12
_DAMPING = 1e-6
_SHORTEN = 1e4
# The largest damping, so that it does not overflow. At this damping, steps are negligible.
_MOST_DAMPING = 1e30
# For criteria on several columns or with more multipliers than the last number, whose warm starts overshoot more often:
# the damping at a warm start, its factor after a step that is rejected, and its divisor after one that is accepted.
_MANY_DAMPING, _LARGE_UNKNOWNS = (1e-2, 10, 3), 400
# The divisor of the damping after a step that is accepted, if the step before was rejected.
_CAREFUL = 2
# With lists of clusters, steps end when no multiplier changes by more than this part of the temperature.
_STILL = 1e-3
# If multipliers miss ``B'y = 0`` by more than this, in units, the dual function is not a lower bound.
_UNBALANCED = 1e-8
# With at least this many clusters, `step_of_rows_that_bind` uses conjugate gradients, which take longer with fewer.
_MANY_CLUSTERS = 64
# Temperatures of `price_step`, for the first step and for later ones. They are not low, because the last assignment of
# a run is solved again with lower ones.
_FIRST = (0.2, 0.04, 0.008, 0.0016)
_NEXT = (0.0016,)
# Temperatures of rough prices, in the search for good centres. The first one is taken whose gap is small enough: on
# data of few different numbers, rough prices cannot tell good centres from bad ones.
_ROUGH_LEVELS = (0.05, 0.016, 0.005)
_STEPS, _TOL = 15, 3e-5
# Prices are far off if the bounds are violated by more than this share of the points.
FAR = 1e-4
# Temperatures, steps at each, and the most rounds of `approach`. It ends when no cell is off its bounds by more than
# this part of the mean cell.
_APPROACH, _APPROACH_STEPS, _MOST_APPROACHES, _NEARLY = (0.04,), 20, 30, 0.1
# The part of the work that may be spent before the last assignment is solved.
_PART = 0.5
# Factor for `_TOL` and `FAR` during the search for the best of several starts.
ROUGH = 30
# No temperature is below this level divided by the number of points for each cell of the table.
_LEAST_LEVEL = 0.5
# The table may always be off its bounds by this part of a point, because the centres hardly depend on it.
_PART_OF_A_POINT = 0.3
# Temperatures of `solve`, for a start without prices, and for a start from the prices of a similar problem. The last
# temperature decides how tight the lower bound is.
COLD = (0.2, 0.04, 0.008, 0.0016, 0.0003)
_WARM = (0.0016, 0.0003)
# Lower temperatures, for problems with so few points that the bound is not tight yet. Not used in single precision.
_DEEPER = tuple(0.0003 / 5**i for i in range(1, 8))
_TIGHT = 1e-7
_SOLVE_STEPS, _SOLVE_TOL = 30, 1e-5
# With many points, a tolerance of `_SOLVE_TOL` would allow an error of many points, which rounding does not remove. The
# error may be half a point, or this fraction of the points, which are the rounding errors of sums in single precision.
_LEAST_TOL = 1e-7
# How often the clusters of the points are listed anew, at most.
_LISTINGS = 10
# Temperatures closer to each other, for problems in which Newton steps fail.
_SLOW = tuple(float(t) for t in np.geomspace(0.5, 0.0003, 16))
# Lower temperatures are used only if the relative rounding error of the sums is at most this.
_DOUBLE_ROUNDING = 1e-12


class Prices(NamedTuple):
    """Prices at the last temperature, with their soft table."""

    prices: np.ndarray  # (n_groups, n_clusters)
    multipliers: np.ndarray  # (n_rows, n_clusters)
    mass: np.ndarray  # (n_groups, n_clusters); the soft table
    cost: float  # Sum of the potentials of the soft assignment
    # How far the soft table is from its bounds, in points: the largest entry of the criterion's excess.
    violation: float
    # Distance from the optimum, in points. It is the larger of `violation` and of the sum over the inequalities of
    # multiplier times unused limit, divided by `temperature_unit`.
    error: float
    n_passes: int
    converged: bool


def temperature_unit(points: Points) -> float:
    """A positive scale of the potentials. Temperatures are multiples of it."""
    unit = points.mean_gap()
    if unit <= 0:
        # Every point costs the same in its two best clusters, or there is one cluster. Any scale works then.
        unit = points.mean_excess()
    return unit if unit > 0 else 1.0


def rounding_error(points: Points, mass: np.ndarray, cost: float, prices: np.ndarray) -> float:
    """An estimate of the rounding errors of `mass` and `cost`, which are sums over softmax rows."""
    paid = float((mass * (prices - prices.min(axis=1, keepdims=True))).sum())
    return points.rounding * (cost - points.row_min_sum + paid)


def curvature(mass: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Minus T times the derivative of the soft table with respect to the prices: ``diag(n_j) - M_j`` for each group j.

    The shape is (n_groups, n_clusters, n_clusters). The prices of a group do not change the tables of others.
    """
    blocks = -moments
    diagonal = np.arange(mass.shape[1])
    blocks[:, diagonal, diagonal] += mass
    return blocks


def dual_prices(
    points: Points,
    criterion: Criterion,
    *,
    start: np.ndarray | None = None,
    levels: tuple[float, ...] = START_LEVELS,
    max_steps: int = _STEPS_PER_LEVEL,
    tol: float = 1e-4,
    last_tol: float | None = None,
    part: float = 1.0,
) -> Prices:
    """Maximise the smoothed dual over the multipliers of the criterion's rows by damped Newton steps.

    If a step lowers the dual, it is undone and the damping (Levenberg, Marquardt) is raised. Each temperature of
    `levels` ends when `Prices.error` is below `tol` of the points, or 1e-4 of a point; all end at `part` of
    `criterion.work`.
    """
    n_points, n_clusters = points.n_samples, points.n_clusters
    shape = points.n_groups, n_clusters
    y = np.zeros((len(criterion.rows), n_clusters)) if start is None else start
    if points.lists is not None and not points.lists.fit_centers:
        points.lists.outgrown(criterion.prices(y))
    unit = temperature_unit(points)
    if not criterion.rows.size:
        _, mass, cost, _ = points.priced(np.zeros(shape))
        return Prices(np.zeros(shape), y, mass, cost, float(criterion.excess(mass).max()), 0.0, 1, True)
    many = criterion.combined or (not criterion.equal and y.size > _LARGE_UNKNOWNS)
    first, grow, shrink = _MANY_DAMPING if many else (_DAMPING, 10, 10)
    damping, n_passes, rejected = _DAMPING if start is None else first, 0, False
    for level in levels:
        temperature = level * unit
        asked = tol if last_tol is None or level != levels[-1] else last_tol
        enough = max(asked * n_points, 1e-4)
        at = _evaluate(points, criterion, y, temperature, unit)
        n_passes += 1
        for _ in range(max_steps):
            if at.error <= enough or criterion.work.is_done(part):
                break
            trial = _newton_step(criterion, at, temperature, damping, unit, n_points)
            if trial is None:
                damping = min(grow * damping, _MOST_DAMPING)
                continue
            if points.lists is not None:
                # The part of the step in each cluster after which no price is farther than `reach` from the lists'.
                last = criterion.prices(at.multipliers) - points.lists.at
                change = criterion.prices(trial) - points.lists.at - last
                left = np.maximum(points.lists.reach - np.sign(change) * last, 0.0)
                fits = np.minimum(1.0, left / np.maximum(np.abs(change), 1e-300)).min(axis=0)
                trial = at.multipliers + fits * (trial - at.multipliers)
                if np.abs(trial - at.multipliers).max() < _STILL * temperature:
                    break
            new = _evaluate(points, criterion, trial, temperature, unit)
            n_passes += 1
            # If the two values of the dual are equal up to rounding errors, the error decides.
            if new.value >= at.value or (new.value >= at.value - at.noise and new.error < at.error):
                at = new
                # If a smaller damping has just failed, the damping falls less.
                damping = max(damping / (_CAREFUL if rejected else shrink), _DAMPING)
                rejected = False
            else:
                damping = min(grow * damping, _MOST_DAMPING)
                rejected = True
        y = at.multipliers
    return Prices(
        criterion.prices(y), y, at.mass, at.cost, at.violation, at.error, n_passes, at.error <= enough
    )


class _Smoothed(NamedTuple):
    """The smoothed dual at some multipliers, and its derivatives."""

    multipliers: np.ndarray
    value: float
    noise: float
    mass: np.ndarray
    cost: float
    moments: np.ndarray
    violation: float
    error: float


def _evaluate(
    points: Points, criterion: Criterion, y: np.ndarray, temperature: float, unit: float
) -> _Smoothed:
    criterion.work.pass_over(points.n_samples * points.n_clusters)
    prices = criterion.prices(y)
    mass, cost, logsum, moments = points.soft_moments(1.0 / temperature, prices / temperature)
    limits = paid_limits(criterion, y)
    violation = float(criterion.excess(mass).max())
    if criterion.exact.any():
        unused = (y * (criterion.limits - criterion.rows @ mass))[~criterion.exact]
        unpaid = abs(float(unused.sum()))
    else:
        unpaid = abs(limits - float((prices * mass).sum()))
    noise = rounding_error(points, mass, cost, prices)
    error = max(violation, unpaid / unit)
    return _Smoothed(y, -temperature * logsum - limits, noise, mass, cost, moments, violation, error)


def _newton_step(
    criterion: Criterion, at: _Smoothed, temperature: float, damping: float, unit: float, n_points: int
) -> np.ndarray | None:
    """Multipliers that maximise the quadratic model of the smoothed dual minus the damping term.

    None if they cannot be computed accurately enough, which a larger damping makes easier.
    """
    y, mass = at.multipliers, at.mass
    rows, n_clusters = criterion.rows, mass.shape[1]
    diagonal = np.arange(n_clusters)
    blocks = curvature(mass, at.moments) / temperature
    # The dual has no curvature along prices that shift a whole group, and none at all where every point is far from a
    # boundary, so the damping needs a second part. It keeps steps below a hundred units, and it vanishes with the
    # violation. The slack would not do here, because it stays large in rows that are far from their limits.
    shorten = _SHORTEN * at.violation / unit
    if criterion.equal:
        curved = float(blocks[:, diagonal, diagonal].mean()) or 1.0
        blocks[:, diagonal, diagonal] += damping * (curved + shorten)
        criterion.work.blocks(len(blocks), n_clusters)
        step = step_of_equal_shares(blocks, mass, criterion.high)
        return y + step[:-1] - step[-1]
    # The slack is divided by the number of points and the multipliers by the unit, so all numbers are of order one.
    scale = unit / n_points
    if len(criterion.high):
        # Twice the mean curvature, because fits of 3 to 10 groups take longer with the number below, which is at most
        # half of it.
        curved = 2 * float(blocks[:, diagonal, diagonal].mean()) or 1.0
    else:
        curved = float((rows**2 @ blocks[:, diagonal, diagonal]).mean()) or 1.0
    damped = scale * damping * (curved + shorten)
    blocks *= scale
    slack, z = (rows @ mass - criterion.limits) / n_points, y / unit
    if not criterion.helpers.size:
        many = n_clusters >= _MANY_CLUSTERS
        found = step_of_rows_that_bind(rows, blocks, slack, z, damped, criterion.exact, sparse=many)
        if found is not None:
            # Conjugate gradients take less time than a pass over the points.
            criterion.work.binding(0 if many else int((found != 0).sum()))
            return unit * found
    system = RowSystem(criterion.shape, blocks)
    found = step_of_rows(system, slack, z, damped, criterion.exact) if criterion.helpers.size else None
    if found is None:
        with suppress(np.linalg.LinAlgError):
            found = interior_step(system, slack, z, damped, criterion.exact)
    n_parts, n_helpers = len(criterion.shape.parts), criterion.helpers.shape[1]
    n_unknowns = n_parts * n_clusters
    criterion.work.systems(system.n_factorised, n_unknowns, n_unknowns * n_parts * (n_unknowns + n_helpers))
    if found is None or (
        criterion.combined and not np.abs(criterion.shape.to_helpers @ found).max(initial=0.0) <= _UNBALANCED
    ):
        return None
    return unit * found


def solve(points: Points, criterion: Criterion, start: np.ndarray | None = None) -> Prices:
    """Solve for the prices down to the last temperature, from zero or from the multipliers of a similar problem."""
    ascend = partial(dual_prices, points, criterion, max_steps=_SOLVE_STEPS, tol=_SOLVE_TOL)
    last_tol = min(_SOLVE_TOL, max(0.5 / points.n_samples, _LEAST_TOL))
    found = ascend(start=start, levels=COLD if start is None else _WARM, last_tol=last_tol)
    lists, n_left = points.lists, _LISTINGS
    while lists is not None and n_left and lists.outgrown(found.prices):
        n_left -= 1
        found = ascend(start=found.multipliers, levels=_WARM)
    # Rounding removes an error of up to a point. A larger error may mean that a Newton step has failed.
    if found.error > max(1.0, 10 * _SOLVE_TOL * points.n_samples):
        found = min(found, ascend(levels=_SLOW), key=lambda prices: prices.error)
    if points.rounding > _DOUBLE_ROUNDING or not criterion.rows.size:
        return found
    found, tight = _deepen(points, criterion, found)
    if not tight:
        # Groups of one or two points can have prices far from zero, which only a slow decrease of temperature finds.
        slow, _ = _deepen(points, criterion, ascend(levels=_SLOW))
        found = max(found, slow, key=lambda prices: lower_bound(points, criterion, prices))
    return found


def _deepen(points: Points, criterion: Criterion, found: Prices) -> tuple[Prices, bool]:
    """Lower the temperature until smoothing no longer weakens the bound.

    Returns the prices, and whether the cost of the soft assignment is nearly equal to the bound.
    """
    ascend = partial(dual_prices, points, criterion, max_steps=_SOLVE_STEPS, tol=_SOLVE_TOL)
    least = lower_bound(points, criterion, found)
    for level in _DEEPER:
        # The Lagrangian of the soft assignment. It differs from the bound only by the smoothing, even if the soft table
        # violates the bounds.
        paid = found.cost + float((found.prices * found.mass).sum())
        reduced = paid - paid_limits(criterion, found.multipliers)
        if found.converged and reduced - least <= _TIGHT * abs(least):
            break
        new = ascend(start=found.multipliers, levels=(level,))
        new_least = lower_bound(points, criterion, new)
        if new_least < least:
            break
        found, least = new, new_least
    return found, abs(found.cost - least) <= 100 * _TIGHT * abs(least)


def lower_bound(points: Points, criterion: Criterion, solved: Prices) -> float:
    """The dual function at the multipliers, without smoothing."""
    return points.priced(solved.prices)[3] - paid_limits(criterion, solved.multipliers)


def paid_limits(criterion: Criterion, multipliers: np.ndarray) -> float:
    """h'y, which the dual function subtracts from the sum of least reduced costs."""
    return float((criterion.limits * multipliers).sum())


def certified_gap(
    criterion: Criterion, solved: Prices, cost: float, bound: float, counts: np.ndarray
) -> float:
    """Relative gap to the cheapest assignment that violates the rows by no more than `counts`, see `FairAssignment`."""
    floor = bound - criterion.saving(solved.multipliers, counts)
    if cost <= floor:
        return 0.0
    return (cost - floor) / abs(floor) if floor else np.inf


def certificate_text(found: Mapping[str, float | None]) -> str:
    """How much cheaper other labels, and other centres, may be; `found` has the attributes of a fit without "_"."""
    gap, cost, least, off = (found.get(name) for name in ("gap", "cost", "lower_bound", "violation"))
    within = "at a cost that cannot be bounded"
    if gap is not None and math.isfinite(gap):
        # Rounded up, because it is a bound.
        within = f"within {math.ceil(gap * 1e5) / 1e5:.3%}"
    text = f"the cheapest labels for these centres, {within}"
    if cost is not None and least is not None:
        # Labels of whole rows can be slightly off bounds that only parts of rows would meet, which makes them cheaper.
        text += f" (cost {cost:,.1f}, "
        reason = (
            f"the labels are off the bounds by up to {off:.2g} rows in a cluster"
            if off
            else "of rounding errors"
        )
        below = f"below the bound {least:,.1f} because {reason})"
        text += f"lower bound {least:,.1f})" if cost >= least else below
    text += "; other centres may be cheaper"
    spread, n_finished = found.get("spread"), int(found.get("n_finished") or 0)
    if n_finished == 1:
        text += ", and one start ran to its end"
    elif n_finished and spread is not None:
        text += f": {n_finished} starts ended within {math.ceil(spread * 1e4) / 1e4:.2%} of each other"
    return text


def _levels(
    levels: tuple[float, ...], points: Points, criterion: Criterion, rough: float
) -> tuple[float, ...]:
    """Raise temperatures to `rough`, and further if there are few points for each cell of the table.

    At low temperatures, few of these points are near a boundary. The smoothed dual then has almost no curvature in
    some cells, and most of Newton's steps fail.
    """
    least = _LEAST_LEVEL * criterion.n_counted * points.n_clusters / points.n_samples
    return tuple(dict.fromkeys(max(level, least, rough) for level in levels))


def rough_level(points: MeasuredPoints, criterion: Criterion, start: Prototypes, gap: float) -> float:
    """The temperature of rough prices, at which their bound is too low by at most `gap` at the centres of a start.

    It is the lowest one if the bound is too low at all of them.
    """
    if points.lists is not None:
        # Prices far from those of the lists would have to be found first, see `approach`.
        return _ROUGH_LEVELS[-1]
    points.measure(start.centers)
    for level in _ROUGH_LEVELS:
        levels = _levels(_FIRST, points, criterion, level)
        found = dual_prices(points, criterion, levels=levels, max_steps=_STEPS, tol=ROUGH * _TOL, part=_PART)
        bound = lower_bound(points, criterion, found)
        if found.cost - bound <= gap * abs(bound):
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
    ascend = partial(dual_prices, points, criterion, max_steps=_STEPS, part=_PART)
    found = ascend(start=start, levels=levels, tol=tol)
    n_passes = found.n_passes + 1
    if start is not None and found.error > max(1.0, factor * FAR * points.n_samples):
        # The centres have moved too far for a start at the lowest temperature.
        levels = _levels(_FIRST[1:], points, criterion, rough)
        heated = ascend(start=start, levels=levels, tol=tol)
        n_passes += heated.n_passes
        found = min(found, heated, key=lambda prices: prices.error)
    labels, counts, _, least = points.priced(found.prices)
    bound = least - paid_limits(criterion, found.multipliers)
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
