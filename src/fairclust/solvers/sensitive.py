"""Sensitive columns: one or several, and the groups of the rows.

A group is a combination of values, one from each column, that occurs in the rows. Bounds are on the values of a column,
while the solvers see only the groups.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from fairclust.group_encoding import encode_groups
from fairclust.metrics.columns import split_columns
from fairclust.stored import Stored

BETWEEN = " & "
# A column with more different numbers than this is a measurement, unless the numbers are codes (see `is_measured`).
_MANY_VALUES = 20
# A column whose mean is bounded is rounded to at most this many different numbers.
_MEASURED_VALUES = 128


@dataclass(frozen=True)
class SensitiveColumn:
    """How the cells of a sensitive column are encoded as values."""

    name: str  # Empty if the caller gave no name
    values: (
        np.ndarray
    )  # (n_values,); the different values, the names of ranges, or the numbers of a measured column
    # (n_values - 1,); for a column of numbers that is cut into ranges or rounded, the lower end of each range but the
    # first.
    edges: np.ndarray | None = None
    # Whether this is one of several columns of truth values, each of which says which rows are in a group. Only the
    # share of the rows inside the group is bounded.
    overlapping: bool = False
    # Whether the mean of the column is bounded. Every cell is then rounded to the nearest of `values`.
    measured: bool = False

    def encode(self, cells: Any, n_samples: int) -> np.ndarray:
        """The value of every cell, as its position in `values`. A missing cell, or another value, is a ValueError."""
        if self.edges is not None:
            numbers = _numbers(cells, n_samples, self.name)
            return np.searchsorted(self.edges, numbers, side="right").astype(np.int32)
        return _named(self.name, encode_groups, cells, n_samples, known=self.values)[0]

    def stored(self) -> dict[str, Any]:
        """The content for a saved model. Overlapping groups do not come from tables and are not saved."""
        found = {"name": self.name, "values": self.values.tolist(), "measured": self.measured}
        return found if self.edges is None else found | {"edges": self.edges.tolist()}

    @classmethod
    def from_stored(cls, stored: Stored) -> SensitiveColumn:
        """The column of a saved model."""
        values = stored.names("values")
        edges = stored.array("edges", len(values) - 1) if stored.has("edges") else None
        return cls(stored.text("name"), values, edges, measured=stored.flag("measured"))


@dataclass(frozen=True)
class Sensitive:
    """The sensitive columns of some rows."""

    columns: tuple[SensitiveColumn, ...]  # Empty if only cluster sizes are bounded
    codes: np.ndarray  # (n_samples,); the group of every row
    # (n_groups, n_columns); the value of every group in each column, as a position in the column's `values`.
    cells: np.ndarray

    @property
    def names(self) -> np.ndarray:
        """Names of the groups: the values of a single column, or else values joined by " & "."""
        if not self.columns:
            return np.array(["all rows"])
        if len(self.columns) == 1:
            return self.columns[0].values
        return np.array([BETWEEN.join(words) for words in zip(*self._words(), strict=True)])

    @property
    def by_column(self) -> dict[str, np.ndarray]:
        """For each of several columns, the position of every row's value; empty if there is one column."""
        if len(self.columns) < 2:
            return {}
        return {column.name: self.cells[self.codes, i] for i, column in enumerate(self.columns)}

    def reordered(self, order: np.ndarray) -> Sensitive:
        """The groups of a single column in another order: `order` has their positions, shape (n_groups,)."""
        column = replace(self.columns[0], values=self.columns[0].values[order])
        return replace(self, columns=(column,), codes=np.argsort(order).astype(np.int32)[self.codes])

    def _words(self) -> list[list[str]]:
        """The value of every group as text, column by column. For overlapping groups, "not name" or "name"."""
        found = []
        for column, codes in zip(self.columns, self.cells.T, strict=True):
            values = [str(value) for value in column.values]
            if column.overlapping:
                values = [f"not {column.name}", column.name]
            found.append([values[code] for code in codes])
        return found

    def members(self, column: int) -> np.ndarray:
        """Which groups have which value of a column, shape (n_values, n_groups), as ones and zeros."""
        values = np.arange(len(self.columns[column].values))
        return (self.cells[:, column] == values[:, None]).astype(float)


