"""The preparation of a raw data frame for the methods.

Tables in memory and files in chunks are prepared by `decide`: it finds the role of every column in a data frame, which
may be a sample of the rows, and returns the `Preparation` of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.group_encoding import SensitiveColumn, combination_names, cross_codes, cut_column, is_measured
from fairclust.messages import count, shortened
from fairclust.stored import storable
from fairclust.tables import notes
from fairclust.tables.cells import is_unknown, truth
from fairclust.tables.columns import (
    FEW_ROWS,
    MAX_CATEGORIES,
    Asked,
    Column,
    as_text,
    numbers,
    odd_cells,
    understand,
    understand_column,
)
from fairclust.tables.reading import TableError, is_nested, is_text

_MISSING_GROUP = "missing"
# A column whose mean is bounded is shown in this many ranges unless another number is asked for.
_SHOWN_RANGES = 4
# The square of a larger number could be infinite.
_TOO_LARGE = 1e150
# Columns of numbers in which more of the cells than this are none are not what the fit has seen.
_MOST_ODD = 0.05


def _learned(column: Column, cells: pd.Series, scale: str, missing: str) -> Column:
    """A feature with what its preparation needs to know of the rows of the fit.

    "fill" replaces missing cells. "parts" has the columns of the matrix: for each a name, the values for which it is
    one, or None if it has the number, and what is subtracted from it and divides it.
    """
    lacks = cells.isna()
    fill: float | str = _MISSING_GROUP
    parts: list[tuple[str, list[Any] | None, float, float]]
    if column.is_number:
        fill = 0.0 if lacks.all() else float(cells.median())
        parts = [(column.name, None, *_mean_and_scale(cells.fillna(fill), scale))]
        if missing == "group" and lacks.any():
            parts.append((f"{column.name}_missing", [None], *_mean_and_scale(lacks.astype(float), scale)))
        return replace(column, reading={**column.reading, "fill": fill, "parts": parts})
    if missing != "group" and not lacks.all():
        # Of several values that are the most frequent, the first.
        fill = cells.value_counts().sort_index().idxmax()
    counts = cells.fillna(fill).value_counts().sort_index()
    n_rare = len(counts) - MAX_CATEGORIES + 1 if len(counts) > MAX_CATEGORIES else 0
    rare = counts.sort_values(kind="stable").index[:n_rare].tolist()
    parts = [(f"{column.name}_{value}", [value], 0.0, 1.0) for value in counts.index if value not in rare]
    if rare:
        parts.append((f"{column.name}_rare", rare, 0.0, 1.0))
    return replace(column, reading={**column.reading, "fill": fill, "parts": parts})


def _mean_and_scale(numbers: pd.Series, scale: str) -> tuple[float, float]:
    if scale == "none" or numbers.min() == numbers.max():
        return (0.0 if scale == "none" else float(numbers.iloc[0])), 1.0
    return float(numbers.mean()), float(numbers.std(ddof=0)) or 1.0


def encoded_names(columns: Iterable[Column]) -> list[str]:
    """The names of the columns that `Preparation.transform` returns."""
    return [name for column in columns for name, *_ in column.reading["parts"]]


@storable
@dataclass
class Preparation:
    """What was decided about a table. All rows, those of the fit and new ones, are prepared by it.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust.tables import decide
    >>> people = pd.DataFrame({"sex": list("fmfm"), "age": [20, 30, 50, 40], "town": list("aabb")})
    >>> preparation = decide(people, ["sex"]).preparation
    >>> preparation.features
    ['age', 'town']
    >>> preparation.transform(people).shape
    (4, 3)
    """

    columns: list[Column]  # the features, numbers first, from `decide`
    sensitive: list[str]
    # Missing numbers become the median, and categories the most frequent one. With "group", they are a category, and a
    # column says which numbers are missing. With "drop", their rows are left out.
    missing: str = "impute"
    ids: list[str] = field(default_factory=list)  # columns to write beside the labels
    # The sensitive columns of numbers that are cut into ranges; the ranges are the groups.
    ranges: dict[str, SensitiveColumn] = field(default_factory=dict)
    # The sensitive columns of numbers whose mean the method bounds; it gets their numbers.
    means: list[str] = field(default_factory=list)
    # How sensitive columns of text become numbers or truth values, as `Column.reading`; empty for names of groups.
    readings: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)  # columns that are text, and not numbers
    decimal: str = "."  # of the table
    # Whether many cells that are no numbers are an error. In the rows of a fit, `decide` has judged how many there are,
    # and a part of these rows can have more of them.
    strict: bool = True

    @property
    def features(self) -> list[str]:
        """The raw columns that are clustered by."""
        return [column.name for column in self.columns]

    @property
    def needed(self) -> list[str]:
        """The columns in which a row needs values to get a label; features are among them only if none are imputed."""
        return [*self.sensitive, *(self.features if self.missing == "drop" else [])]

    def groups(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The sensitive columns as text, with numbers as `value_text` writes them, or the ranges that they are in.

        Missing values stay missing, or become the group "missing" if `missing` is "group". TableError if the table
        lacks a column.
        """
        found = {}
        for name in self.sensitive:
            if name not in frame:
                raise TableError(f"the table has no sensitive column {name!r}")
            if (ranges := self.ranges.get(name)) is None:
                cells = self._read(frame, Column(name, "category", reading=self.readings.get(name, {})))
            else:
                ends = [-np.inf, *np.asarray(ranges.edges), np.inf]
                cut = pd.cut(self._numbers(frame, name), ends, right=False, labels=ranges.values)
                cells = cut.astype(object)
            # In a column whose mean is bounded, a missing number stays missing, because it has no part in the mean.
            if self.missing == "group" and name not in self.means:
                cells = cells.fillna(_MISSING_GROUP)
            found[name] = cells
        return pd.DataFrame(found, index=frame.index, dtype=object)

    def ranges_of(self, frame: pd.DataFrame, name: str, bins: int | None) -> SensitiveColumn | None:
        """A sensitive column of many different numbers, cut into `bins` ranges with about as many rows each.

        Otherwise each number would be a group. None for few different numbers, text and, without `bins`, codes that
        are counted from 0 or 1. UserError if a column has to be cut and `bins` is None or less than 2.
        """
        reading = self.readings.get(name, {})
        if "truth" in reading or not (reading or pd.api.types.is_numeric_dtype(frame[name].dropna())):
            return None
        cells = self._numbers(frame, name).dropna()
        if not is_measured(cells.unique(), len(cells) if bins is None else None):
            return None
        if bins is None and name not in self.means:
            raise TableError(
                f"{name!r} holds {cells.nunique():,} different numbers, and each would be a group. Fix: --bins 4, for "
                "example, makes four ranges of them; if they identify the rows, name another column"
            )
        return cut_column(name, cells.to_numpy(), _SHOWN_RANGES if bins is None else bins)

    def _numbers(self, frame: pd.DataFrame, name: str) -> pd.Series:
        """The numbers of a sensitive column."""
        return self._read(frame, Column(name, "number", reading=self.readings.get(name, {})))

    def _read(self, frame: pd.DataFrame, column: Column) -> pd.Series:
        return read(frame[column.name], column, strict=self.strict)

    def for_method(self, frame: pd.DataFrame, groups: pd.DataFrame, *, by_column: bool) -> Any:
        """The groups as a method takes them: columns by name, or their combinations as text, shape (n_rows,).

        A column whose mean is bounded has its numbers, or is a TableError if it does not hold numbers.
        """
        if not by_column:
            return cross(groups).to_numpy(dtype=str)
        words = {name: groups[name].to_numpy(dtype=str) for name in groups}
        return words | {name: self._numbers(frame, name).to_numpy() for name in self.means}

    def reasons(self, frame: pd.DataFrame, groups: pd.DataFrame | None) -> pd.Series:
        """Why a row gets no label, as text, which is empty if it gets one. Without `groups`, it needs no group."""
        lacks = pd.DataFrame(index=frame.index) if groups is None else groups.isna()
        if self.missing == "drop":
            missing = {column.name: self._read(frame, column).isna() for column in self.columns}
            lacks = lacks.join(pd.DataFrame(missing, index=frame.index))
        found = pd.Series("", index=frame.index)
        for name in reversed(lacks.columns):
            found[lacks[name]] = f"no value in {name}"
        return found

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """The features of rows that have no reason to be left out, shape (n_rows, n_features).

        Numbers are standardised, and zeros and ones for categories are not: two rows that differ in a category are then
        as far apart as two rows usually are in a standardised number (a squared distance of 2), however many categories
        there are.
        """
        found = []
        for column in self.columns:
            cells = self._read(frame, column)
            filled = cells.fillna(column.reading["fill"])
            codes, values = (None, ()) if column.is_number else pd.factorize(filled)
            for _, ones, mean, scale in column.reading["parts"]:
                if ones is None:
                    part = filled
                elif codes is None:
                    part = cells.isna()
                else:
                    # A category that did not occur in the fit is none of the known ones.
                    part = np.array([value in ones for value in values], bool)[codes]
                found.append((np.asarray(part, np.float64) - mean) / scale)
        return np.column_stack(found)

    def notes_on(self, frame: pd.DataFrame) -> list[str]:
        """Sentences on cells of new rows that count as missing, or as none of the known values."""
        sentences, lacking = [], []
        for column in self.columns:
            name, cells = column.name, frame[column.name]
            values = read(cells, column, strict=False)
            missing = values.isna()
            if odd := odd_cells(cells[missing & cells.notna()].astype(str)):
                sentences.append(f"{name}: {odd}")
            if missing.any():
                lacking.append(f"{name} {missing.sum():,} of {len(frame):,}")
            known = {value for _, ones, *_ in column.reading["parts"] for value in ones or ()}
            if new := [] if column.is_number else sorted({*values[~missing]} - known):
                sentences.append(
                    f"{name}: {count(len(new), 'value')} did not occur in the fit, such as {shortened(repr(new[0]))}; "
                    "these rows count as having none of the known values"
                )
        if lacking:
            sentences.append(f"missing cells, {notes.TREATED[self.missing]}: {', '.join(lacking)}")
        return sentences


