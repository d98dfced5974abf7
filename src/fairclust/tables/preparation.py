"""The preparation of a raw data frame for the methods, as a scikit-learn pipeline.

Tables in memory, files in chunks and data sets of the configuration are prepared by `decide`: it finds the role of
every column in a data frame, which may be a sample of the rows, and returns the `Preparation` of all rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from fairclust.group_encoding import SensitiveColumn, combination_names, cross_codes, cut_column, is_measured
from fairclust.messages import shortened
from fairclust.stored import Stored
from fairclust.tables import notes
from fairclust.tables.columns import FEW_ROWS, MAX_CATEGORIES, Column, numbers, understand
from fairclust.tables.text import TableError
from fairclust.tables.values import as_text, factor

MISSING = ("impute", "drop", "group")
_MISSING_GROUP = "missing"
# A column whose mean is bounded is shown in this many ranges unless another number is asked for.
_SHOWN_RANGES = 4
# The square of a larger number could be infinite.
_TOO_LARGE = 1e150
SCALES = ("standardize", "l2", "none")


@dataclass
class Preparation:
    """What was decided about a table. All rows, those of the fit and new ones, are prepared by it."""

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

    @property
    def features(self) -> list[str]:
        """The raw columns that are clustered by."""
        return [name for _, _, names in self.pipeline.named_steps["columns"].transformers for name in names]

    @property
    def decimal(self) -> str:
        """The decimal point of the table."""
        return self.pipeline.named_steps["columns"].transformers[0][1][0].kw_args["decimal"]

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
                _in_ranges(frame[name], self.ranges[name]) if name in self.ranges else frame[name]
            )
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
        for name in self.means:
            if not pd.api.types.is_numeric_dtype(frame[name]):
                raise TableError(
                    f"mean_tolerance names {name!r}, which does not hold numbers. Fix: leave it out there"
                )
        numbers = {name: frame[name].to_numpy(dtype=float) for name in self.means}
        return {name: groups[name].to_numpy(dtype=str) for name in groups} | numbers

    def reasons(self, frame: pd.DataFrame, groups: pd.DataFrame | None) -> pd.Series:
        """Why a row gets no label, as text, which is empty if it gets one. Without `groups`, it needs no group."""
        lacks = pd.DataFrame(index=frame.index) if groups is None else groups.isna()
        if self.missing == "drop":
            lacks = lacks.join(frame[self.features].isna())
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
        found = {name: set(factor(frame[name]).words) for name in names}
        return {name: sorted(of - set(known[name])) for name, of in found.items() if of - set(known[name])}


class Decision(NamedTuple):
    """The preparation of a table, and what a reader should know about it."""

    preparation: Preparation
    columns: list[Column]  # those that are not sensitive, excluded or named as identifiers
    lacking: dict[str, int]  # missing cells of features and sensitive columns that have any
    notes: list[str]  # what changes the result most comes first


def decide(
    frame: pd.DataFrame,
    sensitive: Sequence[str],
    *,
    features: Collection[str] = (),
    exclude: Collection[str] = (),
    ids: Sequence[str] = (),
    categories: Collection[str] = (),
    means: Collection[str] = (),
    bins: int | None = None,
    scale: str = "standardize",
    missing: str = "impute",
    thousands: str | None = None,
    decimal: str = ".",
) -> Decision:
    """Find the role of every column, and fit the preparation to the rows that have a group.

    Sensitive columns in `categories` are not cut into ranges, although they hold many different numbers, and those in
    `means` are cut only to be shown. TableError if a column cannot be used as asked, or no row is left.
    """
    own: dict[str, Any] = {"thousands": thousands, "decimal": decimal}
    measured = [name for name in sensitive if name in means]
    cut = [name for name in sensitive if name not in (*categories, *means)]
    ranges = find_ranges(frame, cut, bins) | find_ranges(frame, measured, bins or _SHOWN_RANGES)
    others = frame.drop(columns=[*sensitive, *ids, *exclude])
    codes = [name for name in categories if name not in sensitive]
    columns = understand(others, features=features, categories=codes, **own)
    named = [*ids, *(column.name for column in columns if column.role == "identifier")]
    words = [*sensitive, *(column.name for column in columns if column.role == "category")]
    texts = [name for name in words if not pd.api.types.is_numeric_dtype(frame[name])]
    pipeline = make_preparation(columns, scale=scale, missing=missing, **own)
    preparation = Preparation(pipeline, [*sensitive], missing, named, ranges, measured, texts)
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
    pipeline.fit(kept)
    lacking = frame[[*preparation.features, *sensitive]].isna().sum()
    found = {name: int(count) for name, count in lacking.items() if count}
    return Decision(preparation, columns, found, notes.of_columns(frame, columns, groups, found, missing))


def make_preparation(
    columns: Sequence[Column],
    *,
    scale: str = "standardize",
    missing: str = "impute",
    thousands: str | None = None,
    decimal: str = ".",
) -> Pipeline:
    """An unfitted pipeline that turns the columns of a data frame into a matrix of numbers.

    Missing numbers become the median, and missing categories the most frequent one; with `missing` "group", they are a
    category, and a column says which numbers are missing; with "drop", no cell is missing. `scale` "l2" also divides
    every row by its length. `thousands` and `decimal` are as in `understand`.
    """
    numbers = [column.name for column in columns if column.role == "number"]
    categories = [column.name for column in columns if column.role == "category"]
    read = FunctionTransformer(
        as_numbers, kw_args={"thousands": thousands, "decimal": decimal}, feature_names_out="one-to-one"
    )
    # Columns of zeros and ones are not standardised: two rows that differ in a category are then as far apart as two
    # rows usually are in a standardised number (a squared distance of 2), however many categories there are.
    numeric = [read, SimpleImputer(strategy="median", add_indicator=missing == "group")]
    if scale != "none":
        numeric.append(StandardScaler())
    nominal = [FunctionTransformer(as_categories, feature_names_out="one-to-one")]
    if missing != "group":
        nominal.append(SimpleImputer(strategy="most_frequent"))
    nominal.append(OneHotEncoder(sparse_output=False, handle_unknown="ignore", max_categories=MAX_CATEGORIES))
    both = ColumnTransformer(
        [("numbers", make_pipeline(*numeric), numbers), ("categories", make_pipeline(*nominal), categories)],
        verbose_feature_names_out=False,
    )
    return Pipeline([("columns", both), *([("rows", Normalizer())] if scale == "l2" else [])])


def as_numbers(frame: pd.DataFrame, thousands: str | None, decimal: str) -> pd.DataFrame:
    """Columns of numbers as floats. Some of them may be text, such as '44,954'."""
    return frame.apply(_as_number, thousands=thousands, decimal=decimal)


def _as_number(column: pd.Series, thousands: str | None, decimal: str) -> pd.Series:
    found = numbers(column, thousands, decimal)
    strange = column[found.isna() & column.notna()].astype(str).str.strip()
    if len(strange):
        raise TableError(
            f"column {column.name!r} has {len(strange):,} cells that are not numbers, the first is "
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


def as_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of categories as text; a missing cell is NaN."""
    return frame.apply(as_text).astype(object)


