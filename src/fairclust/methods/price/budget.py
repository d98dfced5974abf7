"""The smallest tolerance whose assignment or clustering is within a budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fairclust.base import NotSupported
from fairclust.kernels.points import TiledPoints
from fairclust.methods.price.rounding import round_prices
from fairclust.solvers.alternation import Prototypes, Run
from fairclust.solvers.criteria import Bounds, Criterion, Work
from fairclust.solvers.prices import Prices, lower_bound, solve

# The limit of work after which the bisection ends. What has begun is finished, within a limit of its own.
_SECONDS = 2.0
# Costs that differ by a smaller part are equal.
_EQUAL = 1e-9
# Number of times the interval [0, 1] of tolerances is halved: to a width of less than 1e-4.
_STEPS = 14


class Attempt(NamedTuple):
    """The assignment at one tolerance, its cost, and a lower bound on the cost of every assignment at this tolerance.

    If the lower bound is above the budget, the cost is infinite and no labels were computed. If no assignment is within
    the bounds, the cost is NaN and the lower bound infinite.
    """

    cost: float
    lower_bound: float
    result: Any


def check_budget(
    bounds: Bounds, max_cost: float | None, max_cost_increase: float | None, plain_cost: float, error: float
) -> float:
    """The most that an assignment may cost: `max_cost`, or `plain_cost` and the fraction `max_cost_increase` of it.

    It is raised by the relative rounding error of costs, `error`. Both budgets, or a budget beside another bound,
    are a ValueError, and a budget below `plain_cost` is `NotSupported`.
    """
    if max_cost is not None and max_cost_increase is not None:
        raise ValueError("give max_cost or max_cost_increase, not both")
    if bounds.tolerance != 0 or bounds.min_balance is not None or bounds.max_gap is not None:
        raise ValueError("max_cost finds the tolerance: give it without tolerance, min_balance and max_gap")
    budget = plain_cost + (max_cost_increase or 0.0) * abs(plain_cost) if max_cost is None else max_cost
    most = budget + max(_EQUAL, error) * abs(budget)
    if not most >= plain_cost:
        raise NotSupported(
            f"a cost of {budget:.6g} cannot be met: without any bounds it is {plain_cost:.6g}. Pass a larger budget"
        )
    return float(most)


def fairest_within(
    attempt: Callable[[float | None, Work], Attempt], budget: float
) -> tuple[float, float, Any]:
    """The smallest tolerance found with an assignment within the budget, 1 for none; one so strict that all cost more,
    or 0; and the assignment.

    `attempt` takes a tolerance, or None for no bounds on the shares, and a limit of work. It raises `NotSupported` if
    no assignment is within the bounds; so does this function if even the one without bounds on the shares costs more.
    """
    spent = 0.0

    def attempted(tolerance: float | None) -> Attempt:
        nonlocal spent
        work = Work()
        try:
            return attempt(tolerance, work)
        except NotSupported:
            if tolerance is None:
                raise
            return Attempt(np.nan, np.inf, None)
        finally:
            spent += max(work.spent, 0.0)

    strict = attempted(0.0)
    if strict.cost <= budget:
        return 0.0, 0.0, strict.result
    best = attempted(None)
    if best.cost > budget:
        least = f"{best.cost:.6g}" if best.cost < np.inf else f"at least {best.lower_bound:.6g}"
        raise NotSupported(
            f"a cost of {budget:.6g} cannot be met: without bounds on the shares it is {least}. "
            "Pass a larger budget or loosen the other bounds"
        )
    low, high, refused = 0.0, 1.0, 0.0
    for _ in range(_STEPS):
        if spent >= _SECONDS:
            break
        tolerance = (low + high) / 2
        tried = attempted(tolerance)
        if tried.cost <= budget:
            high, best = tolerance, tried
            continue
        low = tolerance
        if tried.lower_bound > budget:
            refused = tolerance
    return high, refused, best.result


def fairest_clustering(
    points: TiledPoints,
    criterion_of: Callable[..., Criterion],
    best_of: Callable[..., tuple[list[Run], Prices]],
    starts: Sequence[Prototypes],
    budget: float,
    unit: float,
) -> tuple[Run, tuple[float, float, tuple[Criterion, Prices]]]:
    """The fairest clustering within the budget, and what `fairest_within` returns for assignments to its centres.

    `criterion_of` takes sizes of groups, and `best_of` a criterion, such a function and starts. It returns runs, the
    cheapest first, and its prices. A cost of the points is `unit` times as much in the budget.
    """

    def criterion_within(tolerance: float | None, work: Work) -> Callable[..., Criterion]:
        return lambda *sizes, **more: replace(criterion_of(*sizes, tolerance=tolerance, **more), work=work)

    def attempt(criterion: Criterion, prices: Prices, kept: Any) -> Attempt:
        least = lower_bound(points, criterion, prices) * unit
        # If the lower bound is above the budget, the labels need not be computed.
        paid = np.inf if least > budget else round_prices(points, criterion, prices)[1] * unit
        return Attempt(paid, least, kept)

    # Without bounds, fair centres can lead to a dearer clustering than the plain starts.
    plain = starts

    def clustering(tolerance: float | None, work: Work) -> Attempt:
        nonlocal starts
        within = criterion_within(tolerance, work)
        criterion = within(points.group_sizes)
        runs, prices = best_of(points, criterion, within, plain if tolerance is None else starts)
        # The final centres for one tolerance are good starts for the next.
        starts = [run.prototypes for run in runs]
        points.measure(starts[0].centers)
        return attempt(criterion, prices, runs[0])

    def assignment(tolerance: float | None, work: Work) -> Attempt:
        criterion = criterion_within(tolerance, work)(points.group_sizes)
        prices = solve(points, criterion)
        return attempt(criterion, prices, (criterion, prices))

    _, _, run = fairest_within(clustering, budget)
    points.measure(run.prototypes.centers)
    return run, fairest_within(assignment, budget)