class Decision(NamedTuple):
    """The preparation of a table, and what a reader should know about it.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust.tables import decide
    >>> people = pd.DataFrame({"sex": list("fmfm"), "age": [20, None, 50, 40], "town": list("abab")})
    >>> [(column.name, column.role) for column in decide(people, ["sex"]).columns]
    [('age', 'number'), ('town', 'category')]
    """

    preparation: Preparation
    columns: list[Column]  # those that are not sensitive, excluded or named as identifiers
    notes: list[str]  # what changes the result most comes first
    n_urgent: int  # the number of notes that are on cells far from all others, or that are no numbers


def decide(
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    *,
    exclude: Collection[str] = (),
    ids: Sequence[str] = (),
    asked: Asked | None = None,
    means: Collection[str] = (),
    bins: int | None = None,
    scale: str = "standardize",
    missing: str = "impute",
) -> Decision:
    """Find the role of every column, and fit the preparation to the rows that have a group.

    Sensitive columns among the categories that are `asked` for are not cut into ranges, although they hold many
    different numbers, and those in `means` are cut only to be shown. TableError if a column cannot be used as asked, or
    no row is left.
    """
    asked = asked or Asked()
    if nested := [name for name in sensitive if is_nested(frame[name])]:
        raise TableError(f"the cells of column {nested[0]!r} are lists, not single values")
    others = frame.drop(columns=[*sensitive, *ids, *exclude])
    columns = understand(others, replace(asked, blanks=missing == "group"))
    features = sorted((column for column in columns if column.is_feature), key=lambda of: not of.is_number)
    understood = {name: _sensitive(frame[name], asked, bins) for name in sensitive}
    preparation = Preparation(
        features,
        [*sensitive],
        missing,
        [*ids, *(column.name for column in columns if column.role == "identifier")],
        means=[name for name in sensitive if name in means],
        readings={name: of.reading for name, of in understood.items()},
        texts=[of for of in (*sensitive, *others) if is_text(frame[of])],
        decimal=asked.decimal,
    )
    for name in sensitive:
        if name not in asked.categories and (cut := preparation.ranges_of(frame, name, bins)) is not None:
            preparation.ranges[name] = cut
    uncut = [of for of in understood.values() if of.name not in (*preparation.ranges, *asked.categories)]
    numeric = [of.name for of in uncut if of.role == "number" or not is_text(frame[of.name])]
    if bins is not None and not (numeric or preparation.ranges):
        why = "; ".join(f"{of.name}: {of.note}" for of in uncut if of.note)
        why = why or "no sensitive column holds numbers. Fix: leave it out, or add --numbers"
        raise TableError(f"--bins: {why}")
    groups = preparation.groups(frame)
    for name, of in groups.drop(columns=preparation.means).items():
        if len(of) >= FEW_ROWS and of.nunique() > len(of) / 2:
            raise TableError(
                f"{name!r} holds {of.nunique():,} different values in {len(of):,} rows, and each would be a group. "
                "Fix: name a sensitive column whose values many rows share"
            )
    kept = preparation.reasons(frame, groups) == ""
    if not kept.any():
        needed = " and ".join(preparation.needed)
        raise TableError(f"no row has a value in {needed}. Fix: fill in these cells")
    cells = {of.name: read(frame[of.name], of) for of in features}
    preparation.columns = [_learned(of, cells[of.name][kept], scale, missing) for of in features]
    urgent = notes.far_cells({of.name: cells[of.name][kept] for of in features if of.is_number}, asked)
    # Odd cells of numbers that are groups as they are, are groups as well.
    lacking = [of for of in understood.values() if of.name not in numeric or "odd" in of.reading]
    urgent += [f"{column.name}: {column.odd}" for column in (*columns, *lacking) if column.odd]
    sentences = [*urgent, *notes.of_columns(columns, cells, groups, missing)]
    sentences += [f"{of}: {by.note}" for of, by in understood.items() if by.note and by.role != "category"]
    few = [of for of in numeric if groups[of].nunique() > (bins or np.inf)]
    sentences += [f"{of}: its few different numbers are groups, as --bins cuts columns of many" for of in few]
    return Decision(preparation, columns, sentences, len(urgent))


