"""The preparation of a raw data frame for the methods.

Tables in memory, files in chunks and data sets of the configuration are prepared by `decide`: it finds the role of
every column in a data frame, which may be a sample of the rows, and returns the `Preparation` of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.group_encoding import SensitiveColumn, combination_names, cross_codes, cut_column, is_measured
from fairclust.messages import shortened
from fairclust.stored import Stored, StoredError
from fairclust.tables import notes
from fairclust.tables.cells import are_truths, is_unknown, truth
from fairclust.tables.columns import FEW_ROWS, MAX_CATEGORIES, Asked, Column, numbers, understand
from fairclust.tables.text import LEADING_ZERO, TableError
from fairclust.tables.values import as_text, factor

MISSING = ("impute", "drop", "group")
_MISSING_GROUP = "missing"
# A column whose mean is bounded is shown in this many ranges unless another number is asked for.
_SHOWN_RANGES = 4
# The square of a larger number could be infinite.
_TOO_LARGE = 1e150
# Columns of numbers in which more of the cells than this are none are not what the fit has seen.
_MOST_ODD = 0.05
SCALES = ("standardize", "l2", "none")
ROLES = ("number", "ordered", "category")


class _Categories(NamedTuple):
    """The categories of a column. None stands for a missing cell, if that is a category of its own."""

    usual: str | None  # what a missing cell becomes
    frequent: list[str | None]  # sorted; each has a column of the matrix
    rare: list[str | None]  # share one column

    @property
    def places(self) -> dict[str | None, int]:
        found = {value: place for place, value in enumerate(self.frequent)}
        return found | dict.fromkeys(self.rare, len(found))

    @property
    def names(self) -> list[str]:
        words = ["missing" if value is None else value for value in self.frequent]
        return [*words, *(["rare"] if self.rare else [])]

    @classmethod
    def of(cls, cells: pd.Series, missing: str) -> _Categories:
        counts: dict[str | None, int] = cells.value_counts().to_dict()
        n_missing, usual = int(cells.isna().sum()), None
        if missing != "group":
            usual = min(counts, key=lambda value: (-counts[value], value), default=None)
        if n_missing and (counts or missing == "group"):
            counts[usual] = counts.get(usual, 0) + n_missing
        values = sorted(counts, key=lambda value: (value is None, value))
        rare = sorted(values, key=counts.__getitem__)[: 1 - MAX_CATEGORIES]
        rare = rare if len(values) > MAX_CATEGORIES else []
        return cls(usual, [value for value in values if value not in rare], rare)


@dataclass
class Encoder:
    """Turns the columns of a data frame that are features into a matrix of numbers.

    Missing numbers become the median, and missing categories the most frequent one; with `missing` "group", they are a
    category, and a column says which numbers are missing; with "drop", no cell is missing. `scale` "l2" also divides
    every row by its length.

    Columns of zeros and ones are not standardised: two rows that differ in a category are then as far apart as two rows
    usually are in a standardised number (a squared distance of 2), however many categories there are.
    """

    columns: Iterable[Column]
    scale: str = "standardize"
    missing: str = "impute"

    def __post_init__(self) -> None:
        features = [column for column in self.columns if column.is_feature]
        self.columns = sorted(features, key=lambda column: not column.is_number)
        self.numbers = [column.name for column in features if column.is_number]

    def read(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The features, numbers as floats and categories as text; a missing cell is NaN."""
        found = {column.name: _read(frame[column.name], column) for column in self.columns}
        return pd.DataFrame(found, index=frame.index)

    def fit(self, frame: pd.DataFrame) -> Encoder:
        # Imported here, because scikit-learn takes a second and data sets of the configuration are read without it.
        from sklearn.preprocessing import StandardScaler

        cells = self.read(frame)
        filled = cells[self.numbers].dropna(axis=1, how="all")
        self.medians = filled.median().reindex(self.numbers, fill_value=0.0).to_numpy(float)
        lacks = [name for name in self.numbers if self.missing == "group" and cells[name].isna().any()]
        self.lacking, n_columns = lacks, len(self.numbers) + len(lacks)
        self.means, self.scales = np.zeros(n_columns), np.ones(n_columns)
        if self.scale != "none" and n_columns:
            scaler = StandardScaler().fit(self._filled(cells))
            self.means, self.scales = scaler.mean_, scaler.scale_
        categories = [column.name for column in self.columns if not column.is_number]
        self.categories = {name: _Categories.of(cells[name], self.missing) for name in categories}
        return self

    def _filled(self, cells: pd.DataFrame) -> np.ndarray:
        """The numbers, and which of them were missing."""
        X = cells[self.numbers].to_numpy(float)
        return np.column_stack([np.where(np.isnan(X), self.medians, X), cells[self.lacking].isna()])

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """The matrix, shape (n_rows, n_features)."""
        cells = self.read(frame)
        parts = [(self._filled(cells) - self.means) / self.scales]
        for name, known in self.categories.items():
            places, values = known.places, factor(cells[name])
            # A category that did not occur in the fit is none of the known ones.
            codes = np.array([places.get(value, -1) for value in (*values.words, known.usual)])[
                values.entries
            ]
            parts.append(codes[:, None] == np.arange(len(known.names)))
        X = np.ascontiguousarray(np.hstack(parts), dtype=np.float64)
        if self.scale == "l2":
            from sklearn.preprocessing import normalize

            X = normalize(X, copy=False)
        return X

    @property
    def names(self) -> list[str]:
        """The names of the columns of the matrix."""
        coded = [f"{name}_{value}" for name, of in self.categories.items() for value in of.names]
        return [*self.numbers, *(f"{name}_missing" for name in self.lacking), *coded]

    def stored(self) -> dict[str, Any]:
        """What is known and was learned, for a saved model."""
        arrays = {name: getattr(self, name).tolist() for name in ("medians", "means", "scales")}
        told = [{"name": of.name, "role": of.role, "reading": of.reading} for of in self.columns]
        categories = [of._asdict() for of in self.categories.values()]
        return {
            "scale": self.scale,
            "columns": told,
            "lacking": self.lacking,
            "categories": categories,
            **arrays,
        }

    @classmethod
    def from_stored(cls, stored: Stored, missing: str) -> Encoder:
        """The encoder of a saved model."""
        told = [
            (of.text("name"), of.text("role", ROLES), _stored_reading(of.part("reading")))
            for of in stored.parts("columns")
        ]
        columns = [Column(name, role, reading=reading) for name, role, reading in told]  # type: ignore[arg-type]
        found = cls(columns, stored.text("scale", SCALES), missing)
        found.lacking = stored.texts("lacking")
        if not {*found.lacking} <= {*found.numbers}:
            raise StoredError("lacking names other columns")
        found.medians = stored.array("medians", len(found.numbers))
        n_columns = len(found.numbers) + len(found.lacking)
        found.means, found.scales = (stored.array(key, n_columns) for key in ("means", "scales"))
        words = [of.name for of in found.columns if not of.is_number]
        categories = [
            _Categories(
                of.text("usual") if of.has("usual") else None,
                *(of.texts(key, null=True) for key in ("frequent", "rare")),
            )
            for of in stored.parts("categories")
        ]
        if len(categories) != len(words):
            raise StoredError("columns and categories do not fit together")
        found.categories = dict(zip(words, categories, strict=True))
        return found


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

    encoder: Encoder  # fitted
    sensitive: list[str]
    missing: str  # as in `Encoder`
    ids: list[str] = field(default_factory=list)  # columns to write beside the labels
    # The sensitive columns of numbers that are cut into ranges; the ranges are the groups.
    ranges: dict[str, SensitiveColumn] = field(default_factory=dict)
    # The sensitive columns of numbers whose mean the method bounds; it gets their numbers.
    means: list[str] = field(default_factory=list)
    # The sensitive columns and categories that are text, and not numbers.
    texts: list[str] = field(default_factory=list)
    # The sensitive columns of truth values in several spellings, which become 'yes' and 'no'.
    truths: list[str] = field(default_factory=list)
    decimal: str = "."  # of the table

    @property
    def features(self) -> list[str]:
        """The raw columns that are clustered by."""
        return [column.name for column in self.encoder.columns]

    @property
    def needed(self) -> list[str]:
        """The columns in which a row needs values to get a label; features are among them only if none are imputed."""
        return [*self.sensitive, *(self.features if self.missing == "drop" else [])]

    def groups(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The sensitive columns as text, with numbers as `value_text` writes them, or the ranges that they are in.

        Missing values stay missing, or become the group "missing" if `missing` is "group". Raises TableError if the
        table lacks a column, or if a column has both missing values and a group of this name.
        """
        found = {}
        for name in self.sensitive:
            if name not in frame:
                raise TableError(f"the table has no sensitive column {name!r}")
            cells = as_text(
                _in_ranges(frame[name], self.ranges[name], self.decimal)
                if name in self.ranges
                else frame[name]
            )
            if name in self.truths:
                cells = cells.map(truth, na_action="ignore")
            lacks = cells.isna()
            # In a column whose mean is bounded, a missing number stays missing, because it has no part in the mean.
            if self.missing == "group" and name not in self.means and lacks.any():
                if (cells == _MISSING_GROUP).any():
                    raise TableError(
                        f"{name!r} has missing cells and the group {_MISSING_GROUP!r}. Fix: rename the group, or leave "
                        "out the option --missing group"
                    )
                cells[lacks] = _MISSING_GROUP
            found[name] = cells
        return pd.DataFrame(found, index=frame.index, dtype=object)

    def for_method(self, frame: pd.DataFrame, groups: pd.DataFrame, *, by_column: bool) -> Any:
        """The groups as a method takes them: columns by name, or their combinations as text, shape (n_rows,).

        A column whose mean is bounded has its numbers, or is a TableError if it holds none.
        """
        if not by_column:
            return cross(groups).to_numpy(dtype=str)
        found = {name: _texts_as_numbers(frame[name], self.decimal) for name in self.means}
        for name, of in found.items():
            if of.isna().any():
                raise TableError(
                    f"mean_tolerance names {name!r}, which does not hold numbers. Fix: leave it out there"
                )
        return {name: groups[name].to_numpy(dtype=str) for name in groups} | {
            name: of.to_numpy() for name, of in found.items()
        }

    def reasons(self, frame: pd.DataFrame, groups: pd.DataFrame | None) -> pd.Series:
        """Why a row gets no label, as text, which is empty if it gets one. Without `groups`, it needs no group."""
        lacks = pd.DataFrame(index=frame.index) if groups is None else groups.isna()
        if self.missing == "drop":
            lacks = lacks.join(self.encoder.read(frame).isna())
        found = pd.Series("", index=frame.index)
        for name in reversed(lacks.columns):
            found[lacks[name]] = f"no value in {name}"
        return found

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """The features of rows that have no reason to be left out, shape (n_rows, n_features)."""
        return self.encoder.transform(frame)

    def unseen(self, frame: pd.DataFrame) -> dict[str, list[str]]:
        """For each column of categories, its values that did not occur in the fit, if there are any.

        A row with such a value counts as having none of the known values of the column.
        """
        cells, found = self.encoder.read(frame), {}
        for name, known in self.encoder.categories.items():
            found[name] = sorted({*cells[name].dropna().unique()} - {*known.places})
        return {name: values for name, values in found.items() if values}


class Decision(NamedTuple):
    """The preparation of a table, and what a reader should know about it.

    Examples
    --------
    >>> import pandas as pd
    >>> from fairclust.tables import decide
    >>> people = pd.DataFrame({"sex": list("fmfm"), "age": [20, None, 50, 40], "town": list("abab")})
    >>> found = decide(people, ["sex"])
    >>> found.lacking
    {'age': 1}
    >>> [(column.name, column.role) for column in found.columns]
    [('age', 'number'), ('town', 'category')]
    """

    preparation: Preparation
    columns: list[Column]  # those that are not sensitive, excluded or named as identifiers
    lacking: dict[str, int]  # missing cells of features and sensitive columns that have any
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
    measured = [name for name in sensitive if name in means]
    cut = [name for name in sensitive if name not in (*asked.categories, *means)]
    found_ranges = (
        find_ranges(frame, cut, bins, asked),
        find_ranges(frame, measured, bins or _SHOWN_RANGES, asked),
    )
    others = frame.drop(columns=[*sensitive, *ids, *exclude])
    columns = understand(others, asked)
    named = [*ids, *(column.name for column in columns if column.role == "identifier")]
    words = [*sensitive, *(column.name for column in columns if column.role == "category")]
    texts = [name for name in words if not pd.api.types.is_numeric_dtype(frame[name])]
    truths = [name for name in sensitive if name in texts and are_truths(factor(frame[name]).words)]
    encoder, ranges = Encoder(columns, scale, missing), found_ranges[0] | found_ranges[1]
    preparation = Preparation(
        encoder, [*sensitive], missing, named, ranges, measured, texts, truths, asked.decimal
    )
    groups = preparation.groups(frame)
    for name, of in groups.drop(columns=measured).items():
        if len(of) >= FEW_ROWS and of.nunique() > len(of) / 2:
            raise TableError(
                f"{name!r} holds {of.nunique():,} different values in {len(of):,} rows, and each would be a group. "
                "Fix: name a sensitive column whose values many rows share"
            )
    kept = frame[preparation.reasons(frame, groups) == ""]
    if kept.empty:
        needed = " and ".join(preparation.needed)
        raise TableError(f"no row has a value in {needed}. Fix: fill in these cells")
    encoder.fit(kept)
    lacking = {**encoder.read(frame).isna().sum(), **groups.isna().sum()}
    lacking = {name: int(count) for name, count in lacking.items() if count}
    urgent = notes.far_cells(encoder.read(kept)[encoder.numbers])
    urgent += [f"{column.name}: {column.odd}" for column in columns if column.odd]
    told = [*urgent, *notes.of_columns(frame, columns, groups, lacking, missing)]
    told += [
        f"{name}: truth values in several spellings are the groups yes and no"
        for name in sensitive
        if name in truths
    ]
    return Decision(preparation, columns, lacking, told, len(urgent))


def _read(cells: pd.Series, column: Column) -> pd.Series:
    """A feature as floats, or as text; NaN for missing cells and for the few that are no numbers or truth values.

    A column with many cells that are none is a TableError, as is one with a huge number.
    """
    if not column.is_number:
        text = as_text(cells)
        if column.reading.get("truth"):
            text = text.map(lambda word: np.nan if is_unknown(word) else truth(word), na_action="ignore")
        return text
    found = numbers(cells, column.reading)
    strange = cells[found.isna() & cells.notna()].astype(str).str.strip()
    strange = strange[~strange.map(is_unknown)]
    if len(strange) > _MOST_ODD * len(cells) and not column.reading.get("odd"):
        what = "are not steps of its scale" if column.role == "ordered" else "are not numbers"
        raise TableError(
            f"column {column.name!r} has {len(strange):,} cells that {what}, the first is "
            f"{shortened(repr(strange.iloc[0]))} in data row {strange.index[0] + 1:,}"
        )
    large = found.abs() >= _TOO_LARGE
    if large.any():
        row = large.idxmax()
        raise TableError(
            f"column {column.name!r} has {found[row]} in data row {row + 1:,}, which is too large a number to compute "
            "with. Fix: correct it, or --exclude the column"
        )
    return found


def _stored_reading(stored: Stored) -> dict[str, Any]:
    found: dict[str, Any] = {
        key: stored.text(key) for key in ("thousands", "decimal", "unit") if stored.has(key)
    }
    found |= {key: stored.flag(key) for key in ("log", "odd", "truth") if stored.has(key)}
    if stored.has("levels"):
        found["levels"] = stored.texts("levels")
    if stored.has("clip"):
        found["clip"] = stored.array("clip", 2).tolist()
    return found


def find_ranges(
    frame: pd.DataFrame, columns: Sequence[str], bins: int | None, asked: Asked | None = None
) -> dict[str, SensitiveColumn]:
    """Cut the columns that hold many different numbers into `bins` ranges with about as many rows each.

    Otherwise each number would be a group. Columns with few different numbers, and codes that are counted from 0 or 1,
    are not cut. UserError if a column has to be cut and `bins` is None or less than 2.
    """
    found = {}
    for name in columns:
        cells = frame[name].dropna()
        if pd.api.types.is_bool_dtype(cells):
            continue
        if pd.api.types.is_numeric_dtype(cells):
            numbers = cells.to_numpy(dtype=float)
        else:
            # Texts such as '€ 1,200' are numbers if their values would be too many groups.
            text = cells.astype(str).str.strip()
            if text.str.fullmatch(r"\d+").all() or text.str.fullmatch(LEADING_ZERO).any():
                continue
            numbers = _texts_as_numbers(cells, (asked or Asked()).decimal).dropna().to_numpy()
            if len(numbers) < (1 - _MOST_ODD) * len(cells):
                continue
        if np.isinf(numbers).any():
            row = cells.index[np.isinf(numbers).argmax()] + 1
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


def _texts_as_numbers(cells: pd.Series, decimal: str) -> pd.Series:
    return numbers(cells, {"decimal": decimal, "thousands": "." if decimal == "," else ","})


def _in_ranges(cells: pd.Series, column: SensitiveColumn, decimal: str) -> pd.Series:
    """The range of each number as text; missing if the number is missing."""
    numbers = _texts_as_numbers(cells, decimal)
    if (numbers.isna() & cells.notna()).mean() > _MOST_ODD:
        raise TableError(
            f"{column.name!r} has cells that are not numbers, but the model was fitted to numbers. Fix: correct them"
        )
    there = numbers.notna()
    found = pd.Series(None, index=cells.index, dtype=object)
    found[there] = column.values[column.encode(numbers[there].to_numpy(), int(there.sum()))]
    return found
