"""Sensitive columns: one or several, and the groups of the rows.

A group is a combination of values, one from each column, that occurs in the rows. Bounds are on the values of a column,
while the solvers see only the groups.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairclust.group_encoding import (
    SensitiveColumn,
    combination_names,
    cross_codes,
    encode_groups,
    is_measured,
    label,
    measure_column,
    read_numbers,
    split_columns,
)
from fairclust.stored import storable


@storable
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
        return np.array(combination_names(self.cells, [column.values for column in self.columns]))

    @property
    def by_column(self) -> dict[str, np.ndarray]:
        """For each of several columns, the position of every row's value; empty if there is one column."""
        if len(self.columns) < 2:
            return {}
        return {column.name: self.cells[self.codes, i] for i, column in enumerate(self.columns)}

    def members(self, column: int) -> np.ndarray:
        """Which groups have which value of a column, shape (n_values, n_groups), as ones and zeros."""
        values = np.arange(len(self.columns[column].values))
        return (self.cells[:, column] == values[:, None]).astype(float)


def read_sensitive(sensitive_features: Any, n_samples: int, *, means: Collection[str] = ()) -> Sensitive:
    """Read sensitive columns: None, one, several, or a mapping from names.

    `means` names the columns of numbers whose mean is bounded. Another column of many numbers is a ValueError.
    """
    named = split_columns(sensitive_features)
    if unknown := set(map(str, means)) - set(named):
        raise ValueError(f"mean_tolerance names {sorted(unknown)}, the sensitive columns are {list(named)}")
    columns, codes = [], []
    for name, cells in named.items():
        values = np.asarray(cells)
        if name in map(str, means):
            numbers = read_numbers(cells, n_samples, name)
            columns.append(measure_column(name, numbers))
            codes.append(columns[-1].encode(numbers, n_samples))
            continue
        if values.dtype.kind in "iuf" and is_measured(values):
            raise ValueError(
                f"{label(name)} holds {len(np.unique(values))} different numbers, and each would be a group. Cut it "
                "into ranges, as pandas.qcut(column, 4) does, or pass mean_tolerance to bound the mean. If the numbers "
                "are names, convert them to text"
            )
        of_rows, names = encode_groups(cells, n_samples, name=name)
        columns.append(SensitiveColumn(name, names))
        codes.append(of_rows)
    if not columns:
        return Sensitive((), np.zeros(n_samples, np.int32), np.empty((1, 0), np.int64))
    groups, cells = cross_codes(codes, [len(column.values) for column in columns])
    return Sensitive(tuple(columns), groups, cells)


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
    if len(columns) == 1 and columns[0].edges is None:
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