def read(cells: pd.Series, column: Column, *, strict: bool = True) -> pd.Series:
    """A feature as floats, or as text; NaN for missing cells and for the few that are no numbers or truth values.

    A column with many cells that are none is a TableError if `strict`, and one with a huge number always is.
    """
    if not column.is_number:
        text = as_text(cells)
        if column.reading.get("truth"):
            text = text.map(lambda word: np.nan if is_unknown(word) else truth(word), na_action="ignore")
        # If --numbers names a sensitive column, cells that are no numbers are missing.
        return text.where(numbers(cells, column.reading).notna()) if "odd" in column.reading else text
    found = numbers(cells, column.reading)
    strange = cells[found.isna() & cells.notna()].astype(str).str.strip()
    strange = strange[~strange.map(is_unknown)]
    if strict and len(strange) > _MOST_ODD * len(cells) and not column.reading.get("odd"):
        what = "are not steps of its scale" if column.role == "ordered" else "are not numbers"
        raise TableError(
            f"column {column.name!r} has {len(strange):,} cells that {what}, the first is "
            f"{shortened(repr(' '.join(strange.iloc[0].split())))} in data row {strange.index[0] + 1:,}. Fix: write "
            "them as in the table of the fit"
        )
    large = found.abs() >= _TOO_LARGE
    if large.any():
        row = large.idxmax()
        raise TableError(
            f"column {column.name!r} has {found[row]} in data row {row + 1:,}, which is too large a number to compute "
            "with. Fix: correct it, or --exclude the column"
        )
    return found


