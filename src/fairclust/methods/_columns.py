"""Several sensitive columns: a base of the methods with one penalty for each column, and the groups of new rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from fairclust.base import FairClusterer
from fairclust.group_encoding import (
    SensitiveColumn,
    combination_names,
    cross_codes,
    encode_groups,
    split_columns,
)
from fairclust.solvers.sensitive import Sensitive, read_sensitive


class ColumnsClusterer(FairClusterer):
    """Base of the methods whose penalty for several sensitive columns is the sum of one penalty for each column."""

    takes_columns = True
    _sensitive: Sensitive | None = None

    def _check_input(self, X: Any, sensitive_features: Any) -> tuple[np.ndarray, np.ndarray]:
        """Validated features and group codes. The groups of several columns are the combinations that occur."""
        self._sensitive = None
        named = split_columns(sensitive_features)
        if len(named) <= 1:
            return super()._check_input(X, next(iter(named.values()), None))
        sensitive = read_sensitive(sensitive_features, _num_samples(X))
        X, _ = super()._check_input(X, sensitive.codes)
        self.groups_, self._sensitive = sensitive.names, sensitive
        return X, sensitive.codes

    def _members(self) -> list[np.ndarray]:
        """For each of several columns, which groups have which value, shape (n_values, n_groups); else empty."""
        sensitive = self._sensitive
        return [] if sensitive is None else [sensitive.members(i) for i in range(len(sensitive.columns))]

    def _tables(self, counts: np.ndarray) -> list[np.ndarray]:
        """Counts of the groups, shape (n_groups, ...), summed for each column to shape (n_values, ...).

        A single column has the groups themselves as values, and its counts are returned unchanged.
        """
        return [members @ counts for members in self._members()] or [counts]


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
    named = split_columns(sensitive_features)
    if len(columns) == 1 and not columns[0].overlapping and columns[0].edges is None:
        only = next(iter(named.values())) if len(named) == 1 else sensitive_features
        return encode_groups(only, n_samples, known=columns[0].values)[0], prices
    cells = [_cells_of(column, i, named) for i, column in enumerate(columns)]
    codes = [column.encode(of, n_samples) for column, of in zip(columns, cells, strict=True)]
    groups, found = cross_codes(codes, [len(column.values) for column in columns])
    places = {tuple(cell): j for j, cell in enumerate(known.tolist())}
    place = np.array([places.get(tuple(cell), -1) for cell in found.tolist()])
    offset = prices[place]
    if (place < 0).any():
        new = found[place < 0]
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
