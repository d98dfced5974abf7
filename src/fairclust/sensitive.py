"""Sensitive columns: one or several, and the groups of the rows.

A group is a combination of values, one from each column, that occurs in the rows. Bounds are on the values of a column,
while the solvers see only the groups.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairclust.group_encoding import (
    SensitiveColumn,
    combination_names,
    cross_codes,
    cut_column,
    encode_groups,
    is_measured,
    label,
    measure_column,
    read_numbers,
    split_columns,
)


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
        values = [[f"not {of.name}", of.name] if of.overlapping else of.values for of in self.columns]
        return np.array(combination_names(self.cells, values))

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
            numbers = read_numbers(cells, n_samples, name)
            columns.append(measure_column(name, numbers))
            codes.append(columns[-1].encode(numbers, n_samples))
            continue
        column, of_rows = _read_column(name, cells, n_samples, bins)
        if overlapping:
            column = SensitiveColumn(name, np.array([False, True]), overlapping=True)
            of_rows = np.asarray(cells, dtype=np.int32)
        columns.append(column)
        codes.append(of_rows)
    if not columns:
        return Sensitive((), np.zeros(n_samples, np.int32), np.empty((1, 0), np.int64))
    groups, cells = cross_codes(codes, [len(column.values) for column in columns])
    return Sensitive(tuple(columns), groups, cells)


def read_groups(sensitive_features: Any, n_samples: int) -> Sensitive:
    """As `read_sensitive`, for methods that need at least one column."""
    if sensitive_features is None:
        raise ValueError("sensitive_features is missing: pass the group of every row by keyword")
    return read_sensitive(sensitive_features, n_samples)


def overlapping_groups(sensitive_features: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Names of overlapping groups and which rows are in which, shape (n_samples, n_groups); None for other columns."""
    named = split_columns(sensitive_features)
    return (np.array(list(named)), np.column_stack(list(named.values()))) if _overlap(named) else None


def _overlap(named: Mapping[str, Any]) -> bool:
    return len(named) > 1 and all(np.asarray(cells).dtype == bool for cells in named.values())


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
                f"{label(name)} holds {len(np.unique(values))} different numbers, and each would be a group. Pass "
                "bins=4 to bound the shares of four ranges, or mean_tolerance to bound the mean. If the numbers are "
                "names, convert them to text"
            )
        column = cut_column(name, read_numbers(values, n_samples, name), asked)
        return column, column.encode(values, n_samples)
    codes, names = encode_groups(cells, n_samples, name=name)
    return SensitiveColumn(name, names), codes


def new_groups(
    columns: tuple[SensitiveColumn, ...],
    known: np.ndarray,
    prices: np.ndarray,
    by_column: list[np.ndarray],
    sensitive_features: Any,
    n_samples: int,
) -> tuple[np.ndarray, np.ndarray]:
    """The group of every new row, as a row of the returned prices, shape (n_new_groups, n_clusters).

    `known` holds the value of each group of the fit in each column, as its position in the column's values. A
    combination that did not occur in the fit has the sum of the prices of its values, `by_column`. If this list is
    empty, it is a ValueError, as is a missing column or a new value.
    """
    if len(columns) == 1 and not columns[0].overlapping and columns[0].edges is None:
        return encode_groups(sensitive_features, n_samples, known=columns[0].values)[0], prices
    named = split_columns(sensitive_features)
    cells = [_cells_of(column, i, named) for i, column in enumerate(columns)]
    codes = [
        column.encode(column_cells, n_samples) for column, column_cells in zip(columns, cells, strict=True)
    ]
    groups, combinations = cross_codes(codes, [len(column.values) for column in columns])
    places = {tuple(cell): j for j, cell in enumerate(known.tolist())}
    place = np.array([places.get(tuple(cell), -1) for cell in combinations.tolist()])
    offset = prices[place]
    if (place < 0).any():
        new = combinations[place < 0]
        if not by_column:
            (first,) = combination_names(new[:1], [column.values for column in columns])
            raise ValueError(
                f"sensitive_features has combinations not seen in fit, such as {first}. Leave out their rows, or fit "
                "on data that have these combinations"
            )
        offset[place < 0] = sum(prices[codes] for prices, codes in zip(by_column, new.T, strict=True))
    return groups, offset


def _cells_of(column: SensitiveColumn, place: int, named: dict[str, Any]) -> Any:
    """The cells of a column of the fit, found by its name, or by its position if the new columns have no names."""
    if column.name in named:
        return named[column.name]
    if place < len(named) and not any(named):
        return list(named.values())[place]
    raise ValueError(
        f"sensitive_features has no column {column.name!r}, which was there in fit: pass it as well"
    )
