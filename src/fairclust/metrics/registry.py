"""The decorator that declares a metric: what it needs, its range, which values are better, and who defines it.

Snakemake reads names and directions when it starts, so the modules of metrics import SciPy and compiled code within
their functions. The decorator adds range, direction and source to the docstrings, and to those of metrics of points
also these parameters and errors:

Parameters
----------
X : array-like of shape (n_samples, n_features)
    Finite points.
labels : array-like of int, shape (n_samples,)
    Cluster of each point, from 0.

Raises
------
ValueError
    If an argument is not as described, or the shapes disagree.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal, TypeVar, cast

from fairclust.group_encoding import check_same_order

Needs = Literal["table", "X", "W", "truth", "numbers"]
Direction = Literal["lower", "higher", "none"]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_HEADING = re.compile(r"\n\n(\w+)\n-+\n")
_NO_PAPERS = ("count", "ours")
# Arguments with an entry for each row. pandas objects among them must have one order.
_OF_ROWS = ("X", "labels", "truth", "groups", "sensitive_features")
_ORDER = ("Parameters", "Attributes", "Returns", "Raises", "Notes", "References", "Examples")


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
    range : tuple of float
        Smallest and largest possible value, both included. ``nan`` means that the metric is not applicable.
    direction : {'lower', 'higher', 'none'}
        Which values are better.
    source : str
        Paper (and equation) that defines it, or 'ours'.
    needs : {'table', 'X', 'W', 'truth', 'numbers'}
        The input from which it is computed. 'numbers' are sensitive columns of numbers.
    decimals : int
        Digits to print after the point.

    Examples
    --------
    >>> from fairclust.metrics import METRICS
    >>> METRICS["balance"].label, METRICS["balance"].direction, METRICS["balance"].range
    ('Balance', 'higher', (0.0, 1.0))
    >>> METRICS["balance"].worst([0.4, 0.9])
    0.4
    """

    name: str
    label: str
    function: Callable[..., float]
    range: tuple[float, float]
    direction: Direction
    source: str
    needs: Needs = "table"
    decimals: int = 4

    def worst(self, values: Iterable[float]) -> float:
        """The value of the least fair sensitive column; ``nan`` if there is none."""
        worst = max if self.direction == "lower" else min
        return worst((value for value in values if not math.isnan(value)), default=math.nan)


DECLARED: list[Metric] = []


def metric(
    label: str, range: tuple[float, float], direction: Direction, source: str, **more: Any
) -> Callable[[_Function], _Function]:
    """Declare the decorated function as a metric of its name, with the properties of `Metric`."""

    def declare(function: _Function) -> _Function:
        low, high = range
        values = f"At least {low:g}" if math.isinf(high) else f"From {low:g} to {high:g}"
        better = "" if direction == "none" else f"; {direction} is better"
        returns = f"{function.__annotations__['return']}\n    {values}{better}."
        complete = documented(function, source, returns)
        DECLARED.append(Metric(function.__name__, label, complete, range, direction, source, **more))
        return complete

    return declare


def documented(function: _Function, source: str = "", returns: str = "") -> _Function:
    """Complete a docstring by the parameters and errors that functions share, and compare the indexes of arguments.

    Parameters stand in the docstrings of this module, of the function's module and of the function. The last one that
    has a parameter counts. `source` and `returns` are for a function that states none.
    """
    parameters = inspect.signature(function).parameters
    entries: dict[str, str] = {}
    raises = ""
    for doc in (__doc__, function.__globals__["__doc__"], function.__doc__):
        sections = doc_sections(doc)
        stated = doc_entries(sections.get("Parameters", ""))
        entries |= stated
        raises = sections.get("Raises", raises) if stated.keys() & parameters.keys() else raises
    shown = "\n".join(entries[name] for name in parameters if name in entries)
    references = "" if source in _NO_PAPERS else source
    known = {"Returns": returns, "Raises": raises, "References": references}
    complete = {**known, **sections, "Parameters": shown}
    parts = [f"{name}\n{'-' * len(name)}\n{complete[name]}" for name in _ORDER if complete.get(name)]
    function.__doc__ = "\n\n".join([complete[""], *parts])

    @functools.wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        values = {**dict(zip(parameters, args, strict=False)), **given}
        paired = [(name, values[name]) for name in _OF_ROWS if name in values]
        for (first, rows), (name, others) in combinations(paired, 2):
            check_same_order(rows, others, name, first)
        return function(*args, **given)

    return cast("_Function", checked)


def doc_sections(doc: str | None) -> dict[str, str]:
    """The sections of a docstring in numpydoc by their headings; the text before them has the empty heading."""
    text, *parts = _HEADING.split(inspect.cleandoc(doc or ""))
    return {"": text, **dict(zip(parts[::2], parts[1::2], strict=True))}


def doc_entries(section: str) -> dict[str, str]:
    """The description of each parameter in a section."""
    return {entry.partition(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", section)}