def read_sensitive(
    sensitive_features: Any,
    n_samples: int,
    *,
    bins: int | Mapping[str, int] | None = None,
    means: Collection[str] = (),
) -> Sensitive:
    """Read sensitive columns: None, one, several, or a mapping from names.

    Each column of a table of truth values is a group. `bins` cuts columns of numbers into ranges, and `means` names
    those whose mean is bounded; a column of many numbers that is in neither is a ValueError.
    """
    named = split_columns(sensitive_features)
    overlapping = _overlap(named)
    if unknown := set(map(str, means)) - set(named):
        raise ValueError(f"mean_tolerance names {sorted(unknown)}, the sensitive columns are {list(named)}")
    if isinstance(bins, Mapping) and (unknown := set(map(str, bins)) - set(named)):
        raise ValueError(f"bins names {sorted(unknown)}, the sensitive columns are {list(named)}")
    columns, codes = [], []
    for name, cells in named.items():
        if name in map(str, means):
            numbers = _numbers(cells, n_samples, name)
            columns.append(measure_column(name, numbers))
            codes.append(columns[-1].encode(numbers, n_samples))
            continue
        column, of_rows = _read_column(name, cells, n_samples, bins)
        if overlapping:
            truth = np.array([False, True])
            column, of_rows = (
                SensitiveColumn(name, truth, overlapping=True),
                np.asarray(cells, dtype=np.int32),
            )
        columns.append(column)
        codes.append(of_rows)
    if not columns:
        return Sensitive((), np.zeros(n_samples, np.int32), np.empty((1, 0), np.int64))
    groups, cells = cross_codes(codes, [len(column.values) for column in columns])
    return Sensitive(tuple(columns), groups, cells)


def read_groups(sensitive_features: Any, n_samples: int) -> Sensitive:
    """As `read_sensitive`, for methods that need at least one column."""
    if sensitive_features is None:
        raise ValueError("sensitive_features is missing: pass the group of every row")
    return read_sensitive(sensitive_features, n_samples)


