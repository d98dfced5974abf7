"""Penalty methods asked for a level of fairness: the smallest weight that reaches it, along a warm path."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import NON_NEGATIVE
from fairclust.metrics.fairness import balance, delta, fairness_error

WEIGHT = [StrOptions({"auto"}), *NON_NEGATIVE]
LEVELS: dict[str, list[Any]] = {
    "max_fairness_error": [None, *NON_NEGATIVE],
    "min_balance": [None, Interval(Real, 0, 1, closed="both")],
    "max_gap": [None, *NON_NEGATIVE],
}
# Every group has at least this part of its target share in every cluster, and at most its inverse.
FOUR_FIFTHS = 0.8
_FACTOR = 4.0
_MOST_STEPS = 12
_MOST_HALVINGS = 4

Fitted = TypeVar("Fitted")


def share_ratio(counts: np.ndarray, target: np.ndarray) -> float:
    """The least ratio, either way, of a group's share in a cluster to its target share; 0 for empty clusters."""
    sizes = counts.sum(axis=0)
    shares = counts / np.maximum(sizes, 1)
    with np.errstate(divide="ignore"):
        ratios = np.minimum(shares / target[:, None], target[:, None] / shares)
    return float(np.where(sizes > 0, ratios, 0.0).min())


@dataclass(frozen=True)
class Level:
    """What is asked of the group-by-cluster table, or of that of each sensitive column.

    Attributes
    ----------
    name : str
        The parameter that asks for it; "share_ratio" for the default.
    bound : float
    """

    name: str
    bound: float

    def worst(self, tables: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> float:
        """The measure that is bounded, of the column that is the least fair."""
        values = [self.value(*of_column) for of_column in zip(tables, targets, strict=True)]
        return max(values) if self.is_low else min(values)

    def value(self, counts: np.ndarray, target: np.ndarray) -> float:
        """The measure that is bounded, of one column."""
        if self.name == "max_fairness_error":
            return float(fairness_error(counts, target))
        if self.name == "max_gap":
            return float(delta(counts))
        return float(balance(counts)) if self.name == "min_balance" else share_ratio(counts, target)

    @property
    def is_low(self) -> bool:
        """Whether small values are fair."""
        return self.name.startswith("max_")

    def reached(self, value: float) -> bool:
        return value <= self.bound if self.is_low else value >= self.bound

    def __str__(self) -> str:
        if self.name == "share_ratio":
            return f"shares within {self.bound:g} of the target shares"
        return f"{self.name}={self.bound:g}"


def asked_level(
    estimator: Any, weight: str, sizes: Sequence[np.ndarray], *, default: bool = True
) -> Level | None:
    """The level that an estimator's parameters ask for; None if its weight is given instead.

    Parameters
    ----------
    estimator : object
        With the parameters of `LEVELS`.
    weight : str
        Name of the parameter that is the weight.
    sizes : list of ndarray of shape (n_values,)
        Rows of each value, for every sensitive column.
    default : bool
        Whether a weight of "auto" alone asks for shares within four fifths of the target's.

    Raises
    ------
    ValueError
        Two levels, a level beside a weight, or a balance above the data's own.
    """
    asked = [Level(name, bound) for name in LEVELS if (bound := getattr(estimator, name)) is not None]
    if len(asked) > 1:
        raise ValueError(f"give one level of fairness, found {' and '.join(map(str, asked))}")
    automatic = isinstance(getattr(estimator, weight), str)
    if asked and not automatic:
        raise ValueError(
            f"{asked[0]} asks for the smallest weight that reaches it: leave {weight} at 'auto', "
            f"found {weight}={getattr(estimator, weight)}"
        )
    largest = min(of_column.min() / of_column.max() for of_column in sizes)
    if asked and asked[0].name == "min_balance" and asked[0].bound > largest:
        raise ValueError(
            f"min_balance={asked[0].bound:g} cannot be met: the data's own balance, {largest:.6g}, is the "
            "largest that all clusters can have"
        )
    if asked or not automatic or not default:
        return asked[0] if asked else None
    return Level("share_ratio", FOUR_FIFTHS)


@dataclass(frozen=True)
class WeightPath:
    """What the search for a weight has seen, in the order of the weights.

    Attributes
    ----------
    level : Level
        What was asked for.
    weights : ndarray of shape (n_fits,)
        Ascending, in the unit of the method's parameter.
    values : ndarray of shape (n_fits,)
        What `level` bounds, of the labels: fairness error, balance, gap or ratio of shares.
    costs : ndarray of shape (n_fits,)
        Clustering term of the objective.
    best : int or None
        Position of the fit that was kept; None if no weight reached the level.
    """

    level: Level
    weights: np.ndarray
    values: np.ndarray
    costs: np.ndarray
    best: int | None

    def in_units(self, of_weights: float, of_costs: float) -> WeightPath:
        """The same path with weights and costs in other units."""
        return replace(self, weights=self.weights * of_weights, costs=self.costs * of_costs)


@dataclass(eq=False)
class _Seen(Generic[Fitted]):
    weight: float
    value: float
    cost: float
    model: Fitted


def smallest_weight(
    fit: Callable[[float, Fitted | None], tuple[Fitted, list[np.ndarray], float]],
    level: Level,
    targets: Sequence[np.ndarray],
    first: float,
) -> tuple[Fitted, float, WeightPath]:
    """Raise a weight until the level is reached, then halve the last step four times.

    Parameters
    ----------
    fit : callable
        From a weight, and the fit to start from (None at first), to a fit, its value-by-cluster table for every
        sensitive column, and the clustering term of its objective.
    level : Level
    targets : list of ndarray of shape (n_values,)
        The target shares of every column.
    first : float
        The first weight after 0; each next one is four times as large, up to 4**11 times.

    Returns
    -------
    fitted
        Of the smallest weight seen that reaches the level, else the fairest.
    weight : float
    path : WeightPath
    """
    seen: list[_Seen[Fitted]] = []

    def look(weight: float, before: Fitted | None) -> _Seen[Fitted]:
        with warnings.catch_warnings():
            # What the kept fit has to say is said at the end.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model, tables, cost = fit(weight, before)
        seen.append(_Seen(weight, level.worst(tables, targets), cost, model))
        return seen[-1]

    low = look(0.0, None)
    high = low if level.reached(low.value) else None
    weight = first
    while high is None and len(seen) <= _MOST_STEPS:
        now = look(weight, low.model)
        if level.reached(now.value):
            high = now
        else:
            low, weight = now, weight * _FACTOR
    if high is not None:
        for _ in range(_MOST_HALVINGS if high is not low else 0):
            middle = np.sqrt(low.weight * high.weight) if low.weight else high.weight / _FACTOR
            now = look(float(middle), low.model)
            low, high = (low, now) if level.reached(now.value) else (now, high)
    best = high
    if best is None:
        best = min(seen, key=lambda one: one.value if level.is_low else -one.value)
    ordered = sorted(seen, key=lambda one: one.weight)
    path = WeightPath(
        level,
        weights=np.array([one.weight for one in ordered]),
        values=np.array([one.value for one in ordered]),
        costs=np.array([one.cost for one in ordered]),
        best=None if high is None else ordered.index(best),
    )
    return best.model, best.weight, path


def not_reached(path: WeightPath) -> str:
    """What to say, and to change, where no weight reached the level."""
    fairest = path.values.min() if path.level.is_low else path.values.max()
    return (
        f"no weight up to {path.weights[-1]:.3g} reaches {path.level} (the fairest fit has {fairest:.3g}). Ask for "
        "less, for fewer clusters, or take PriceFairKMeans, whose clusters keep their bounds up to a point"
    )
