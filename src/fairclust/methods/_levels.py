"""The search of penalty methods for the smallest weight that reaches a level of fairness."""

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
# By default every group has at least this fraction of its target share in every cluster, and at most its inverse.
FOUR_FIFTHS = 0.8
_FACTOR = 4.0
_MOST_STEPS = 12
_MOST_HALVINGS = 4

Fitted = TypeVar("Fitted")


@dataclass(frozen=True)
class Level:
    """A bound on a fairness measure of the group-by-cluster table, or of the table of each sensitive column."""

    name: str  # the parameter that sets the bound; "share_ratio" for the default
    bound: float  # largest value of the measure for parameters "max_...", smallest value for the others

    def worst(self, tables: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> float:
        """The bounded measure of the least fair column, from the tables and target shares of all columns."""
        values = [self.value(*of_column) for of_column in zip(tables, targets, strict=True)]
        return max(values) if self.is_low else min(values)

    def value(self, counts: np.ndarray, target: np.ndarray) -> float:
        """The bounded measure of one column."""
        if self.name == "max_fairness_error":
            return float(fairness_error(counts, target))
        if self.name == "max_gap":
            return float(delta(counts))
        if self.name == "min_balance":
            return float(balance(counts))
        # The smallest ratio of a group's share in a cluster and its target share, the smaller one divided by the larger
        # one; 0 with empty clusters.
        sizes = counts.sum(axis=0)
        shares = counts / np.maximum(sizes, 1)
        with np.errstate(divide="ignore"):
            ratios = np.minimum(shares / target[:, None], target[:, None] / shares)
        return float(np.where(sizes > 0, ratios, 0.0).min())

    @property
    def is_low(self) -> bool:
        """Whether smaller values are fairer."""
        return self.name.startswith("max_")

    def reached(self, value: float) -> bool:
        return value <= self.bound if self.is_low else value >= self.bound

    def __str__(self) -> str:
        if self.name == "share_ratio":
            return f"shares of at least {self.bound:g} and at most 1 / {self.bound:g} times the target shares"
        return f"{self.name}={self.bound:g}"


@dataclass(frozen=True)
class WeightPath:
    """All fits of a search for the smallest weight that reaches a level of fairness, sorted by weight.

    Attributes
    ----------
    level : Level
        The level to reach.
    weights : ndarray of shape (n_fits,)
        Ascending, in the unit of the method's parameter.
    values : ndarray of shape (n_fits,)
        The measure that `level` bounds, of the labels of each fit: fairness error, balance, gap or ratio of shares.
    costs : ndarray of shape (n_fits,)
        Clustering term of the objective of each fit.
    best : int or None
        Position of the fit that was kept. None if no weight reached the level; the fairest fit was kept then.

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import VariationalFairKMeans
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> sex = np.where(X[:, 0] > 0, "m", "f")
    >>> model = VariationalFairKMeans(2, lam="auto", min_balance=0.5, random_state=0)
    >>> path = model.fit(X, sensitive_features=sex).path_
    >>> bool(path.values[path.best] >= 0.5), str(path.level)
    (True, 'min_balance=0.5')
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
    """Raise a weight until a fit reaches the level, then bisect the last step four times on a logarithmic scale.

    `fit` takes a weight and a fit to start from, or None, and returns a fit, its table for every column and its
    clustering term. Weights are 0, `first`, and so on in steps of four up to 4**11 `first`. Returns the fit with the
    smallest weight that reaches the level (if none does, the fairest fit), its weight, and all fits.
    """
    seen: list[_Seen[Fitted]] = []

    def look(weight: float, before: Fitted | None) -> _Seen[Fitted]:
        with warnings.catch_warnings():
            # Only the fit that is kept should warn, which its method does after the search.
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


def fit_to_level(
    estimator: Any,
    weight: str,
    fit: Callable[[float, Fitted | None], tuple[Fitted, list[np.ndarray], float]],
    *,
    sizes: Sequence[np.ndarray],
    targets: Sequence[np.ndarray],
    first: float,
    into: Callable[[float], float] = float,
    unit: float = 1.0,
    default: float | None = None,
) -> tuple[Fitted, float]:
    """The fit with the weight that an estimator's parameter states, or with the smallest that reaches its level.

    Also returns the weight, and sets `path_`. `sizes` counts the rows with each value of every column, `into` converts
    a weight into the unit of `fit`, and `unit` back. "auto" without a level is `default`, or a search for four fifths.
    """
    automatic = isinstance(getattr(estimator, weight), str)
    asked = [Level(name, bound) for name in LEVELS if (bound := getattr(estimator, name)) is not None]
    if len(asked) > 1:
        raise ValueError(
            f"give one level of fairness, found {' and '.join(map(str, asked))}: keep one of them"
        )
    if asked and not automatic:
        raise ValueError(
            f"{asked[0]} asks for the smallest weight that reaches it: leave {weight} at 'auto', "
            f"found {weight}={getattr(estimator, weight)}"
        )
    largest = min(of_column.min() / of_column.max() for of_column in sizes)
    if asked and asked[0].name == "min_balance" and asked[0].bound > largest:
        raise ValueError(
            f"min_balance={asked[0].bound:g} cannot be met: the data's own balance, {largest:.6g}, is the "
            "largest that all clusters can have: pass at most this"
        )
    four_fifths = Level("share_ratio", FOUR_FIFTHS)
    searched = four_fifths if automatic and default is None else None
    level = asked[0] if asked else searched
    estimator.__dict__.pop("path_", None)
    if level is None:
        given = into(float(getattr(estimator, weight) if default is None or not automatic else default))
        found, tables, _ = fit(given, None)
        if automatic and not four_fifths.reached(worst := four_fifths.worst(tables, targets)):
            estimator._complain(
                f"the default weight, {weight}={given:g}, leaves a group with {worst:.2g} of its target share, or with "
                f"the inverse of this, in some cluster: raise {weight}, or set min_balance or max_gap to search for a "
                "weight"
            )
        return found, given
    found, chosen, path = smallest_weight(fit, level, targets, first)
    estimator.path_ = path
    if path.best is None:
        fairest = path.values.min() if level.is_low else path.values.max()
        estimator._complain(
            f"no weight up to {path.weights[-1] * unit:.3g} reaches {level} (the fairest fit has {fairest:.3g}). Ask "
            "for less fairness or fewer clusters, or use PriceFairKMeans, whose clusters keep their bounds up to one "
            "point"
        )
    return found, chosen