def stored_preparation(pipeline: Pipeline) -> dict[str, Any]:
    """What a fitted pipeline of `make_preparation` has learned, for a saved model; a missing category is None."""
    columns = pipeline.named_steps["columns"]
    (_, numeric, numbers), (_, nominal, categories) = columns.transformers_[:2]
    imputer, scaler, encoder = numeric[1], numeric.named_steps.get("standardscaler"), nominal[-1]
    scale = "l2" if "rows" in pipeline.named_steps else "none" if scaler is None else "standardize"
    found = {"numbers": numbers, "scale": scale, **numeric[0].kw_args}
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
    columns = [Column(name, "number") for name in numbers]
    columns += [Column(part.text("name"), "category") for part in parts]
    pipeline = make_preparation(
        columns,
        scale=stored.text("scale", SCALES),
        missing=missing,
        thousands=stored.text("thousands") if stored.has("thousands") else None,
        decimal=stored.text("decimal"),
    )
    # A frequent category occurs more often than a rare one, and the usual one, which is imputed, most often.
    cells = [2 * part.texts("frequent", null=True) + part.texts("rare", null=True) for part in parts]
    n_rows = 1 + max(map(len, cells), default=1)
    table: dict[str, list[Any]] = {}
    if numbers:
        medians = stored.array("medians", len(numbers), finite=False)
        lacking = set(stored.array("lacking", None).tolist())
        for i, name in enumerate(numbers):
            table[name] = [np.nan if i in lacking else medians[i], *[medians[i]] * (n_rows - 1)]
    for column, of in zip(columns[len(numbers) :], cells, strict=True):
        filled = of[:1] * (n_rows - len(of)) + of
        table[column.name] = [np.nan if value is None else value for value in filled]
    pipeline.fit(pd.DataFrame(table))
    scaler = pipeline.named_steps["columns"].named_transformers_["numbers"].named_steps.get("standardscaler")
    if numbers and scaler is not None:
        scaler.mean_, scaler.scale_ = (stored.array(key, len(scaler.mean_)) for key in ("means", "scales"))
    return pipeline


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
