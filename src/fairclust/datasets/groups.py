"""Group codes from the cells of the sensitive column."""

from __future__ import annotations

import numpy as np

from fairclust.datasets.errors import problem
from fairclust.datasets.spec import SensitiveSpec
from fairclust.datasets.table import Factor
from fairclust.group_encoding import cut_column, natural


def code_groups(
    name: str, sensitive: SensitiveSpec, factor: Factor, kept: np.ndarray, file: str, column: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Group codes (int32) of the kept rows, and names of the groups, from the sensitive column with all rows of the
    file.

    A value that belongs to no group is a DatasetError, and so is one that is not a number if `bins` is set.
    """
    if sensitive.bins is not None:
        numbers = read_numbers(name, factor, kept, file, column)
        ranges = cut_column(column, numbers, sensitive.bins)
        return ranges.encode(numbers, len(numbers)), tuple(map(str, ranges.values))
    codes = factor.codes[kept]
    counts = np.bincount(codes, minlength=len(factor.values))
    used = [value for value, count in zip(factor.values, counts, strict=True) if count]
    if sensitive.groups is None:
        names = sorted(used, key=natural)
        owner = {value: code for code, value in enumerate(names) if value}
        rest = None
    else:
        names = list(sensitive.groups)
        listed = [(value, code) for code, values in enumerate(sensitive.groups.values()) for value in values]
        owner = {value: code for value, code in listed if value != "*"}
        rest = next((code for code, values in enumerate(sensitive.groups.values()) if values == "*"), None)
    group_of = np.full(len(factor.values), -1, dtype=np.int32)
    for i, value in enumerate(factor.values):
        # '*' means every other value, but not an empty cell.
        fallback = -1 if rest is None or not value else rest
        group_of[i] = owner.get(value, fallback)
    unknown = [value for value in used if group_of[factor.values.index(value)] < 0]
    if unknown:
        value = unknown[0]
        position = factor.values.index(value)
        first = int(np.flatnonzero(kept & (factor.codes == position))[0]) + 1
        raise problem(
            f"unknown group value {value!r}",
            dataset=name,
            file=file,
            column=column,
            expected=", ".join(repr(known) for known in owner) or "a value",
            found=f"{value!r} in {counts[position]:,} rows, first in data row {first}"
            + (f", and also {', '.join(map(repr, unknown[1:6]))}" if unknown[1:] else ""),
            fix="add the value to 'sensitive.groups', or list it under 'drop_rows'",
        )
    return group_of[codes], tuple(names)


def read_numbers(name: str, factor: Factor, kept: np.ndarray, file: str, column: str) -> np.ndarray:
    """The kept rows of a sensitive column of numbers. A value that is not a finite number is a DatasetError."""
    numbers = np.array([_number(value) for value in factor.values])
    found = numbers[factor.codes[kept]]
    if not np.isfinite(found).all():
        wrong = int(np.flatnonzero(~np.isfinite(numbers[factor.codes]) & kept)[0])
        raise problem(
            "a sensitive column with 'bins' holds a value that is no number",
            dataset=name,
            file=file,
            column=column,
            found=f"{factor.values[factor.codes[wrong]]!r} in data row {wrong + 1}",
            fix="list the value under 'drop_rows', or use 'groups' instead of 'bins'",
        )
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
