"""Sentences on what was found in a table, so that nobody clusters something else than was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from fairclust.messages import listed, percent, quoted, shortened
from fairclust.tables.cells import SIZES, is_named, is_unknown, pattern, usual_units
from fairclust.tables.columns import Asked, Column, without_log

# Whole numbers with at most this many different values may be codes of categories.
_FEW_VALUES = 12
# If this share of the cells is missing, half of the values of the column or more are made up.
_MANY_MISSING = 0.5
TREATED = {"impute": "imputed", "drop": "their rows are left out", "group": "treated as a separate value"}
_SHOWN = 10
# If at most this many cells, of that many rows for each, make up most of a column's variance, a note names them.
_FAR_CELLS, _ROWS_OF_VARIANCE, _MOST_VARIANCE = 3, 20, 0.5
# Numbers that stand for missing values in files of surveys. A negative one is far from numbers from 0 with this range.
_WIDE = 10
_CODES = [-1, *(sign * (10**n - less) for sign in (1, -1) for n in range(1, 8) for less in (1, 2, 3))]
_CODES += [999.9, 9999.9, -99.9, -999.9, -9999.9]
_CODES += [sign * int(digit * n) for sign in (1, -1) for n in range(2, 8) for digit in "78"]


def of_columns(
    columns: Sequence[Column], cells: Mapping[str, pd.Series], groups: pd.DataFrame, missing: str
) -> list[str]:
    """Sentences on columns and groups. What changes the result most comes first.

    `cells` are the features as they were read, and `groups` the sensitive columns as text.
    """
    features = [column for column in columns if column.is_feature]
    lacking = {name: n for name, of in cells.items() if (n := int(of.isna().sum()))}
    protected = [of.name for of in features if is_named(of.name, "protected")]
    weights = [of.name for of in features if _may_be_weights(of)]
    codes = [of.name for of in features if of.name not in (*protected, *weights) and _may_be_codes(of, cells)]
    texts = {of.name: cells[of.name] for of in features if not of.is_number} | dict(groups.items())
    notes = [
        f"{name}: {n:,} of {len(groups):,} cells are missing, {TREATED[missing]}; --exclude {quoted(name)} leaves the "
        "column out"
        for name, n in lacking.items()
        if n >= _MANY_MISSING * len(groups)
    ]
    if protected:
        notes.append(
            f"{listed(protected)}: clustered by, and not among the sensitive columns, so nothing is promised for "
            f"{'their' if len(protected) > 1 else 'its'} groups; name them by --sensitive, or leave them out by "
            "--exclude"
        )
    if weights:
        notes.append(
            f"{listed(weights)}: clustered by, as {'numbers' if len(weights) > 1 else 'a number'}; if it says how "
            f"many people a row stands for, --weight {quoted(weights[0])}"
        )
    notes += [f"{name}: {text}" for name, of in texts.items() for text in _alike(of)]
    for name, of in groups.items():
        # "missing" is the group of missing values, if this was asked for.
        kept = {"missing"} if missing == "group" else set()
        if unknown := [repr(value) for value in {*of.dropna()} - kept if is_unknown(str(value))]:
            notes.append(
                f"{name}: missing values seem to be groups with bounds of their own ({listed(sorted(unknown))}); empty "
                "these cells in the table if their rows are to be treated as missing"
            )
    if left_out := [f"{column.name} ({column.note})" for column in columns if not column.is_feature]:
        notes.append("left out: " + "; ".join(left_out))
    notes += [f"{column.name}: {column.note}" for column in features if column.note]
    if codes:
        notes.append(
            f"{listed(codes)}: taken as numbers; if these whole numbers are codes, --categories "
            + " ".join(map(quoted, codes[:_SHOWN]))
        )
    rest = ", ".join(f"{name} {n:,}" for name, n in lacking.items())
    return [*notes, f"missing cells, {TREATED[missing]}: {rest}"] if rest else notes


def _may_be_weights(column: Column) -> bool:
    """Whether the name of a column of numbers is one of weights, without a unit of mass as those of bodies have."""
    units = {*usual_units(column.name), column.reading.get("unit", "")}
    is_mass = any(SIZES.get(of, ("",))[0] == "mass" for of in units)
    return column.role == "number" and is_named(column.name, "weights") and not is_mass


def _may_be_codes(column: Column, cells: Mapping[str, pd.Series]) -> bool:
    """Whether a column holds few whole numbers, or any if it is named like codes; truth values are not meant."""
    if column.role != "number" or column.note:
        return False
    found = cells[column.name].dropna().unique()
    is_code = pattern("id_name").search(column.name) or is_named(column.name, "codes")
    return len(found) > 2 and (bool(is_code) or len(found) <= _FEW_VALUES) and not (found % 1).any()


def far_cells(numbers: Mapping[str, pd.Series], asked: Asked) -> list[str]:
    """Sentences on columns with codes for missing values, or of which a few cells make up most of the variance."""
    notes = []
    for name, cells in numbers.items():
        stated = without_log(cells, {"log": True}).round(9) if name in asked.log else cells
        if codes := _missing_codes(stated):
            notes.append(
                f"{shortened(name)}: {codes}, far from all other numbers; if this stands for missing values, empty "
                f"these cells in the table, or --exclude {quoted(name)}"
            )
            continue
        squares = ((cells - cells.mean()) ** 2).dropna()
        if len(squares) < _ROWS_OF_VARIANCE or not squares.sum():
            continue
        most = squares.nlargest(min(_FAR_CELLS, len(squares) // _ROWS_OF_VARIANCE))
        share = most.cumsum() / squares.sum()
        if share.iloc[-1] > _MOST_VARIANCE:
            rows = most.index[: int((share < _MOST_VARIANCE).sum()) + 1]
            shown = ", ".join(f"{stated[row]:,.10g} in data row {row + 1:,}" for row in rows)
            others = [of for of in ("clip", "log") if name not in getattr(asked, of)]
            options = " or ".join(f"--{of} {quoted(name)}" for of in (*others, "exclude"))
            notes.append(
                f"{shortened(name)}: {shown} {'make' if len(rows) > 1 else 'makes'} up {percent(share[rows[-1]], 0)} "
                f"of its variance, so all other rows look alike in it; correct the table, or {options}"
            )
    return notes


def _missing_codes(cells: pd.Series) -> str:
    """Numbers such as 999 and -9 that occur several times, far from all others, with their counts; empty if none do."""
    is_code = cells.isin(_CODES)
    low, high = cells[~is_code].min(), cells[~is_code].max()
    span = high - low
    if not span > 0:
        return ""
    far = [
        f"{number:.10g} occurs in {count:,} cells"
        for number, count in cells[is_code].value_counts().items()
        if count > 1
        and (
            max(number - high, low - number) > span
            or (number < 0 <= low and span >= _WIDE)
            # Among answers from 1 to 5, but not on a scale of 1, 3, 5, 7 and 9.
            or ((low, high, number) == (1, 5, 9) and not (cells == 7).any())
        )
    ]
    return " and ".join(far)


def left_out_rows(reasons: Mapping[str, int], missing: str) -> list[str]:
    """A sentence on the rows that get no label, with the numbers of rows for each reason; none if all rows get one."""
    total = sum(reasons.values())
    if not total:
        return []
    counts = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.items())
    lack = any(reason.startswith("no value in ") for reason in reasons)
    advice = "; --missing group makes missing values a group" if lack and missing == "impute" else ""
    return [f"{total:,} {'rows are' if total > 1 else 'row is'} left out: {counts}{advice}"]


def _alike(groups: pd.Series) -> list[str]:
    """Values that differ only by case or blanks are probably one."""
    counts = groups.value_counts().sort_index()
    keys = ["".join(str(name).split()).casefold() for name in counts.index]
    alike = [of for _, of in counts.groupby(pd.Series(keys, counts.index), sort=False) if len(of) > 1]
    shown = [" and ".join(f"{shortened(repr(name))} ({n:,} rows)" for name, n in of.items()) for of in alike]
    return [
        f"{names} differ only by case or blanks, and count as {len(of)} values; write one of them in the table if they "
        "are one"
        for names, of in zip(shown, alike, strict=True)
    ]
