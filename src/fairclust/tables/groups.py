"""The groups of the rows: the values of a sensitive column, or the combinations of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from fairclust.group_encoding import SensitiveColumn, combination_names, cross_codes, cut_column, is_measured
from fairclust.tables.text import TableError
from fairclust.tables.values import as_text, factor

MISSING = "missing"


def group_columns(
    frame: pd.DataFrame,
    columns: Sequence[str],
    *,
    missing_is_group: bool = False,
    ranges: Mapping[str, SensitiveColumn] | None = None,
) -> pd.DataFrame:
    """The sensitive columns as text, with numbers as `value_text` writes them.

    The groups of columns in `ranges`, from `find_ranges`, are ranges of numbers. Missing values stay missing, or are
    the group "missing". TableError if the table lacks a column, or that group exists beside missing cells.
    """
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise TableError(f"the table has no sensitive column {absent[0]!r}")
    found = {}
    for name in columns:
        cells = _in_ranges(frame[name], ranges[name]) if ranges and name in ranges else frame[name]
        found[name] = as_text(cells)
        if missing_is_group:
            lacks = found[name].isna()
            if lacks.any() and (found[name] == MISSING).any():
                raise TableError(
                    f"{name!r} has missing cells and the group {MISSING!r}. Fix: rename the group, or leave out the "
                    "option --missing group"
                )
            found[name][lacks] = MISSING
    return pd.DataFrame(found, index=frame.index, dtype=object)


def find_ranges(frame: pd.DataFrame, columns: Sequence[str], bins: int | None) -> dict[str, SensitiveColumn]:
    """Cut the columns that hold many different numbers into `bins` ranges with about as many rows each.

    Otherwise each number would be a group. Columns with few different numbers, and codes that are counted from 0 or 1,
    are not cut. UserError if a column has to be cut and `bins` is None or less than 2.
    """
    found = {}
    for name in columns:
        if not pd.api.types.is_numeric_dtype(frame[name]) or pd.api.types.is_bool_dtype(frame[name]):
            continue
        numbers = frame[name].dropna().to_numpy(dtype=float)
        if np.isinf(numbers).any():
            row = frame[name].abs().idxmax() + 1
            raise TableError(f"{name!r} has an infinite number in data row {row:,}. Fix: correct it")
        if not is_measured(numbers):
            continue
        if bins is None:
            raise TableError(
                f"{name!r} holds {len(np.unique(numbers)):,} different numbers, and each would be a group. Fix: "
                "--bins 4, for example, makes four ranges of them; if they identify the rows, name another column"
            )
        found[name] = cut_column(name, numbers, bins)
    return found


def cross(groups: pd.DataFrame) -> pd.Series:
    """One group for each combination of the columns' values. If one value is missing, the group is missing too.

    UserError if two combinations have one name, because a value contains the sign between values.
    """
    complete = groups.notna().all(axis=1)
    codes, values = zip(*(factor(groups.loc[complete, name]) for name in groups), strict=True)
    crossed, cells = cross_codes(codes, [len(of) for of in values])
    names = combination_names(cells, values, f" of {' and '.join(groups.columns)}")
    found = pd.Series(np.nan, index=groups.index, dtype=object)
    found[complete] = np.array(names, dtype=object)[crossed]
    return found


def _in_ranges(cells: pd.Series, column: SensitiveColumn) -> pd.Series:
    """The range of each number as text; missing if the number is missing."""
    try:
        numbers = pd.to_numeric(cells)
    except (ValueError, TypeError):
        raise TableError(
            f"{column.name!r} has cells that are not numbers, but the model was fitted to numbers. Fix: correct them"
        ) from None
    there = numbers.notna()
    found = pd.Series(None, index=cells.index, dtype=object)
    found[there] = column.values[column.encode(numbers[there].to_numpy(), int(there.sum()))]
    return found