def overlapping_groups(sensitive_features: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Names of overlapping groups and which rows are in which, shape (n_samples, n_groups); None for other columns."""
    named = split_columns(sensitive_features)
    return (np.array(list(named)), np.column_stack(list(named.values()))) if _overlap(named) else None


def _overlap(named: Mapping[str, Any]) -> bool:
    return len(named) > 1 and all(np.asarray(cells).dtype == bool for cells in named.values())


def cross_codes(codes: Sequence[np.ndarray], n_values: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Find the combinations of codes that occur, in lexicographic order: the code of each row, and their cells."""
    groups, cells = np.zeros(len(codes[0]), np.int64), np.empty((1, 0), np.int64)
    for of_rows, n in zip(codes, n_values, strict=True):
        # Groups are numbered again after each column, because the product of all numbers of values could overflow.
        both, groups = np.unique(groups * n + of_rows, return_inverse=True)
        cells = np.column_stack([cells[both // n], both % n])
    return groups.astype(np.int32), cells


def _read_column(
    name: str, cells: Any, n_samples: int, bins: int | Mapping[str, int] | None
) -> tuple[SensitiveColumn, np.ndarray]:
    chosen = isinstance(bins, Mapping) and name in map(str, bins)
    asked = {str(key): n for key, n in bins.items()}.get(name) if isinstance(bins, Mapping) else bins
    values = np.asarray(cells)
    numeric = values.dtype.kind in "iuf"
    if chosen and not numeric:
        raise ValueError(f"bins names {name!r}, which does not hold numbers: leave it out of bins")
    if numeric and (chosen or is_measured(values)):
        if asked is None:
            raise ValueError(
                f"{_label(name)} holds {len(np.unique(values))} different numbers, and each would be a group. Pass "
                "bins=4 to bound the shares of four ranges, or mean_tolerance to bound the mean. If the numbers are "
                "names, convert them to text"
            )
        column = cut_column(name, _numbers(values, n_samples, name), asked)
        return column, column.encode(values, n_samples)
    codes, found = _named(name, encode_groups, cells, n_samples)
    return SensitiveColumn(name, found), codes


def is_measured(values: np.ndarray) -> bool:
    """Whether there are more than 20 different numbers and they are not codes.

    Codes are consecutive from 0 or 1 and occur more than twice each on average.
    """
    if values.ndim != 1 or not values.size or not np.isfinite(values).all():
        return False
    found = np.unique(values)
    coded = found[0] in (0, 1) and (np.diff(found) == 1).all() and len(values) > 2 * len(found)
    return len(found) > _MANY_VALUES and not coded


def cut_column(name: str, numbers: np.ndarray, bins: int) -> SensitiveColumn:
    """Cut a column into ranges of about equal numbers of rows. Ranges are fewer if many rows have the same number."""
    if not isinstance(bins, Integral) or bins < 2:
        raise ValueError(f"bins must be a whole number of at least 2, found {bins!r}")
    quantiles = np.quantile(numbers, np.arange(1, bins) / bins, method="higher")
    edges = np.unique(quantiles[quantiles > numbers.min()])
    if not len(edges):
        return SensitiveColumn(name, np.array([f"{numbers.min():g}"]), edges)
    middle = [f"{low:g} to below {high:g}" for low, high in pairwise(edges)]
    return SensitiveColumn(
        name, np.array([f"below {edges[0]:g}", *middle, f"{edges[-1]:g} and above"]), edges
    )


def measure_column(name: str, numbers: np.ndarray) -> SensitiveColumn:
    """Take all different numbers as values or, if there are more than 128, the means of at most 128 ranges.

    Each range has the same part of the integral of the cube root of the density, which makes the squared rounding
    errors nearly as small as they can be (Panter and Dite 1951). Ranges with equal numbers of rows would be too wide
    in the tails: of a lognormal column, such as incomes, they lose 0.4 standard deviations, and these lose 0.013.
    """
    found = np.unique(numbers)
    if len(found) > _MEASURED_VALUES:
        ordered = np.sort(numbers)
        # The density at a number is one over the distance to the next number, up to a factor.
        part = np.cumsum(np.diff(ordered) ** (2 / 3))
        ends = np.searchsorted(part, part[-1] * np.arange(1, _MEASURED_VALUES) / _MEASURED_VALUES)
        codes = np.searchsorted(np.unique(ordered[1 + ends]), numbers, side="right")
        codes = np.unique(codes, return_inverse=True)[1]
        found = np.unique(np.bincount(codes, numbers) / np.bincount(codes))
    return SensitiveColumn(name, found, (found[1:] + found[:-1]) / 2, measured=True)


def _numbers(cells: Any, n_samples: int, name: str) -> np.ndarray:
    values = np.asarray(cells)
    if values.shape != (n_samples,):
        raise ValueError(f"{_label(name)} has {len(values)} rows, X has {n_samples}")
    values = values.astype(float)
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"{_label(name)} has a missing or infinite number in row {first}: leave out or fill in such rows"
        )
    return values


def _named(name: str, call: Any, *args: Any, **options: Any) -> Any:
    """Make a call, and name the column in the messages of its errors."""
    if not name:
        return call(*args, **options)
    try:
        return call(*args, **options)
    except ValueError as error:
        raise ValueError(str(error).replace("sensitive_features", _label(name), 1)) from None


def _label(name: str) -> str:
    return f"sensitive_features[{name!r}]" if name else "sensitive_features"
