"""The fairest assignment that costs no more than a budget: bisection on the tolerance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fairclust.base import NotSupported
from fairclust.solvers.bounds import Asked

# Halvings of the interval of tolerances: to 1e-4.
_STEPS = 14


class Attempt(NamedTuple):
    """What an assignment at some tolerance costs, what every other one costs at least, and the assignment.

    The cost is infinite where the lower bound alone is above the budget.
    """

    cost: float
    lower_bound: float
    found: Any


class Fairest(NamedTuple):
    """The end of the bisection.

    Attributes
    ----------
    tolerance : float
        The smallest that was found to cost no more than the budget; 1 if only no bound does.
    tolerance_bound : float
        At this tolerance and below every assignment costs more, by its lower bound; 0 if that was not shown of any.
    found : object
        The assignment.
    """

    tolerance: float
    tolerance_bound: float
    found: Any


def check_budget(
    asked: Asked, max_cost: float | None, max_cost_increase: float | None, plain_cost: float
) -> float:
    """What an assignment may cost.

    Parameters
    ----------
    asked : Asked
    max_cost, max_cost_increase : float or None
        As such, or over `plain_cost`: one of them.
    plain_cost : float
        What it costs without bounds.

    Raises
    ------
    ValueError
        Two budgets, or a budget beside a bound that it is to find.
    NotSupported
        A ValueError: a budget below the cost without bounds.
    """
    if max_cost is not None and max_cost_increase is not None:
        raise ValueError("give max_cost or max_cost_increase, not both")
    if asked.tolerance != 0 or asked.min_balance is not None or asked.max_gap is not None:
        raise ValueError("max_cost finds the tolerance: give it without tolerance, min_balance and max_gap")
    budget = plain_cost * (1 + (max_cost_increase or 0.0)) if max_cost is None else max_cost
    if budget < plain_cost:
        raise NotSupported(f"a cost of {budget:.6g} cannot be met: without any bounds it is {plain_cost:.6g}")
    return float(budget)


def fairest_within(attempt: Callable[[float | None], Attempt], budget: float) -> Fairest:
    """The smallest tolerance whose assignment costs no more than the budget.

    Parameters
    ----------
    attempt : callable
        From a tolerance to its assignment, without bounds on the shares for None; raises `NotSupported` where no
        assignment is within the bounds.
    budget : float

    Raises
    ------
    NotSupported
        With bounded sizes, even the loosest shares cost more.
    """
    strict = _attempt(attempt, 0.0)
    if strict is not None and strict.cost <= budget:
        return Fairest(0.0, 0.0, strict.found)
    best = attempt(None)
    if best.cost > budget:
        found = f"{best.cost:.6g}" if best.cost < np.inf else f"at least {best.lower_bound:.6g}"
        raise NotSupported(
            f"a cost of {budget:.6g} cannot be met: without bounds on the shares it is {found}"
        )
    low, high, refused = 0.0, 1.0, 0.0
    for _ in range(_STEPS):
        tolerance = (low + high) / 2
        tried = _attempt(attempt, tolerance)
        if tried is not None and tried.cost <= budget:
            high, best = tolerance, tried
            continue
        low = tolerance
        if tried is None or tried.lower_bound > budget:
            refused = tolerance
    return Fairest(high, refused, best.found)


def _attempt(attempt: Callable[[float | None], Attempt], tolerance: float) -> Attempt | None:
    try:
        return attempt(tolerance)
    except NotSupported:
        return None
