"""The values of cells: which texts are one value, which are missing, and which columns hold numbers.

docs/command.md states these rules.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from fairclust.group_encoding import Values, describe_merged, one_spelling, value_text
from fairclust.tables.cells import as_number
from fairclust.tables.text import TableError

MISSING_TEXTS = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""Cells of a table that hold one of these texts are missing."""

# Numbers with leading zeros, and numbers that a float would round, are codes. As numbers, '01' would become '1'.
_CODE = re.compile(r"[+-]?(0\d|\d{16})")
# The array of groups has room for the longest name in every row.
_LONGEST = 1000


def read_values(
    cells: pd.Series, *, untyped: bool = False, named: bool = False, decimal: str = "."
) -> tuple[pd.Series, list[str]]:
    """The values of a column of text, each in one spelling, with notes on what was merged and what counts as missing.

    With `untyped`, cells that are all numbers become numbers. With `named`, the values become names of groups or
    categories, so they must be short; a longer one, or a NUL character, is a TableError.
    """
    codes, found = pd.factorize(cells)
    found = np.asarray(found, dtype=object)
    counts = np.bincount(codes[codes >= 0], minlength=len(found))
    values = np.full(len(found) + 1, np.nan, dtype=object)  # the last is for missing cells, whose code is -1
    lacking: dict[str, int] = {}
    for code, (value, count) in enumerate(zip(found, counts, strict=True)):
        try:
            plain = one_spelling(value) if isinstance(value, str) else value
            if named and len(str(plain)) > _LONGEST:
                raise ValueError(f"a text of {len(plain):,} characters, which is too long for a name")
        except ValueError as error:
            row = int((codes == code).argmax()) + 1
            raise TableError(
                f"data row {row:,} of column {cells.name!r} has {error}. Fix: correct it"
            ) from None
        if plain in MISSING_TEXTS:
            lacking[plain] = lacking.get(plain, 0) + int(count)
        else:
            values[code] = plain
    lacking.pop("", None)
    notes = [f"{cells.name}: {rows:,} cells {text!r} count as missing" for text, rows in lacking.items()]
    there = np.flatnonzero(pd.notna(values[:-1]))
    numbers = [_number(value, decimal) for value in values[there]] if untyped else [None]
    if None not in numbers:
        values[there] = numbers
    elif any(isinstance(value, str) for value in values[there]):
        values[there] = [value_text(value) for value in values[there]]
    told = describe_merged(found[there], values[there], counts[there])
    notes += [f"{cells.name}: {text}" for text in told]
    return pd.Series(values[codes], cells.index, name=cells.name).infer_objects(), notes


def factor(cells: pd.Series) -> Values:
    """The cells of a column as different texts, see `value_text`; the entry of a missing cell is -1."""
    codes, found = pd.factorize(cells)
    places, names = pd.factorize(np.array([value_text(value) for value in found], dtype=object))
    return Values(np.append(places, -1)[codes], np.asarray(names, dtype=object))


def is_nested(cells: pd.Series) -> bool:
    """Whether a cell holds a list or a record."""
    return cells.dtype == object and any(isinstance(cell, (list, tuple, dict, np.ndarray)) for cell in cells)


def _number(text: object, decimal: str) -> int | float | None:
    """The number that a text is; None if it is none or a code."""
    plain = str(text).replace(decimal, ".")
    number = None if _CODE.match(plain) else as_number(plain)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**53 else number


def as_text(cells: pd.Series) -> pd.Series:
    """The cells of a column as texts, see `value_text`; a missing cell is NaN."""
    values = factor(cells)
    found = np.array([*values.words, np.nan], dtype=object)[values.entries]
    return pd.Series(found, cells.index, name=cells.name)
