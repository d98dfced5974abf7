"""The bounds that a user gives, combined in one criterion."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np

from fairclust.base import NotSupported
from fairclust.group_encoding import Sensitive, SensitiveColumn, resolve_target
from fairclust.solvers.criteria import (
    Criterion,
    combine,
    make_criterion,
    mean_bound,
    no_bound,
)

_ON_GROUPS = ("tolerance", "min_balance", "max_gap")


class Bounds(NamedTuple):
    """The bounds among the parameters of `fairclust.fair_assignment`."""

    tolerance: Any = 0.0
    min_balance: Any = None
    max_gap: Any = None
    target: Any = None
    size_min: Any = None
    size_max: Any = None
    crossed: bool = False
    mean_tolerance: Any = None


def bounds_criterion(
    bounds: Bounds, sensitive: Sensitive, sizes: np.ndarray, n_clusters: int, *, unit: float | None = None
) -> Criterion:
    """The criterion for the bounds that a user gave; a ValueError or `NotSupported` says which bounds the data can
    meet.

    For data with weights, `sizes` are sums of weights divided by their mean, `unit`, and bounds on sizes are sums of
    the weights that the user gave. Without weights, cluster sizes are whole numbers.
    """
    total = float(sizes.sum())
    least, most = size_bounds(
        bounds.size_min, bounds.size_max, total * (unit or 1.0), n_clusters, whole=unit is None
    )
    least, most = least / (unit or 1.0), most / (unit or 1.0)
    bounded = bounds.size_min is not None or bounds.size_max is not None
    if not sensitive.columns:
        if not bounded:
            raise ValueError(
                "sensitive_features is missing: pass the group of every row by keyword, as in "
                "fit(X, sensitive_features=data['sex']), or bound the sizes of the clusters with size_min or size_max"
            )
        return combine([], sizes, least, most)
    names = [column.name for column in sensitive.columns]
    if bounds.crossed and len(names) > 1:
        if bounds.mean_tolerance:
            raise ValueError("mean_tolerance bounds one column at a time: pass it without crossed=True")
        # The combinations of values are treated as the values of one column without a name.
        _check_names(bounds, [])
        columns, members = [SensitiveColumn("", sensitive.names)], [np.eye(len(sizes))]
    else:
        _check_names(bounds, names)
        columns, members = list(sensitive.columns), [sensitive.members(i) for i in range(len(names))]
    if len(columns) == 1 and not bounded and not columns[0].measured:
        return _of_column(bounds, columns[0], sizes, alone=True)
    several = len(columns) > 1
    parts = [
        (_of_column(bounds, column, of_values @ sizes, several=several), of_values)
        for column, of_values in zip(columns, members, strict=True)
    ]
    return combine(parts, sizes, least, most)


def size_bounds(
    size_min: Any, size_max: Any, total: float, n_clusters: int, *, whole: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest size of every cluster, (n_clusters,) each; without a bound 0 and `total`.

    Integers are numbers of points, floats multiples of ``total / n_clusters``. With `whole`, these are rounded to the
    stricter side, or to the looser one if the sizes could not add up to `total` otherwise.
    """
    mean = total / n_clusters
    low, low_shares = _sizes(size_min, "size_min", 0.0, mean, n_clusters)
    high, high_shares = _sizes(size_max, "size_max", total, mean, n_clusters)
    high = np.minimum(high, total)
    if whole:
        inward = (
            np.where(low_shares, np.ceil(low - 1e-9), low),
            np.where(high_shares, np.floor(high + 1e-9), high),
        )
        outward = np.where(low_shares, np.floor(low), low), np.where(high_shares, np.ceil(high), high)
        low = inward[0] if inward[0].sum() <= total else outward[0]
        high = inward[1] if inward[1].sum() >= total else outward[1]
        if (low > high).any():
            low, high = outward
    slack = 1e-9 * total
    if low.sum() > total + slack:
        raise NotSupported(
            f"size_min={size_min} cannot be met: {n_clusters} clusters would have {low.sum():g} of {total:g} rows. "
            f"The largest size_min for all of them is {_floor(mean, whole):g}{_meant(size_min)}"
        )
    if high.sum() < total - slack:
        raise NotSupported(
            f"size_max={size_max} cannot be met: {n_clusters} clusters would have {high.sum():g} of {total:g} rows. "
            f"The smallest size_max for all of them is {-_floor(-mean, whole):g}{_meant(size_max)}"
        )
    if (low > high + slack).any():
        k = int((low - high).argmax())
        raise NotSupported(
            f"cluster {k} cannot have at least {low[k]:g} and at most {high[k]:g} rows: "
            "lower size_min or raise size_max"
        )
    return low, high