def _sensitive(cells: pd.Series, asked: Asked, bins: int | None) -> Column:
    """A sensitive column of numbers or truth values, or otherwise of names of groups, as they are.

    TableError if it has to be numbers, or each of many numbers would be a group, but some cells are none.
    """
    name = str(cells.name)
    try:
        column = understand_column(cells, replace(asked, features=[name]))
        if column.role == "number" or "truth" in column.reading:
            return column
        # Such a note says why `--bins` cannot cut the column.
        return Column(name, "category", column.note if bins and "--numbers" in column.note else "")
    except TableError:
        if bins is not None or name in asked.numbers or cells.nunique() > MAX_CATEGORIES:
            raise
    return Column(name, "category")


def cross(groups: pd.DataFrame) -> pd.Series:
    """One group for each combination of the columns' values. If one value is missing, the group is missing too.

    UserError if two combinations have one name, because a value contains the sign between values.
    """
    complete = groups.notna().all(axis=1)
    codes, values = zip(*(pd.factorize(groups.loc[complete, name]) for name in groups), strict=True)
    crossed, cells = cross_codes(codes)
    names = combination_names(cells, values, f" of {' and '.join(groups.columns)}")
    found = pd.Series(np.nan, index=groups.index, dtype=object)
    found[complete] = np.array(names, dtype=object)[crossed]
    return found
