"""The assignment steps of the alternation, one function for each solver: plain, bound, Newton, bounded tables.

Each takes the points at fixed centres and the step before (None at first), and returns the next step.
"""

from __future__ import annotations

import numpy as np

from fairclust.base import Diverged
from fairclust.solvers.alternation import Step
from fairclust.solvers.bound import bound_iteration, fairness_term
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.fair_assignment import certified_gap, paid_limits
from fairclust.solvers.penalty import Effort, PenaltySolution, Target, minimize_penalty
from fairclust.solvers.points import Points
from fairclust.solvers.prices import dual_prices

# Prices that have not converged are accepted if the energy has fallen enough. With fewer than _MANY_POINTS points for
# each cell of the table, enough is the fraction _FALL of the clustering term. With more points, it is the fraction
# _FALL_OF_MANY after a single Newton step, and any fall after more passes. The second rule can end in worse minima if
# there are few points.
_FALL, _FALL_OF_MANY, _MANY_POINTS = 3e-5, 1e-5, 150
# Temperatures of `price_step`, for the first step and for later ones. They are not low, because the last assignment of
# a run is solved again with lower ones.
_FIRST = (0.2, 0.04, 0.008, 0.0016)
_NEXT = (0.0016,)
_STEPS, _TOL, _FAR = 15, 3e-5, 1e-4
# The part of the work that may be spent before the last assignment is solved.
_PART = 0.5
# Factor for `_TOL` and `_FAR` during the search for the best of several starts.
ROUGH = 30
# No temperature is below this level divided by the number of points for each cell of the table.
_LEAST_LEVEL = 0.5
# The table may always be off its bounds by this part of a point, because the centres hardly depend on it.
_PART_OF_A_POINT = 0.3


def plain_step(points: Points, last: Step | None) -> Step:
    """Assign every point to its nearest cluster."""
    offset = np.zeros((points.n_groups, points.n_clusters))
    labels, counts, cost = points.hard(1.0, offset)
    return Step(labels, counts, 1.0, offset, cost, cost, 0.0, 0)


def bound_step(
    points: Points,
    last: Step | None,
    *,
    lam: float,
    lipschitz: float,
    target: np.ndarray,
    max_iter: int,
    tol: float,
) -> Step:
    """The paper's step, from a cold start. Its objective is the energy of the soft assignment."""
    if lam == 0:
        return plain_step(points, last)
    found = bound_iteration(points, lam=lam, lipschitz=lipschitz, target=target, max_iter=max_iter, tol=tol)
    fairness = fairness_term(found.mass, target)
    labels, counts, _ = points.hard(found.scale, found.offset)
    energy = found.clustering + lam * fairness
    return Step(labels, counts, found.scale, found.offset, energy, found.clustering, fairness, found.n_iter)


def newton_step(
    points: Points,
    last: Step | None,
    *,
    lam: float,
    target: Target,
    prices: np.ndarray | None,
    hurried: bool = False,
) -> Step | None:
    """Newton's method from the prices of the last step or from a cold start.

    At the first step, it starts from `prices` if given. `hurried` says that the first centres will move far, so that
    exact prices for them are a waste of time: with many points, a cold first step then ends early. Returns None if no
    result is as good as the last step.
    """
    most_empty, most = (points.n_clusters, np.inf) if last is None else (last.n_empty, last.objective)
    empty_cells = 0 if last is None else (last.counts == 0).sum()
    many = points.n_samples >= _MANY_POINTS * points.n_groups * points.n_clusters
    if last is not None:
        prices = last.offset
    cold = Effort.FIRST if hurried and last is None and many else Effort.FULL
    starts: list[tuple[np.ndarray | None, Effort]] = [(None, cold)]
    if prices is not None:
        starts.insert(0, (prices, Effort.FULL))
    if last is not None:
        # If the centres have moved far, a cold start may end in a worse minimum than the last prices.
        starts.append((last.offset, Effort.HEAT))
        starts.insert(0, (last.offset, Effort.STEP if many else Effort.BRIEF))
    tried: list[PenaltySolution] = []
    for start, effort in starts:
        # As long as single Newton steps succeed, the scale of the temperatures need not be measured again.
        state = None if last is None else last.state
        unit = float(state) if state is not None and effort is Effort.STEP else None
        found = minimize_penalty(points, lam=lam, target=target, start=start, effort=effort, unit=unit)
        tried.append(found)
        # A warm start may not get away from its start, or it may empty some cells. As long as the energy falls, a
        # result that has not converged is good enough to continue from.
        least_fall = _FALL
        if many:
            least_fall = _FALL_OF_MANY if effort is Effort.STEP else 0.0
        falls = last is not None and found.energy <= most - least_fall * found.clustering
        sound = start is None or ((found.converged or falls) and (found.counts == 0).sum() <= empty_cells)
        # The energy does not penalise empty clusters, so their number is compared as well.
        if sound and found.n_empty <= most_empty and found.energy <= most:
            break
    n_passes = sum(found.n_passes for found in tried)
    found = min(tried, key=PenaltySolution.rank)
    if found.n_empty > most_empty or found.energy > most:
        return None
    return Step(
        found.labels,
        found.counts,
        1.0,
        found.prices,
        found.energy,
        found.clustering,
        found.fairness,
        n_passes,
        found.unit,
    )


def _levels(levels: tuple[float, ...], points: Points) -> tuple[float, ...]:
    """Raise low temperatures if there are few points for each cell of the table.

    At low temperatures, few of these points are near a boundary. The smoothed dual then has almost no curvature in
    some cells, and most of Newton's steps fail.
    """
    least = _LEAST_LEVEL * points.n_groups * points.n_clusters / points.n_samples
    return tuple(dict.fromkeys(max(level, least) for level in levels))


def price_step(
    points: Points,
    last: Step | None,
    *,
    criterion: Criterion,
    multipliers: np.ndarray | None = None,
    rough: bool = False,
) -> Step | None:
    """The cheapest table within the bounds; None if its lower bound is above the last step's.

    At the first step, Newton's method starts from `multipliers`, if given. If `rough`, it stops early.
    """
    if not np.isfinite(points.row_min_sum):
        raise Diverged(f"the distances sum to {points.row_min_sum}")
    start = multipliers if last is None else last.state
    factor = ROUGH if rough else 1
    tol = max(factor * _TOL, _PART_OF_A_POINT / points.n_samples)
    levels = _levels(_FIRST if start is None else _NEXT, points)
    found = dual_prices(points, criterion, start=start, levels=levels, max_steps=_STEPS, tol=tol, part=_PART)
    n_passes = found.n_passes + 1
    if start is not None and found.error > max(1.0, factor * _FAR * points.n_samples):
        # The centres have moved too far for a start at the lowest temperature.
        levels = _levels(_FIRST[1:], points)
        heated = dual_prices(
            points, criterion, start=start, levels=levels, max_steps=_STEPS, tol=tol, part=_PART
        )
        n_passes += heated.n_passes
        found = min(found, heated, key=lambda prices: prices.error)
    labels, counts, _, least = points.priced(found.prices)
    bound = least - paid_limits(criterion, found)
    if last is not None and bound > last.objective:
        return None
    more = {
        "gap": certified_gap(criterion, found, found.cost, bound, found.mass),
        "violation": float(criterion.excess(found.mass).max()),
    }
    excess = float(criterion.excess(counts).max())
    return Step(
        labels, counts, 1.0, found.prices, bound, found.cost, excess, n_passes, found.multipliers, more
    )
