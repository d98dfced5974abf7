"""The preparation of a raw data frame for the methods, as a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from fairclust.group_encoding import value_text
from fairclust.messages import shortened
from fairclust.stored import Stored
from fairclust.tables.columns import MAX_CATEGORIES, Column, is_number, to_number
from fairclust.tables.errors import TableError

MISSING = ("impute", "drop", "group")
# The square of a larger number could be infinite.
_TOO_LARGE = 1e150
SCALES = ("standardize", "l2", "none")


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
    numbers = _converted(column, thousands, decimal)
    large = ~(numbers.abs() < _TOO_LARGE) & numbers.notna()
    if large.any():
        row = large.idxmax()
        raise TableError(
            f"column {column.name!r} has {column[row]} in data row {row + 1:,}, which is too large a number to compute "
            "with. Fix: correct it, or --exclude the column"
        )
    return numbers


def _converted(column: pd.Series, thousands: str | None, decimal: str) -> pd.Series:
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(float)
    text = column.dropna().astype(str).str.strip()
    strange = text[~is_number(text, thousands, decimal)]
    if len(strange):
        raise TableError(
            f"column {column.name!r} has {len(strange):,} cells that are not numbers, the first is "
            f"{shortened(repr(strange.iloc[0]))} in data row {strange.index[0] + 1:,}"
        )
    return to_number(text, thousands, decimal).astype(float).reindex(column.index)


def as_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns of categories as text; a missing cell is NaN."""
    return frame.apply(lambda column: column.astype(object).map(value_text, na_action="ignore")).astype(
        object
    )


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