def _meant(size: Any) -> str:
    """A hint for a small whole number, which counts rows, but may be meant as a multiple of the mean size."""
    small = isinstance(size, Integral) and int(size) in (1, 2)
    return f". Whole numbers count rows: {float(size)} is the multiple of the mean size" if small else ""


def _floor(value: float, whole: bool) -> float:
    return float(np.floor(value)) if whole else value


def _sizes(
    bounds: Any, name: str, default: float, mean: float, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of all clusters in points, and which of them were given as floats."""
    if bounds is None:
        return np.full(n_clusters, default), np.zeros(n_clusters, bool)
    listed = list(bounds) if np.ndim(bounds) else [bounds] * n_clusters
    if len(listed) != n_clusters:
        raise ValueError(
            f"{name} has {len(listed)} entries, there are {n_clusters} clusters: "
            "pass one number, or one for each cluster"
        )
    shares = np.array([not isinstance(value, Integral) for value in listed])
    values = np.array(listed, dtype=float)
    if not (values >= 0).all():
        raise ValueError(f"{name} must not be negative, found {bounds}")
    return np.where(shares, values * mean, values), shares


def _of_column(
    bounds: Bounds, column: SensitiveColumn, sizes: np.ndarray, *, several: bool = False, alone: bool = False
) -> Criterion:
    """The criterion of one column's values.

    `several` says that there are several columns. Messages then name the column, and `target` maps columns to shares.
    `alone` says that there are neither other columns nor bounds on the sizes.
    """
    name = column.name
    if column.measured:
        most = _entry(bounds.mean_tolerance, name)
        if not isinstance(most, Real) or not float(most) >= 0:
            raise ValueError(f"mean_tolerance must be a number of at least 0 for {name!r}, found {most!r}")
        if len(column.values) < 2:
            return no_bound(len(sizes))
        # Distances to the weighted mean in standard deviations.
        mean = float(column.values @ sizes / sizes.sum())
        deviation = float(np.sqrt((column.values - mean) ** 2 @ sizes / sizes.sum()))
        return mean_bound((column.values - mean) / deviation, float(most))
    tolerance, balance, gap = (_entry(getattr(bounds, parameter), name) for parameter in _ON_GROUPS)
    for parameter, bound in zip(_ON_GROUPS, (tolerance, balance, gap), strict=True):
        if bound is not None and not isinstance(bound, Real):
            raise ValueError(f"{parameter} must be a number, found {bound!r}")
    target = bounds.target
    if several:
        target = _entry(target, name)
    # If min_balance or max_gap is a mapping, the default tolerance of 0 does not bound the columns it leaves out.
    named = isinstance(bounds.min_balance, Mapping) or isinstance(bounds.max_gap, Mapping)
    if named and not isinstance(bounds.tolerance, Mapping) and tolerance == 0:
        tolerance = None
    if balance is None and gap is None and tolerance is None:
        return no_bound(len(sizes))
    if target is not None:
        target = resolve_target(target, column.values, np.arange(len(sizes)))
    try:
        return make_criterion(
            column.values,
            sizes,
            target=target,
            tolerance=0.0 if tolerance is None else tolerance,
            min_balance=balance,
            max_gap=gap,
            complete=not alone,
        )
    except ValueError as error:
        if not several:
            raise
        raise type(error)(f"{name}: {error}") from None


def _entry(bounds: Any, name: str) -> Any:
    """The bound of one column. A mapping has an entry for each bounded column; any other value is for all columns."""
    if not isinstance(bounds, Mapping):
        return bounds
    return {str(key): value for key, value in bounds.items()}.get(name)


def _check_names(bounds: Bounds, names: list[str]) -> None:
    """Raise an error if a mapping names a column that does not exist. `names` is empty for crossed columns."""
    for parameter in (*_ON_GROUPS, "mean_tolerance"):
        given = getattr(bounds, parameter)
        if isinstance(given, Mapping) and (unknown := [str(key) for key in given if str(key) not in names]):
            known = f"the sensitive columns are {names}" if any(names) else "there are no columns to name"
            raise ValueError(f"{parameter} names {unknown}, but {known}")
    target = bounds.target
    if len(names) <= 1 or target is None:
        return
    if not isinstance(target, Mapping) or (set(map(str, target)) - set(names)):
        raise ValueError(
            f"target must be a mapping of sensitive columns to shares, such as {{{names[0]!r}: ...}}, with columns out "
            f"of {names}"
        )
