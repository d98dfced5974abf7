"""The preparation of a raw data frame for the methods, as a scikit-learn pipeline."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, OneHotEncoder, StandardScaler

from fairclust.messages import shortened
from fairclust.tables.columns import MAX_CATEGORIES, Column, is_number, to_number
from fairclust.tables.errors import TableError
from fairclust.tables.values import value_text

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

    Numbers are imputed by their median and standardised. Each category becomes a column of zeros and ones, which
    is not standardised: two rows that differ in a category are then as far apart as two rows usually are in a
    standardised number (a squared distance of 2), however many categories there are.

    Parameters
    ----------
    columns : sequence of Column
        From `understand`.
    scale : {"standardize", "l2", "none"}
        "l2" also divides every row by its length.
    missing : {"impute", "drop", "group"}
        "impute" inserts the median, or the most frequent category. "group" treats a missing category as a category,
        and adds a column that says which numbers are missing. "drop" expects rows without missing cells.
    thousands, decimal : str
        As in `understand`.

    Returns
    -------
    Pipeline
    """
    numbers = [column.name for column in columns if column.role == "number"]
    categories = [column.name for column in columns if column.role == "category"]
    read = FunctionTransformer(
        as_numbers, kw_args={"thousands": thousands, "decimal": decimal}, feature_names_out="one-to-one"
    )
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
