"""The preparation of a raw data frame for the methods, as a scikit-learn pipeline.

Tables in memory, files in chunks and data sets of the configuration are prepared by `decide`: it finds the role of
every column in a data frame, which may be a sample of the rows, and returns the `Preparation` of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.group_encoding import SensitiveColumn, combination_names, cross_codes, cut_column, is_measured
from fairclust.messages import shortened
from fairclust.stored import Stored
from fairclust.tables import notes
from fairclust.tables.cells import are_truths, is_unknown, truth
from fairclust.tables.columns import FEW_ROWS, MAX_CATEGORIES, Asked, Column, numbers, understand
from fairclust.tables.text import TableError
from fairclust.tables.values import as_text, factor

if TYPE_CHECKING:
    from sklearn.pipeline import Pipeline

MISSING = ("impute", "drop", "group")
_MISSING_GROUP = "missing"
# A column whose mean is bounded is shown in this many ranges unless another number is asked for.
_SHOWN_RANGES = 4
# The square of a larger number could be infinite.
_TOO_LARGE = 1e150
# Columns of numbers in which more of the cells than this are none are not what the fit has seen.
_MOST_ODD = 0.05
SCALES = ("standardize", "l2", "none")


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

    pipeline: Pipeline  # fitted, from `make_preparation`
    sensitive: list[str]
    missing: str  # as in `make_preparation`
    ids: list[str] = field(default_factory=list)  # columns to write beside the labels
    # The sensitive columns of numbers that are cut into ranges; the ranges are the groups.
    ranges: dict[str, SensitiveColumn] = field(default_factory=dict)
    # The sensitive columns of numbers whose mean the method bounds; it gets their numbers.
    means: list[str] = field(default_factory=list)
    # The sensitive columns and categories that are text, and not numbers.
    texts: list[str] = field(default_factory=list)
    # Columns of truth values in several spellings, which become 'yes' and 'no'.
    truths: list[str] = field(default_factory=list)
    decimal: str = "."  # of the table

    @property
    def features(self) -> list[str]:
        """The raw columns that are clustered by."""
        return [name for _, _, names in self.pipeline.named_steps["columns"].transformers for name in names]

    @property
    def readings(self) -> dict[str, Mapping[str, Any]]:
        """How the cells of each column of numbers become numbers, see `columns.numbers`."""
        return self.pipeline.named_steps["columns"].transformers[0][1][0].kw_args["readings"]

    def lacks(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Which cells of the features are missing, shape (n_rows, n_features); also those that are no numbers."""
        found = {
            name: numbers(frame[name], self.readings[name]).isna()
            if name in self.readings
            else frame[name].isna()
            for name in self.features
        }
        for name in {*self.truths} & {*found}:
            found[name] |= frame[name].map(lambda cell: isinstance(cell, str) and is_unknown(cell))
        return pd.DataFrame(found, index=frame.index)

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
            lacks = lacks.join(self.lacks(frame))
        found = pd.Series("", index=frame.index)
        for name in reversed(lacks.columns):
            found[lacks[name]] = f"no value in {name}"
        return found

    def transform(self, frame: pd.DataFrame) -> np.ndarray:
        """The features of rows that have no reason to be left out, shape (n_rows, n_features)."""
        return np.ascontiguousarray(self.pipeline.transform(frame), dtype=np.float64)

    def unseen(self, frame: pd.DataFrame) -> dict[str, list[str]]:
        """For each column of categories, its values that did not occur in the fit, if there are any.

        A row with such a value counts as having none of the known values of the column.
        """
        _, pipeline, names = self.pipeline.named_steps["columns"].transformers_[1]
        known = dict(zip(names, pipeline[-1].categories_, strict=True)) if names else {}
        cells = as_categories(frame[[*names]], [name for name in names if name in self.truths])
        found = {name: {word for word in cells[name].unique() if isinstance(word, str)} for name in names}
        return {name: sorted(of - set(known[name])) for name, of in found.items() if of - set(known[name])}


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
    truths = [column.name for column in columns if column.reading.get("truth")]
    truths += [name for name in sensitive if name in texts and are_truths(factor(frame[name]).words)]
    pipeline = make_preparation(columns, scale=scale, missing=missing)
    ranges = found_ranges[0] | found_ranges[1]
    preparation = Preparation(
        pipeline, [*sensitive], missing, named, ranges, measured, texts, truths, asked.decimal
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
    for name, reading in preparation.readings.items():
        if reading.get("clip"):
            found = numbers(frame[name], {**reading, "clip": None})
            preparation.readings[name] = {**reading, "clip": found.quantile([0.01, 0.99]).tolist()}
    pipeline.fit(kept)
    lacking = {**preparation.lacks(frame).sum(), **groups.isna().sum()}
    lacking = {name: int(count) for name, count in lacking.items() if count}
    far = {name: numbers(kept[name], reading) for name, reading in preparation.readings.items()}
    urgent = notes.far_cells(far) + [f"{column.name}: {column.odd}" for column in columns if column.odd]
    told = [*urgent, *notes.of_columns(frame, columns, groups, lacking, missing)]
    told += [
        f"{name}: truth values in several spellings are the groups yes and no"
        for name in sensitive
        if name in truths
    ]
    return Decision(preparation, columns, lacking, told, len(urgent))


def make_preparation(
    columns: Sequence[Column], *, scale: str = "standardize", missing: str = "impute"
) -> Pipeline:
    """An unfitted pipeline that turns the columns of a data frame into a matrix of numbers.

    Missing numbers become the median, and missing categories the most frequent one; with `missing` "group", they are a
    category, and a column says which numbers are missing; with "drop", no cell is missing. `scale` "l2" also divides
    every row by its length.
    """
    # Imported here, because scikit-learn takes a second and data sets of the configuration are read without it.
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

    numbers = {column.name: column.reading for column in columns if column.is_number}
    categories = {column.name: column.reading for column in columns if column.role == "category"}
    truths = [name for name, reading in categories.items() if reading.get("truth")]
    read = FunctionTransformer(as_numbers, kw_args={"readings": numbers}, feature_names_out="one-to-one")
    # Columns of zeros and ones are not standardised: two rows that differ in a category are then as far apart as two
    # rows usually are in a standardised number (a squared distance of 2), however many categories there are.
    numeric = [read, SimpleImputer(strategy="median", add_indicator=missing == "group")]
    if scale != "none":
        numeric.append(StandardScaler())
    nominal = [FunctionTransformer(as_categories, kw_args={"truths": truths}, feature_names_out="one-to-one")]
    if missing != "group":
        nominal.append(SimpleImputer(strategy="most_frequent"))
    nominal.append(OneHotEncoder(sparse_output=False, handle_unknown="ignore", max_categories=MAX_CATEGORIES))
    both = ColumnTransformer(
        [
            ("numbers", make_pipeline(*numeric), [*numbers]),
            ("categories", make_pipeline(*nominal), [*categories]),
        ],
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", both), *([("rows", Normalizer())] if scale == "l2" else [])])


def as_numbers(frame: pd.DataFrame, readings: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """Columns of numbers as floats. They may be text, such as '44,954', '12 km' or the steps of a scale."""
    return pd.DataFrame({name: _as_number(frame[name], readings[name]) for name in frame}, index=frame.index)


def _as_number(column: pd.Series, reading: Mapping[str, Any]) -> pd.Series:
    """The numbers of a column. A few cells that are none are missing, many are a TableError, as is a huge number."""
    found = numbers(column, reading)
    strange = column[found.isna() & column.notna()].astype(str).str.strip()
    strange = strange[~strange.map(is_unknown)]
    if len(strange) > _MOST_ODD * len(column) and not reading.get("odd"):
        what = "are not steps of its scale" if "levels" in reading else "are not numbers"
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


def as_categories(frame: pd.DataFrame, truths: Collection[str] = ()) -> pd.DataFrame:
    """Columns of categories as text; a missing cell is NaN. Those in `truths` become 'yes' and 'no'."""
    found = frame.apply(as_text).astype(object)
    for name in truths:
        found[name] = [
            cell if not isinstance(cell, str) else np.nan if is_unknown(cell) else truth(cell)
            for cell in found[name]
        ]
    return found


def stored_preparation(pipeline: Pipeline) -> dict[str, Any]:
    """What a fitted pipeline of `make_preparation` has learned, for a saved model; a missing category is None."""
    columns = pipeline.named_steps["columns"]
    (_, numeric, numbers), (_, nominal, categories) = columns.transformers_[:2]
    imputer, scaler, encoder = numeric[1], numeric.named_steps.get("standardscaler"), nominal[-1]
    scale = "l2" if "rows" in pipeline.named_steps else "none" if scaler is None else "standardize"
    found: dict[str, Any] = {"numbers": numbers, "scale": scale}
    found["readings"] = list(numeric[0].kw_args["readings"].values())
    found["truths"] = nominal[0].kw_args["truths"]
    if numbers:
        found["medians"] = imputer.statistics_.tolist()
        found["lacking"] = imputer.indicator_.features_.tolist() if imputer.add_indicator else []
    if numbers and scaler is not None:
        found |= {"means": scaler.mean_.tolist(), "scales": scaler.scale_.tolist()}
    found["categories"] = []
    for i, name in enumerate(categories):
        known, rare = (
            [value if isinstance(value, str) else None for value in ([] if of[i] is None else of[i])]
            for of in (encoder.categories_, encoder.infrequent_categories_)
        )
        usual = nominal[1].statistics_[i] if len(nominal) == 3 else None
        frequent = sorted(set(known) - set(rare), key=lambda value: (value != usual, value is None, value))
        found["categories"].append({"name": name, "frequent": frequent, "rare": rare})
    return found


def read_preparation(stored: Stored, missing: str) -> Pipeline:
    """The fitted pipeline of a saved model, whose columns of categories list the usual value first.

    The pipeline is fitted to a small table that has the same medians and the same frequent and rare categories. So
    nothing depends on private attributes of scikit-learn.
    """
    numbers, parts = stored.texts("numbers"), stored.parts("categories")
    readings, truths = stored.parts("readings"), stored.texts("truths")
    columns = [
        Column(name, "number", reading=_stored_reading(reading))
        for name, reading in zip(numbers, readings, strict=True)
    ]
    names = [part.text("name") for part in parts]
    columns += [Column(name, "category", reading={"truth": name in truths}) for name in names]
    pipeline = make_preparation(columns, scale=stored.text("scale", SCALES), missing=missing)
    # A frequent category occurs more often than a rare one, and the usual one, which is imputed, most often.
    cells = [2 * part.texts("frequent", null=True) + part.texts("rare", null=True) for part in parts]
    n_rows = 1 + max(map(len, cells), default=1)
    table: dict[str, list[Any]] = {}
    if numbers:
        medians = stored.array("medians", len(numbers), finite=False)
        lacking = set(stored.array("lacking", None).tolist())
        for i, name in enumerate(numbers):
            table[name] = [np.nan if i in lacking else medians[i], *[medians[i]] * (n_rows - 1)]
    # These are numbers already.
    read = pipeline.named_steps["columns"].transformers[0][1][0]
    whole, read.kw_args = read.kw_args, {"readings": {name: {} for name in numbers}}
    for column, of in zip(columns[len(numbers) :], cells, strict=True):
        filled = of[:1] * (n_rows - len(of)) + of
        table[column.name] = [np.nan if value is None else value for value in filled]
    pipeline.fit(pd.DataFrame(table))
    for own in (read, pipeline.named_steps["columns"].transformers_[0][1][0]) if numbers else (read,):
        own.kw_args = whole
    scaler = pipeline.named_steps["columns"].named_transformers_["numbers"].named_steps.get("standardscaler")
    if numbers and scaler is not None:
        scaler.mean_, scaler.scale_ = (stored.array(key, len(scaler.mean_)) for key in ("means", "scales"))
    return pipeline


def _stored_reading(stored: Stored) -> dict[str, Any]:
    found: dict[str, Any] = {
        key: stored.text(key) for key in ("thousands", "decimal", "unit") if stored.has(key)
    }
    found |= {key: stored.flag(key) for key in ("log", "odd") if stored.has(key)}
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
            if text.str.fullmatch(r"\d+").all() or text.str.fullmatch(r"0\d+").any():
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
