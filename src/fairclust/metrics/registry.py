"""The decorator that declares a metric: what it needs, its range, which values are better, and who defines it.

Snakemake reads names and directions when it starts, so the modules of metrics import SciPy and compiled code within
their functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

__all__ = ["DECLARED", "Metric", "metric"]

Needs = Literal["table", "X", "W", "truth", "numbers"]
Direction = Literal["lower", "higher", "none"]
_Function = TypeVar("_Function", bound=Callable[..., float])


@dataclass(frozen=True)
class Metric:
    """The properties of a metric.

    Attributes
    ----------
    name : str
        Key in `METRICS` and column in result files.
    label : str
        Heading for tables and axes.
    function : callable
        Called with the table, (X, labels), (W, labels), (labels, truth) or labels, by ``needs``.
    needs : {'table', 'X', 'W', 'truth', 'numbers'}
        The input from which it is computed. 'numbers' are sensitive columns of numbers.
    range : tuple of float
        Smallest and largest possible value, both included. ``nan`` means that the metric is not applicable.
    direction : {'lower', 'higher', 'none'}
        Which values are better.
    source : str
        Paper (and equation) that defines it, or 'ours'.
    decimals : int
        Digits to print after the point.
    takes : tuple of str
        Names of the keyword arguments that `score_labels` passes to ``function``.
    audit : bool
        Whether `audit` reports it. A run computes it only if a configuration, table or figure names it.
    """

    name: str
    label: str
    function: Callable[..., float]
    needs: Needs
    range: tuple[float, float]
    direction: Direction
    source: str
    decimals: int
    takes: tuple[str, ...]
    audit: bool


DECLARED: list[Metric] = []


def metric(
    label: str,
    range: tuple[float, float],
    direction: Direction,
    source: str,
    *,
    needs: Needs = "table",
    decimals: int = 4,
    takes: tuple[str, ...] = (),
    audit: bool = False,
) -> Callable[[_Function], _Function]:
    """Declare the decorated function as a metric of its name, with the properties of `Metric`."""

    def declare(function: _Function) -> _Function:
        found: Any = function
        DECLARED.append(
            Metric(found.__name__, label, function, needs, range, direction, source, decimals, takes, audit)
        )
        return function

    return declare
