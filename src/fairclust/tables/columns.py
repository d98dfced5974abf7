"""The role of each column of a raw table: a number, an ordered scale, a category, or no feature."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from fairclust.group_encoding import value_text
from fairclust.messages import count, listed, quoted, shortened
from fairclust.stored import storable
from fairclust.tables import cells
from fairclust.tables.reading import TableError, is_nested

Role = Literal["number", "ordered", "category", "identifier", "left out"]

MAX_CATEGORIES = 50
"""If a column has more categories than this, its rarer values are joined into one category."""

FEW_ROWS = 20
"""In tables with fewer rows than this, a column often has different values, or small groups, by chance."""

_NEARLY_ALL = 0.95
# The least share of numbers among the cells of a column of numbers whose other cells say that they are missing.
_SOME = 0.1
# Whole numbers of one length with at least so many digits are numbers of accounts, phones and the like.
_LONG = 7
# So many words of a column show whether it holds numbers at all.
_MANY = 2000
# The decimal point of a file is not that of a column if the other one reads so many times as many cells.
_CLEARLY = 1.02
# The mean gap of numbers that rise from row to row and identify the rows is smaller than this.
_GAP = 50


@storable
@dataclass(frozen=True)
class Column:
    """A column and its role."""

    name: str
    role: Role
    note: str = ""  # why the column is left out, or how it is read, if that is worth a sentence
    # How cells become numbers (see `numbers`), or {"truth": True} for truth values in several spellings.
    reading: Mapping[str, Any] = field(default_factory=dict)
    odd: str = ""  # which cells count as missing, although they are not empty

    @property
    def is_feature(self) -> bool:
        return self.role in ("number", "ordered", "category")

    @property
    def is_number(self) -> bool:
        return self.role in ("number", "ordered")


@dataclass(frozen=True)
class Asked:
    """What the user has said about columns; the rest is found.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust.tables import Asked, decide
    >>> people = pd.DataFrame({"sex": list("fmfm"), "size": ["small", "huge", "large", "small"]})
    >>> asked = Asked(ordered={"size": ["small", "large", "huge"]})
    >>> [(column.name, column.role) for column in decide(people, ["sex"], asked=asked).columns]
    [('size', 'ordered')]
    """

    features: Collection[str] = ()  # only these are features, and none of them is an identifier
    categories: Collection[str] = ()  # codes of categories, although they may look like numbers
    numbers: Collection[str] = ()  # numbers, although they may look like codes; other cells are missing
    ordered: Mapping[str, Sequence[str]] = field(default_factory=dict)  # the steps of a scale, in their order
    log: Collection[str] = ()  # numbers of which the logarithm is taken
    clip: Collection[str] = ()  # numbers that are cut at their 1 % and 99 % quantiles
    decimal: str = "."
    blanks: bool = False  # whether missing cells are a value of their own

    @property
    def measured(self) -> set[str]:
        """Columns that are numbers, whatever they look like."""
        return {*self.numbers, *self.log, *self.clip}


def understand(frame: pd.DataFrame, asked: Asked = Asked()) -> list[Column]:
    """The role of every column of a table without those that cannot be features, such as the sensitive ones.

    TableError if a column cannot be used as it was asked for, it is unclear whether a column holds numbers, or no
    column is left.
    """
    named = [name for name in frame.columns if not asked.features or name in asked.features]
    columns, errors = [], []
    for name in named:
        try:
            columns.append(understand_column(frame[name], asked))
        except TableError as error:
            errors.append(str(error))
    if errors:
        raise TableError("\n".join(errors))
    wanted = {*asked.features, *asked.numbers, *asked.ordered}
    for column in columns:
        if not column.is_feature and column.name in wanted and "constant" not in column.note:
            raise TableError(f"{column.name!r} cannot be a feature: {column.note}")
        if column.name in (*asked.log, *asked.clip) and column.role != "number":
            what = f"{column.name!r} is: {column.role}"
            raise TableError(f"--log and --clip need a column of numbers, but {what}")
    if not any(column.is_feature for column in columns):
        why = shortened("; ".join(f"{column.name}: {column.note}" for column in columns), 1000)
        raise TableError(f"no column is left to cluster by ({why or 'there is no other'})")
    return columns


def understand_column(column: pd.Series, asked: Asked) -> Column:
    """The role of one column, see `understand`."""
    name, values = str(column.name), column.dropna()
    if is_nested(values):
        return Column(name, "left out", "its cells are lists, not single values")
    if name.startswith("Unnamed: ") and name not in asked.features:
        return Column(name, "left out", "it has no name")
    if values.nunique() + (asked.blanks and len(values) < len(column)) <= 1:
        lacks = ", apart from missing cells" if len(values) < len(column) else ""
        return Column(name, "left out", f"constant{lacks if len(values) else ': every cell is missing'}")
    if values.dtype.kind == "M" or isinstance(values.iloc[0], datetime.date | datetime.time):
        return Column(name, "left out", "dates")
    if name in asked.categories or pd.api.types.is_bool_dtype(values):
        return Column(name, "category", _rare(values))
    if pd.api.types.is_timedelta64_dtype(values):
        return Column(name, "number", "durations, in days")
    if name in asked.ordered:
        return _scale(as_text(values), name, [str(step) for step in asked.ordered[name]])
    is_ordered = isinstance(values.dtype, pd.CategoricalDtype) and values.dtype.ordered
    if is_ordered and name not in asked.measured and all(isinstance(of, str) for of in values.cat.categories):
        return _scale(as_text(values), name, [of for of in values.cat.categories if cells.is_step(of)])
    if pd.api.types.is_numeric_dtype(values):
        # pyarrow's numbers lack some arithmetic.
        plain = values if isinstance(values.dtype, np.dtype) else values.astype(float)
        # In new rows, one cell that is no number makes all cells of the column texts.
        return _number(Column(name, "number", reading={"decimal": asked.decimal}), plain, asked)
    return _of_text(values.astype(str).str.strip(), name, asked)


def _of_text(text: pd.Series, name: str, asked: Asked) -> Column:
    """The role of a column of text, in which no cell is missing."""
    entries, found = pd.factorize(text)
    words, counts = found.tolist(), np.bincount(entries)
    first = shortened(repr(words[0]))
    unknown = np.array([cells.is_unknown(word) for word in words])

    def share(fits: Any) -> float:
        return float(counts[np.array(fits, bool)].sum() / len(text))

    def are_nearly_all(pattern: str) -> bool:
        fits = share([cells.pattern(pattern).fullmatch(word) for word in words])
        return fits > max(_NEARLY_ALL * share(~unknown), 0.5)

    if name not in asked.measured:
        months = {word[:3].lower() for word in words if cells.pattern("month_year").fullmatch(word)}
        are_dates = are_nearly_all("date") or (are_nearly_all("month_year") and len(months) > 2)
        if name not in asked.features and are_dates:
            return Column(name, "left out", f"dates, such as {first}")
        if cells.are_truths(words):
            ways = shortened(", ".join(map(repr, sorted(np.array(words)[~unknown].tolist()))), 200)
            note = f"truth values: {ways} are read as yes or no"
            return Column(name, "category", note, {"truth": True}, odd_cells(text[unknown[entries]]))
        if scale := cells.steps(words) if len(words) <= MAX_CATEGORIES else []:
            return _scale(text, name, scale)
        codes = [*filter(cells.pattern("code").fullmatch, words)]
        if codes or are_nearly_all("phone"):
            return _codes(text, name, f"codes, such as {shortened(repr((codes or words)[0]))}", asked)
    reading, values = find_reading(words, counts, asked.decimal, name)
    there, any_odd, distinct = ~np.isnan(values), name in asked.numbers, len(words)
    n_rare = reading.pop("rare", 0)

    def fit_nearly_all(fits: np.ndarray) -> bool:
        return share(fits) >= max(_NEARLY_ALL * (share(there | ~unknown) - n_rare / len(text)), _SOME)

    if any_odd and not there.any():
        raise TableError(f"--numbers: no cell of {name!r} is a number, the first is {first}")
    if any_odd or fit_nearly_all(there):
        reading |= {"odd": True} if any_odd else {}
        note = _example(words, values, reading["unit"])
        are_limits = bool({*"<>≤≥+"} & {*"".join(words)}) and there.sum() > 1 == len({*values[there]})
        if are_limits and name not in asked.measured:
            note = f"all would be the number {values[there][0]:.10g}, so they are categories"
            return Column(name, "category", note)
        column = Column(name, "number", note, reading, odd_cells(text[~there[entries]]))
        return _number(column, pd.Series(values[entries], text.index).dropna(), asked)
    # Numbers in units that mean the same in all columns do not become categories.
    units = [(cells.by_any_sign(word) if reading else None) for word in words]
    known = [of is not None and (not of[1] or cells.is_clear(of[1])) for of in units]
    strange = text[~(there | unknown)[entries]]
    are_many = share(there) > (0.5 if distinct > MAX_CATEGORIES else 0.9)
    is_long = distinct > MAX_CATEGORIES or FEW_ROWS <= len(text) < 2 * distinct
    if (are_many and is_long) or fit_nearly_all(there | known):
        unit = f" in {reading['unit']!r}" if reading["unit"] else ""
        raise TableError(
            f"{name!r} holds numbers{unit}, but {count(len(strange), 'cell')} of {len(text):,} do not fit, the first "
            f"is {shortened(repr(strange.iloc[0]))} in data row {int(strange.index[0]) + 1:,}. Fix: --numbers "
            f"{quoted(name)} takes these cells as missing, --categories {quoted(name)} takes all as categories, "
            f"--exclude {quoted(name)} leaves the column out, or correct them"
        )
    many = f"{distinct:,} different values in {len(text):,} rows"
    if distinct > 0.5 * len(text) and are_nearly_all("several"):
        why = f"several numbers in a cell, such as {first}; to cluster by them, give each a column of its own"
        return Column(name, "left out", why)
    are_sentences = 2 * sum(word.count(" ") > 5 for word in words) > distinct
    if distinct > _NEARLY_ALL * len(text) and not are_sentences:
        return Column(name, "identifier", f"an identifier: {many}")
    # Half of the comments can be 'none'.
    if distinct > 0.5 * len(text) or (are_sentences and distinct > max(0.2 * len(text), MAX_CATEGORIES)):
        return Column(name, "left out", f"free text: {many}")
    if share([of is not None for of in units]) <= 0.5:
        return Column(name, "category", _rare(text))
    note = f"{count(len(strange), 'cell')} such as {shortened(repr(strange.iloc[0]))} are no numbers in one unit, so "
    note += f"all are categories; --numbers {quoted(name)} takes these cells as missing"
    return Column(name, "category", note)


def _number(column: Column, values: pd.Series, asked: Asked) -> Column:
    """A column of numbers, unless they are whole numbers that are labels."""
    name = column.name
    if name not in asked.measured and (values % 1 == 0).all() and (label := _as_label(column, values, asked)):
        return label
    reading = {**column.reading, **({"log": True} if name in asked.log else {})}
    if name in asked.clip:
        reading["clip"] = numbers(values, {"log": name in asked.log}).quantile([0.01, 0.99]).tolist()
    return replace(column, reading=reading)


def _as_label(column: Column, values: pd.Series, asked: Asked) -> Column | None:
    """The column if its whole numbers are dates, identifiers or codes; None if they are measurements.

    A measurement can also differ in every row. With signs or units, as in 'FR-12', identifiers must count the rows.
    """
    name, is_plain = column.name, not column.note
    n_rows, distinct = len(values), values.nunique()
    low, high = float(values.min()), float(values.max())
    span, n_digits = high - low, len(f"{low:.0f}")
    # Salaries can have five digits each, and be different.
    one_length = low >= 0 and n_digits == len(f"{high:.0f}") >= _LONG
    is_clock = one_length and n_digits in (10, 13) and cells.is_named(name, "dates")
    is_day = cells.pattern("day").fullmatch
    are_days = is_plain and low >= 10_000 and all(map(is_day, map("{:06.0f}".format, values)))
    # Spreadsheets store dates as numbers of days. These are the days from 1954 to 2064.
    are_days |= is_plain and low >= 20_000 and high < 60_000 and bool(cells.pattern("date_name").search(name))
    # A few numbers of six digits can look like days by chance.
    if is_clock or (are_days and (low >= 10**7 or distinct >= FEW_ROWS or cells.is_named(name, "calendar"))):
        return Column(name, "left out", f"dates, such as {values.iloc[0]:.0f}")
    if n_rows >= FEW_ROWS and distinct > _NEARLY_ALL * n_rows and name not in asked.features:
        # A table can be sorted by a measurement, which has larger gaps than numbers that are given one after another.
        rises = values.is_monotonic_increasing and span < _GAP * n_rows
        is_named = cells.pattern("id_name").search(name)
        if span < 1.1 * n_rows or (is_plain and (rises or one_length or is_named)):
            why = f"an identifier: {distinct:,} different whole numbers in {n_rows:,} rows"
            return Column(name, "identifier", f"{why}; --numbers {quoted(name)} measures them")
    is_coded = cells.is_named(name, "coded") and not cells.is_named(name, "amounts")
    is_code = is_coded or (cells.is_named(name, "codes") and high >= 100)
    # Numbers of phones may be written in groups, and '945xx' is a code.
    if is_code and not cells.is_clear(str(column.reading.get("unit", ""))):
        return _codes(values, name, "codes, by the name of the column", asked)
    are_years = low >= 1800 and high <= 2100 and distinct <= MAX_CATEGORIES
    if not is_plain:
        return None
    years_by_name = cells.is_named(name, "years") or 1900 <= low < high <= 2050
    if are_years and years_by_name and not cells.is_named(name, "since"):
        return _codes(values, name, "years", asked)
    if one_length and n_rows >= FEW_ROWS and (values % 1000 == 0).mean() < 0.05:
        return _codes(values, name, f"numbers of {n_digits} digits each, which seem to be codes", asked)
    return None


def _codes(values: pd.Series, name: str, why: str, asked: Asked) -> Column:
    """A column of codes: a category if values repeat, or no feature."""
    distinct, number = values.nunique(), cells.as_number(str(values.iloc[0]))
    how = "" if number is None else f"--numbers {quoted(name)} measures them"
    if distinct > 0.5 * len(values) and distinct > MAX_CATEGORIES and name not in asked.features:
        many = f"{why}: {distinct:,} different values in {len(values):,} rows"
        return Column(name, "identifier", "; ".join(filter(None, [many, how])))
    notes = [f"{why}, taken as categories", how, _rare(values)]
    return Column(name, "category", "; ".join(filter(None, notes)))


def _scale(text: pd.Series, name: str, scale: list[str]) -> Column:
    known = {cells.key(step) for step in scale}
    strange = text[[cells.key(word) not in known for word in text]]
    if unknown := [word for word in strange if not cells.is_unknown(word)]:
        raise TableError(
            f"--ordered: {name!r} has {shortened(repr(unknown[0]))}, which is not among its steps "
            f"{shortened(', '.join(scale), 200)}. Fix: list every step"
        )
    note = f"a scale: {shortened(' < '.join(scale), 200)}"
    odd = odd_cells(strange, "is a step, --ordered states it")
    return Column(name, "ordered", note, {"levels": scale}, odd)


def find_reading(
    words: list[str], counts: np.ndarray, decimal: str = ".", name: str = ""
) -> tuple[dict[str, Any], np.ndarray]:
    """The decimal point and the unit by which most cells are numbers, and these numbers; NaN for other cells.

    The decimal point that the file or the user has is taken unless the other one fits clearly better.
    """
    # Most columns of so many words are texts, which a sample shows in less time.
    if len(words) > _MANY and sum(cells.by_any_sign(word) is not None for word in words[:_MANY]) < _MANY / 5:
        return {}, np.full(len(words), np.nan)
    stated, swapped = (_read(words, counts, of, name) for of in (decimal, "." if decimal == "," else ","))
    is_number, money = ~np.isnan(stated[1]), cells.is_currency(stated[0]["unit"])
    n_stated, n_swapped = (counts[~np.isnan(values)].sum() for _, values in (stated, swapped))
    signed = is_number & (stated[1] != swapped[1])
    # All signs stand before three digits, as in '€ 2.046' or '2,046 km'. They separate thousands in amounts of money,
    # and if some numbers have no sign.
    is_larger = np.nansum(np.abs(swapped[1])) > np.nansum(np.abs(stated[1]))
    is_thousands = is_larger and n_stated <= n_swapped and (money or (is_number & ~signed).any())
    return _with_clear_units(words, *(swapped if n_swapped > _CLEARLY * n_stated or is_thousands else stated))


def _with_clear_units(
    words: Sequence[str], reading: dict[str, Any], values: np.ndarray
) -> tuple[dict[str, Any], np.ndarray]:
    """The reading and its numbers, without those that have no unit if they seem to have another one than the others.

    Beside '1.72 m', 172 is in centimetres, and beside '7/10', 7 is a number of points. Beside '90k', '1.5m' may be
    millions.
    """
    unit, there = reading["unit"], ~np.isnan(values) & (values != 0)
    is_bare = np.array([bool(cells.pattern("bare").fullmatch(word)) for word in words])
    of_bare, of_stated = (np.array(words, object)[there & of] for of in (is_bare, ~is_bare))
    bare, stated = (np.abs(values[there & of]) for of in (is_bare, ~is_bare))
    if not (bare.size and stated.size):
        return reading, values
    if other := cells.WORDS["other_unit"].get(unit):
        low, high = stated.min() / 2, 2 * stated.max()
        converted = bare * cells.SIZES[other][1] / cells.SIZES[unit][1]
        is_unclear = ((bare < low) | (bare > high)).all() and ((low <= converted) & (converted <= high)).all()
        may_be_millions = unit == "m" and not any(" m" in word for word in words)
        is_unclear |= may_be_millions and any(word[-1] in "kKbB" for word in of_bare)
    else:
        points = [*map(cells.pattern("points").fullmatch, of_stated)]
        is_unclear = all(points) and len({of and of[1] for of in points}) == 1 and bool((bare > 1).any())
    return (reading | {"bare": False}, np.where(is_bare, np.nan, values)) if is_unclear else (reading, values)


def _are_minutes(words: Iterable[str]) -> bool:
    """Whether 58:12 beside 1:02:45 are minutes: one such time is no time of a day, or the long ones have few hours."""
    times = [[*map(int, found[0].split(":"))] for found in map(cells.pattern("time").match, words) if found]
    long, short = ([time for time in times if len(time) == n] for n in (3, 2))
    # Times of the day may have seconds, which are zero.
    if not short or not any(seconds for *_, seconds in long):
        return False
    return max(short)[0] >= 24 or (max(long)[0] < 2 <= min(short)[0] and max(short) > [12, 0])


def _read(words: list[str], counts: np.ndarray, decimal: str, name: str) -> tuple[dict[str, Any], np.ndarray]:
    """How words are read as numbers with a decimal point, and these numbers; NaN for other words."""
    clock = "min" if _are_minutes(words) else "h"
    amounts = [cells.measured(word, decimal, clock) for word in words]
    units = Counter[str]()
    for amount, n in zip(amounts, counts, strict=True):
        if amount and amount[1]:
            units[amount[1]] += int(n)
    # Among hours, 'm' are minutes, so that the column is not measured in metres.
    times = Counter({unit: n for unit, n in units.items() if cells.SIZES.get(unit, ("",))[0] == "time"})
    # If a few of the cells are times, as one '12 h' among prices or metres, the column is not one of times.
    letters = sum(units[of] for of in (*cells.WORDS["time_letters"], "M"))
    if 20 * times.total() <= units.total() or 2 * (times.total() + letters) <= units.total():
        times.clear()
        del units["mn"]  # These are millions.
    unit, n_rows = (times or units).most_common(1)[0] if units else ("", 0)
    # A letter behind some of the numbers, as in '2A' among '75', and '5a' beside '5b', is no unit.
    is_letter = len(unit) == 1 and unit.isalpha() and not cells.is_clear(unit)
    n_numbers = counts[[any(amount or ()) for amount in amounts]].sum()
    # One '12 miles' does not say that many other numbers are miles, unless the column's name does. Zeros need no unit.
    is_rare = 20 * units.total() <= n_numbers and unit in {*cells.SIZES} - cells.usual_units(name)
    if (is_letter and n_rows < _NEARLY_ALL * n_numbers) or is_rare:
        unit = ""
    values = np.array([cells.in_unit(*of, unit) for of in zip(words, amounts, strict=True)], dtype=float)
    return {"decimal": decimal, "unit": unit, "clock": clock, "rare": is_rare * units.total()}, values


def _example(words: Sequence[str], found: np.ndarray, unit: str) -> str:
    """How the first word that does not state the number plainly is read; empty if all do."""
    for word, number in zip(words, found, strict=True):
        if not np.isnan(number) and cells.as_number(word) != number:
            of_unit = f" (unit: {unit})" if unit in cells.SIZES and unit not in word else ""
            # A blank that does not break would be shown as \xa0.
            shown = shortened(repr(" ".join(word.split())))
            return f"{shown} is read as {number:.10g}{of_unit}"
    return ""


def odd_cells(strange: pd.Series, zero: str = "means 0, write 0 in the table") -> str:
    """A sentence on cells that count as missing; `zero` ends the advice on words that may mean 0."""
    if strange.empty:
        return ""
    shown = list(dict.fromkeys(strange))
    row = f" in data row {int(strange.index[0]) + 1:,}" if len(strange) == 1 else ""
    zeros = [word for word in shown if word.lower() in cells.WORDS["zero"] or cells.is_empty_amount(word)]
    hint = f"; if {shortened(repr(zeros[0]))} {zero}" if zeros else ""
    words = listed((shortened(repr(word)) for word in shown), 3)
    return f"{count(len(strange), 'cell')} ({words}{row}) {'count' if len(strange) > 1 else 'counts'} as missing{hint}"


def _rare(values: pd.Series) -> str:
    distinct = values.nunique()
    if distinct <= MAX_CATEGORIES:
        return ""
    return f"of {distinct:,} categories the {MAX_CATEGORIES - 1} most frequent, and one for all others"


def numbers(column: pd.Series, reading: Mapping[str, Any]) -> pd.Series:
    """The cells of a column as floats; NaN for those that are no numbers.

    `reading` has what `Column.reading` has: the sign "decimal", the "unit", the "clock" and whether "bare" numbers
    without the unit count, or the "levels" of a scale, which become 0, 1, 2 and so on; then the logarithm is taken if
    "log", and numbers are cut at "clip".
    """
    if "levels" in reading:
        steps = {cells.key(step): i for i, step in enumerate(reading["levels"])}
        return _by_value(column, lambda word: steps.get(cells.key(word)))
    if pd.api.types.is_timedelta64_dtype(column):
        return column / pd.Timedelta(days=1)
    if pd.api.types.is_numeric_dtype(column):
        read = column.astype(float)
    else:
        how, unit = (reading.get("decimal", "."), reading.get("clock", "h")), reading.get("unit", "")
        with_bare = reading.get("bare", True)

        def number(word: str) -> float | None:
            is_left_out = not with_bare and cells.pattern("bare").fullmatch(word)
            return None if is_left_out else cells.in_unit(word, cells.measured(word, *how), unit)

        read = _by_value(column, number)
    if reading.get("log"):
        read = np.sign(read) * np.log1p(read.abs())
    return read.clip(*reading["clip"]) if "clip" in reading else read


def without_log(values: pd.Series, reading: Mapping[str, Any]) -> pd.Series:
    """The numbers of which the logarithm was taken, if it was."""
    return np.sign(values) * np.expm1(values.abs()) if reading.get("log") else values


def as_text(column: pd.Series) -> pd.Series:
    """The cells of a column as texts, see `value_text`; a missing cell is NaN."""
    return _by_value(column, str, object)


def _by_value(column: pd.Series, change: Callable[[str], Any], dtype: type = float) -> pd.Series:
    """What the text of every cell is changed to, which is computed once for every different value."""
    codes, found = pd.factorize(column)
    values = [change(value_text(value)) for value in found]
    return pd.Series(np.array([*values, np.nan], dtype)[codes], column.index, name=column.name)
