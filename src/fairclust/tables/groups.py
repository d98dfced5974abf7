"""The groups of the rows: the values of a sensitive column, or the combinations of several."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from fairclust.tables.errors import TableError

MISSING = "missing"
BETWEEN = " & "


def group_columns(
    frame: pd.DataFrame, columns: Sequence[str], *, missing_is_group: bool = False
) -> pd.DataFrame:
    """The sensitive columns as text.

    Parameters
    ----------
    frame : DataFrame
    columns : sequence of str
    missing_is_group : bool, default=False
        Whether a missing value becomes the group "missing". Otherwise it stays missing.

    Returns
    -------
    DataFrame
        Whole numbers are written without a fraction: a missing cell in a column of numbers would make 1.0 of 1.

    Raises
    ------
    TableError
        The table lacks a column.
    """
    absent = [name for name in columns if name not in frame.columns]
    if absent:
        raise TableError(f"the table has no sensitive column {absent[0]!r}")
    found = {}
    for name in columns:
        codes, values = pd.factorize(frame[name])
        names = pd.Series([_text(value) for value in values], dtype=object)
        found[name] = pd.Series(codes, index=frame.index).map(names)
        if missing_is_group:
            found[name] = found[name].fillna(MISSING)
    return pd.DataFrame(found, index=frame.index)


def cross(groups: pd.DataFrame) -> pd.Series:
    """One group for each combination of the columns' values; a row that lacks one of them lacks the group."""
    crossed = groups.iloc[:, 0]
    for name in groups.columns[1:]:
        crossed = crossed + BETWEEN + groups[name]
    return crossed


def _text(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value).strip()
