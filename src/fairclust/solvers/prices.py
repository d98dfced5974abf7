"""Group prices for linear rows on the group-by-cluster table, by ascent of the dual function.

At fixed potentials the cheapest assignment whose table n satisfies ``G n + B v <= h`` (or ``= h``) is a
linear program over N x K shares. Its dual has one multiplier y for each row. These are not negative (of any sign for
equalities) and satisfy ``B'y = 0``. With the prices ``W = G'y`` of shape (n_groups, n_clusters), the dual function is
``D(y) = sum_p min_k (a_pk + W[g(p), k]) - h'y``. D is concave, one pass over the points evaluates it, and its value
at every feasible y is a lower bound on the cost. The min is smoothed by the softmin ``-T log sum_k exp(-. / T)``, and
T is lowered. Each Newton step maximises the quadratic model of the smoothed dual over all feasible y, which also
decides which rows bind. Its curvature is block diagonal in the prices, with one K x K block for each group j,
``B_j = (diag(n_j) - M_j) / T``. For exact shares, `step_of_equal_shares` uses the blocks to solve a small system for
each group. For all other rows, `step_of_rows` finds by pivoting which of them bind, and solves one system for their
multipliers.

`price_step` is the assignment step of an alternation, in which the prices follow the centres. `solve` finds the prices
of the last assignment, at lower temperatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.lapack import dposv, dpotrf, dpotri

from fairclust.base import Diverged
from fairclust.kernels.points import Lists, MeasuredPoints, Points
from fairclust.kernels.prices import (
    curvature,
    equal_shares_step,
    equal_shares_system,
    expanded,
    reduced_system,
    scaled_model,
)
from fairclust.solvers.alternation import Prototypes, Step
from fairclust.solvers.criteria import Criterion

# Temperatures in units of the mean gap between a point's two smallest potentials. These are the ones of `price_step`,
# for the first step and for later ones. They are not low, because the last assignment of a run is solved again.
_FIRST, _NEXT = (0.2, 0.04, 0.008, 0.0016), (0.0016,)
# Those of `solve`, from no prices and from the prices of a similar problem. The last one decides how tight the lower
# bound is. Temperatures closer to each other are for problems in which Newton steps fail.
_COLD, _WARM = (*_FIRST, 0.0003), (*_NEXT, 0.0003)
_SLOW = tuple(float(t) for t in np.geomspace(0.5, 0.0003, 16))
# Lower temperatures, for problems with so few points that the bound is not tight yet. They need double precision.
_DEEPER = tuple(0.0003 / 5**i for i in range(1, 8))
_TIGHT, _DOUBLE_ROUNDING = 1e-7, 1e-12
# The temperature of rough prices, in the search for good centres.
ROUGH_LEVEL = 0.008
# No temperature is below the first level divided by the number of points for each cell of the table. Rough prices have
# the second level, because fewer steps reach it.
_LEAST_LEVEL, _LEAST_ROUGH = 0.5, 1.0
# The smallest and the largest damping. With the largest one, steps are negligible.
_DAMPING, _MOST_DAMPING = 1e-6, 1e30
# The part of the damping that keeps steps short while the bounds are violated.
_SHORTEN = 1e4
# Warm starts overshoot more often for criteria on several columns, or with more multipliers than `_LARGE_UNKNOWNS`. For
# these: the damping at a warm start, its factor after a step that is rejected, and its divisor after one that is
# accepted. On one column, the first damping is at most `_CELL_DAMPING` divided by the number of points for each cell.
_MANY_DAMPING, _LARGE_UNKNOWNS, _CELL_DAMPING = (1e-2, 10, 3), 400, 1e-3
# The divisor of the damping after a step that is accepted, if the step before was rejected.
_CAREFUL = 2
# With lists of clusters, steps end when no multiplier changes by more than this part of the temperature.
_STILL = 1e-3
# Newton steps at each temperature and the tolerance, of `price_step` and of `solve`. Rounding does not remove errors of
# many points, so with many points the tolerance of `solve` is half a point, or the rounding error of sums in single
# precision.
_STEPS, _TOL = 15, 3e-5
_SOLVE_STEPS, _SOLVE_TOL, _LEAST_TOL = 30, 1e-5, 1e-7
# The table of `price_step` may always be off its bounds by this part of a point, because the centres hardly depend on
# it.
_PART_OF_A_POINT = 0.3
# Prices are far off if the bounds are violated by more than this share of the points.
FAR = 1e-4
# Factor for `_TOL` and `FAR` during the search for the best of several starts.
ROUGH = 30
# The part of the work that may be spent before the last assignment is solved.
_PART = 0.5
# Temperatures, steps at each, and the most rounds of `approach`. It ends when no cell is off its bounds by more than
# this part of the mean cell.
_APPROACH, _APPROACH_STEPS, _MOST_APPROACHES, _NEARLY = (0.04,), 20, 30, 0.1
# How often the clusters of the points are listed anew, at most.
_LISTINGS = 10
# Few rows change from one step to the next, so nearly all searches for the rows that bind end within this many pivots.
_PIVOTS, _FULL_PIVOTS = 100, 5
_ZERO = 1e-11


class Prices(NamedTuple):
    """Prices at some temperature, with their soft table."""

    prices: np.ndarray  # (n_groups, n_clusters)
    multipliers: np.ndarray  # (n_rows, n_clusters)
    mass: np.ndarray  # (n_groups, n_clusters); the soft table
    cost: float  # Sum of the potentials of the soft assignment
    # How far the soft table is from its bounds, in points: the largest entry of the criterion's excess.
    violation: float
    # Distance from the optimum, in points. It is the larger of `violation` and of the sum over the inequalities of
    # multiplier times unused limit, divided by `temperature_unit`.
    error: float
    n_passes: int = 0
    converged: bool = True
    value: float = 0.0  # the smoothed dual
    # (n_groups, n_clusters, n_clusters); its curvature, if Newton's method needs it
    moments: np.ndarray = np.empty(0)


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


def dual_prices(
    points: Points,
    criterion: Criterion,
    *,
    start: np.ndarray | None = None,
    levels: tuple[float, ...] = (0.2, 0.04, 0.02),
    max_steps: int = 12,
    tol: float = 1e-4,
    last_tol: float | None = None,
    part: float = 1.0,
) -> Prices:
    """Maximise the smoothed dual over the multipliers of the criterion's rows by damped Newton steps.

    If a step lowers the dual, it is undone and the damping (Levenberg, Marquardt) is raised. Each temperature of
    `levels` ends when `Prices.error` is below `tol` of the points, or 1e-4 of a point; all end at `part` of
    `criterion.work`.
    """
    n_points, shape = points.n_samples, (points.n_groups, points.n_clusters)
    y = np.zeros((len(criterion.rows), points.n_clusters)) if start is None else start
    if points.lists is not None and not points.lists.fit_centers:
        points.lists.outgrown(criterion.prices(y))
    unit = temperature_unit(points)
    if not criterion.rows.size:
        _, mass, cost, _ = points.priced(np.zeros(shape))
        return Prices(np.zeros(shape), y, mass, cost, float(criterion.excess(mass).max()), 0.0, n_passes=1)
    many = criterion.combined or (criterion.shares is None and y.size > _LARGE_UNKNOWNS)
    first, grow, shrink = _MANY_DAMPING if many else (_DAMPING, 10, 10)
    if many and not criterion.combined:
        first = min(first, _CELL_DAMPING * criterion.n_counted * points.n_clusters / n_points)
    damping, n_passes, rejected = _DAMPING if start is None else first, 0, False
    for level in levels:
        temperature = level * unit
        tolerated = tol if last_tol is None or level != levels[-1] else last_tol
        enough = max(tolerated * n_points, 1e-4)
        current = _evaluate(points, criterion, y, temperature, unit)
        n_passes += 1
        for _ in range(max_steps):
            if current.error <= enough or criterion.work.is_done(part):
                break
            # Late moments are computed only at prices from which a step is taken.
            if not len(current.moments):
                *_, moments = points.soft(1.0 / temperature, current.prices / temperature, curved=True)
                current = current._replace(moments=moments)
                n_passes += 1
            trial = _newton_step(criterion, current, temperature, damping, unit, n_points)
            if trial is None:
                damping = min(grow * damping, _MOST_DAMPING)
                continue
            if points.lists is not None:
                trial = _within_reach(points.lists, criterion, current.multipliers, trial)
                if np.abs(trial - current.multipliers).max() < _STILL * temperature:
                    break
            new = _evaluate(points, criterion, trial, temperature, unit)
            n_passes += 1
            # If the two values of the dual are equal up to rounding errors, the error decides.
            if new.value >= current.value or (
                new.error < current.error
                and new.value
                >= current.value - rounding_error(points, current.mass, current.cost, current.prices)
            ):
                current = new
                # If a smaller damping has just failed, the damping falls less.
                damping = max(damping / (_CAREFUL if rejected else shrink), _DAMPING)
                rejected = False
            else:
                damping = min(grow * damping, _MOST_DAMPING)
                rejected = True
        y = current.multipliers
    return current._replace(n_passes=n_passes, converged=current.error <= enough, moments=np.empty(0))


def _within_reach(lists: Lists, criterion: Criterion, y: np.ndarray, trial: np.ndarray) -> np.ndarray:
    """The part of a step in each cluster after which no price is farther than the `reach` of the lists from theirs."""
    last = criterion.prices(y) - lists.listed_prices
    change = criterion.prices(trial) - lists.listed_prices - last
    left = np.maximum(lists.reach - np.sign(change) * last, 0.0)
    part = np.minimum(1.0, left / np.maximum(np.abs(change), 1e-300)).min(axis=0)
    return y + part * (trial - y)


def _evaluate(points: Points, criterion: Criterion, y: np.ndarray, temperature: float, unit: float) -> Prices:
    """The smoothed dual at the multipliers `y`, and its derivatives."""
    criterion.work.pass_over(points.n_samples * points.n_clusters)
    prices = criterion.prices(y)
    mass, cost, logsum, moments = points.soft(
        1.0 / temperature, prices / temperature, not points.late_moments
    )
    violation = error = float(criterion.excess(mass).max())
    value = -temperature * logsum
    if criterion.shares is None:
        value -= paid_limits(criterion, y)
        unused = (y * (criterion.limits - criterion.rows @ mass))[~criterion.exact]
        error = max(violation, abs(float(unused.sum())) / unit)
    return Prices(prices, y, mass, cost, violation, error, value=value, moments=moments)


def _newton_step(
    criterion: Criterion, current: Prices, temperature: float, damping: float, unit: float, n_points: int
) -> np.ndarray | None:
    """Multipliers that maximise the quadratic model of the smoothed dual minus the damping term.

    None if they cannot be computed accurately enough, which a larger damping makes easier.
    """
    y, shares = np.ascontiguousarray(current.multipliers), criterion.shares
    # The dual has no curvature along prices that shift a whole group, and none at all where every point is far from a
    # boundary, so the damping needs a second part. It keeps steps below a hundred units, and it vanishes with the
    # violation. The slack would not do here, because it stays large in rows that are far from their limits.
    shorten = _SHORTEN * current.violation / unit
    mass, moments = current.mass, current.moments
    if shares is not None:
        criterion.work.systems(len(shares), y.shape[1])
        # step_j = B_j^-1 (n_j - shares_j v), with v chosen so that sum_j shares_j step_j = 0.
        inverse = curvature(mass, moments, temperature, damping, shorten)
        for block in inverse:
            # LAPACK inverts the transpose, which has the order that it works in, in place.
            factor, failed = dpotrf(block.T, lower=True, overwrite_a=True)
            if failed or dpotri(factor, lower=True, overwrite_c=True)[1]:
                return None
        steps, matrix, right = equal_shares_system(inverse, mass, shares)
        _, joint, failed = dposv(matrix, right, overwrite_a=True)
        return None if failed else equal_shares_step(y, steps, inverse, shares, joint)
    rows, helpers = criterion.rows, criterion.helpers
    curved = curvature(mass, moments, temperature)
    scaled = scaled_model(curved, mass, damping, shorten, rows, criterion.limits, unit, n_points)
    blocks, slack, damped = scaled
    new = step_of_rows(rows, helpers, blocks, slack, y / unit, damped, criterion.exact)
    if new is None:
        return None
    # The equation of each helper gives one of the multipliers.
    n_given = np.count_nonzero(np.abs(helpers).T @ np.abs(new))
    criterion.work.systems(1, int(np.count_nonzero(new) - n_given))
    return unit * new


def step_of_rows(
    rows: np.ndarray,
    helpers: np.ndarray,
    blocks: np.ndarray,
    slack: np.ndarray,
    y: np.ndarray,
    damping: float,
    exact: np.ndarray,
) -> np.ndarray | None:
    """The multipliers of ``rows @ n + helpers @ v <= limits`` that maximise the model, or None if they are not found.

    They have the shape of `y`, (n_rows, n_clusters), satisfy ``helpers' y = 0``, and are not negative except for
    `exact` rows, which are equalities. `slack` is the gradient at `y`, and `damping` times half the squared step is
    subtracted from the model, whose curvature is `blocks`, (n_clusters, n_clusters, n_groups).
    """
    # Block principal pivoting (Portugal, Judice, Vicente 1994): free multipliers that are negative and others whose
    # gradient is positive have the wrong state. All of them change their state at once, as long as their number falls,
    # and then for a few more rounds.
    model, free = (rows, helpers, blocks, slack, y, damping), (y > 0) | exact[:, None]
    least, most = -_ZERO * np.abs(y).max(), _ZERO * np.abs(slack).max()
    fewest, patience = y.size + 1, _FULL_PIVOTS
    for _ in range(_PIVOTS):
        matrix, right, reduced = reduced_system(model, free)
        if len(right):
            # The transpose has the order that LAPACK works in, and its upper triangle is set.
            _, right, failed = dposv(matrix.T, right, overwrite_a=True)
            if failed:
                # No point is near a boundary.
                return None
        new, wrong, n_wrong = expanded(model, free, exact, least, most, right, reduced)
        if not n_wrong:
            return np.where(exact[:, None], new, np.maximum(new, 0.0))
        if n_wrong < fewest:
            fewest, patience = n_wrong, _FULL_PIVOTS
        elif patience:
            patience -= 1
        else:
            # Murty's rule: only the last of them changes. This always ends.
            last = np.flatnonzero(wrong)[-1]
            wrong = np.arange(wrong.size).reshape(wrong.shape) == last
        free = free ^ wrong
    return None


_ascend = partial(dual_prices, max_steps=_SOLVE_STEPS, tol=_SOLVE_TOL)


def solve(points: Points, criterion: Criterion, start: np.ndarray | None = None) -> Prices:
    """Solve for the prices down to the last temperature, from zero or from the multipliers of a similar problem."""
    ascend = partial(_ascend, points, criterion)
    last_tol = min(_SOLVE_TOL, max(0.5 / points.n_samples, _LEAST_TOL))
    solved = ascend(start=start, levels=_COLD if start is None else _WARM, last_tol=last_tol)
    lists, n_left = points.lists, _LISTINGS
    while lists is not None and n_left and lists.outgrown(solved.prices):
        n_left -= 1
        solved = ascend(start=solved.multipliers, levels=_WARM)
    # Rounding removes an error of up to a point. A larger error may mean that a Newton step has failed.
    if solved.error > max(1.0, 10 * _SOLVE_TOL * points.n_samples):
        solved = min(solved, ascend(levels=_SLOW), key=lambda prices: prices.error)
    if points.rounding > _DOUBLE_ROUNDING or not criterion.rows.size:
        return solved
    solved, tight = _deepen(points, criterion, solved)
    if not tight:
        # Groups of one or two points can have prices far from zero, which only a slow decrease of temperature finds.
        slow, _ = _deepen(points, criterion, ascend(levels=_SLOW))
        solved = max(solved, slow, key=lambda prices: lower_bound(points, criterion, prices))
    return solved


def _deepen(points: Points, criterion: Criterion, solved: Prices) -> tuple[Prices, bool]:
    """Lower the temperature until smoothing no longer weakens the bound.

    Returns the prices, and whether the cost of the soft assignment is nearly equal to the bound.
    """
    bound = lower_bound(points, criterion, solved)
    for level in _DEEPER:
        # The Lagrangian of the soft assignment. It differs from the bound only by the smoothing, even if the soft table
        # violates the bounds.
        paid = solved.cost + float((solved.prices * solved.mass).sum())
        reduced = paid - paid_limits(criterion, solved.multipliers)
        if solved.converged and reduced - bound <= _TIGHT * abs(bound):
            break
        new = _ascend(points, criterion, start=solved.multipliers, levels=(level,))
        new_bound = lower_bound(points, criterion, new)
        if new_bound < bound:
            break
        solved, bound = new, new_bound
    return solved, abs(solved.cost - bound) <= 100 * _TIGHT * abs(bound)


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
    # Where the cheapest assignment may cost nothing, no gap is certain.
    return (cost - floor) / abs(floor) if floor > 0 or cost < 0 else np.inf


def certificate_text(fit: Mapping[str, float | None]) -> str:
    """How much cheaper other labels may be; `fit` has the attributes of a fit without "_"."""
    gap, cost, bound, violation = (fit.get(name) for name in ("gap", "cost", "lower_bound", "violation"))
    text = "how much cheaper other labels can be is not known"
    if gap is not None and math.isfinite(gap):
        # Rounded up, because it is a bound.
        most = f"{math.ceil(gap * 1e5) / 1e3:.3f} %"
        text = f"with these centres, no labels within the bounds are more than {most} cheaper"
    if cost is not None and bound is not None:
        # Labels of whole rows can be slightly off bounds that only parts of rows would meet, which makes them cheaper.
        text += f" (cost {cost:,.1f}, "
        reason = (
            f"the labels miss the bounds by up to {violation:.2g} rows" if violation else "of rounding errors"
        )
        below = f"slightly below the bound {bound:,.1f} because {reason})"
        text += f"lower bound {bound:,.1f})" if cost >= bound else below
    return f"{text}; other centres may be cheaper"


def _levels(
    levels: tuple[float, ...], points: Points, criterion: Criterion, rough: float
) -> tuple[float, ...]:
    """Raise temperatures to `rough`, and further if there are few points for each cell of the table.

    At low temperatures, few of these points are near a boundary. The smoothed dual then has almost no curvature in
    some cells, and most of Newton's steps fail.
    """
    level = _LEAST_ROUGH if rough else _LEAST_LEVEL
    least = level * criterion.n_counted * points.n_clusters / points.n_samples
    return tuple(dict.fromkeys(max(level, least, rough) for level in levels))


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
        solved = dual_prices(points, criterion, start=multipliers, levels=levels, max_steps=_APPROACH_STEPS)
        labels, counts, *_ = points.priced(solved.prices)
        multipliers = solved.multipliers
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
    solved = ascend(start=start, levels=levels, tol=tol)
    n_passes = solved.n_passes + 1
    if start is not None and solved.error > max(1.0, factor * FAR * points.n_samples):
        # The centres have moved too far for a start at the lowest temperature.
        levels = _levels(_FIRST[1:], points, criterion, rough)
        heated = ascend(start=start, levels=levels, tol=tol)
        n_passes += heated.n_passes
        solved = min(solved, heated, key=lambda prices: prices.error)
    labels, counts, _, reduced = points.priced(solved.prices)
    bound = reduced - paid_limits(criterion, solved.multipliers)
    if last is not None and bound > last.objective:
        return None
    # Without further Newton steps the bound is too low, which would be taken for progress, and the centres would follow
    # a table that is far off its bounds.
    if last is not None and not solved.converged and criterion.work.is_done(_PART):
        criterion.work.is_cut = True
        return None
    more = {
        "gap": certified_gap(criterion, solved, solved.cost, bound, solved.mass),
        "violation": float(criterion.excess(solved.mass).max()),
    }
    excess = float(criterion.excess(counts).max())
    return Step(
        labels, counts, 1.0, solved.prices, bound, solved.cost, excess, n_passes, solved.multipliers, more
    )
