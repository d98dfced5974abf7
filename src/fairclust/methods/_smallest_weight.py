"""The search for the smallest weight of a penalty method that reaches a level of fairness."""

from __future__ import annotations

import warnings
from math import sqrt
from typing import Any, NamedTuple

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fairclust.group_encoding import encode_groups, split_columns
from fairclust.metrics import METRICS, contingency

# The weights are 0, _FIRST, _FACTOR * _FIRST and so on. Then the last step is halved.
_FIRST, _FACTOR, _MOST_FITS, _HALVINGS = 1e-3, 4.0, 13, 4


class _Fit(NamedTuple):
    weight: float
    value: float
    reached: bool
    model: Any
    messages: list[Any]


def smallest_weight(
    model: Any,
    X: Any,
    sensitive_features: Any,
    *,
    level: float = 0.8,
    metric: str = "fairness_ratio",
    weight: str = "lam",
) -> Any:
    """Fit a method with the smallest weight of fairness whose labels reach a level.

    The weight is raised in steps of four until the labels of a fit reach the level. The last step is then halved four
    times, on a logarithmic scale. The search takes about ten fits.

    Parameters
    ----------
    model : FairClusterer
        A method with a weight of fairness, such as `VariationalFairKMeans`. It is not changed. Its `random_state`
        should be a number, because all fits then begin at the same centres. `relative_weights` is set to True if the
        method has this parameter.
    X, sensitive_features : as for ``model.fit``
    level : float, default=0.8
        The value of the metric that each sensitive column must reach.
    metric : str, default="fairness_ratio"
        The name in `fairclust.metrics.METRICS` of a metric of the table of groups and clusters. With the default, the
        share of every group in every cluster is at least `level` and at most 1 / `level` times its share of the data.
    weight : str, default="lam"
        The name of the weight. For `BalancedFairKMeans` it is "rho".

    Returns
    -------
    FairClusterer
        The fitted method with the chosen weight as a parameter. If no weight reaches the level, this is the fairest
        fit, with a ConvergenceWarning.

    Raises
    ------
    ValueError
        If the metric is no function of the table, or has no better direction.

    Examples
    --------
    >>> import numpy as np
    >>> from fairclust import VariationalFairKMeans, smallest_weight
    >>> from fairclust.metrics import balance
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> sex = np.where(X[:, 0] > 0, "m", "f")
    >>> model = VariationalFairKMeans(2, random_state=0)
    >>> model = smallest_weight(model, X, sex, level=0.5, metric="balance")
    >>> balance(model.labels_, sensitive_features=sex) >= 0.5
    True
    """
    measure = METRICS.get(metric)
    if measure is None or measure.direction == "none" or measure.needs != "table":
        known = [one.name for one in METRICS.values() if one.direction != "none" and one.needs == "table"]
        raise ValueError(
            f"metric={metric!r} is not a bound on the table of groups: use one of {', '.join(known)}"
        )
    columns = list(split_columns(sensitive_features).values())
    relative = {"relative_weights": True} if "relative_weights" in model.get_params() else {}

    def fit(number: float) -> _Fit:
        # Only the fit that is returned should warn.
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            fitted = clone(model).set_params(**{weight: number}, **relative)
            fitted.fit(X, sensitive_features=sensitive_features)
        codes = (encode_groups(column)[0] for column in columns)
        tables = (contingency(fitted.labels_, column, fitted.n_clusters) for column in codes)
        value = measure.worst(measure.function(table) for table in tables)
        reached = value <= level if measure.direction == "lower" else value >= level
        return _Fit(number, value, reached, fitted, [one.message for one in raised])

    low = high = fit(0.0)
    fits = [high]
    while not high.reached and len(fits) < _MOST_FITS:
        low, high = high, fit(_FIRST * _FACTOR ** (len(fits) - 1))
        fits.append(high)
    for _ in range(_HALVINGS if high.reached and high is not low else 0):
        middle = fit(sqrt(low.weight * high.weight) or high.weight / _FACTOR)
        low, high = (low, middle) if middle.reached else (middle, high)
    if not high.reached:
        fairest = min if measure.direction == "lower" else max
        high = fairest(fits, key=lambda one: one.value)
        high.messages.append(
            ConvergenceWarning(
                f"no {weight} up to {fits[-1].weight:.3g} reaches a {metric} of {level:g} (the fairest fit has "
                f"{high.value:.3g}): ask for less fairness or fewer clusters, or use PriceFairKMeans, whose clusters "
                "keep their bounds up to one point"
            )
        )
    for message in high.messages:
        warnings.warn(message, stacklevel=2)
    return high.model
