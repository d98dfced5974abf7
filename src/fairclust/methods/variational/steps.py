"""The assignment steps of variational methods: the paper's bound optimisation, and Newton's method.

Each takes the points at fixed centres and the step before (None at first), and returns the next step.
"""

from __future__ import annotations

import numpy as np

from fairclust.base import Diverged
from fairclust.kernels.bound import bound_iteration
from fairclust.methods.variational.penalty import (
    Effort,
    PenaltySolution,
    Target,
    fairness_term,
    minimize_penalty,
)
from fairclust.solvers.alternation import Step, plain_step
from fairclust.solvers.points import Points

# Prices that have not converged are accepted if the energy has fallen enough. With fewer than _MANY_POINTS points for
# each cell of the table, enough is the fraction _FALL of the clustering term. With more points, it is the fraction
# _FALL_OF_MANY after a single Newton step, and any fall after more passes. The second rule can end in worse minima if
# there are few points.
_FALL, _FALL_OF_MANY, _MANY_POINTS = 3e-5, 1e-5, 150


def bound_step(
    points: Points, last: Step | None, *, lam: float, lipschitz: float, target: np.ndarray
) -> Step:
    """The paper's step, from a cold start. Its objective is the energy of the soft assignment."""
    if lam == 0:
        return plain_step(points, last)
    found = bound_iteration(points, lam=lam, lipschitz=lipschitz, target=target)
    if not np.isfinite(found.bound):
        raise Diverged(f"the bound is {found.bound} after {found.n_iter} inner updates (lam={lam:g})")
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
