"""The role of each column of a raw table: a number, a category, or no feature."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from fairclust.messages import shortened
from fairclust.tables.text import TableError
from fairclust.tables.values import factor, is_nested, to_numbers

Role = Literal["number", "category", "identifier", "left out"]

MAX_CATEGORIES = 50
"""If a column has more categories than this, its rarer values are joined into one category."""

FEW_ROWS = 20
"""In tables with fewer rows than this, a column often has different values, or small groups, by chance."""

_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d.*)?")
_ID_NAME = re.compile(r"(^|[ _.-])(id|ids|uuid|guid|key|nr|no|index)$|[a-z]ID$", re.IGNORECASE)
_NEARLY_ALL = 0.95


@dataclass(frozen=True)
class Column:
    """A column and its role."""

    name: str
    role: Role
    note: str = ""  # why the column is left out, or how it is read, if that is worth a sentence

    @property
    def is_feature(self) -> bool:
        return self.role in ("number", "category")


def understand(
    frame: pd.DataFrame,
    *,
    features: Collection[str] = (),
    categories: Collection[str] = (),
    thousands: str | None = None,
    decimal: str = ".",
) -> list[Column]:
    """The role of every column of a table without those that cannot be features, such as the sensitive ones.

    If `features` are given, only these are features, and none of them is an identifier. `categories` hold codes of
    categories, although they look like numbers. The default of `thousands` is the comma, or the point if `decimal` is
    a comma. TableError if one of `features` cannot be a feature, or no column is left.
    """
    named = [name for name in frame.columns if not features or name in features]
    signs = (thousands, decimal)
    columns = [_column(frame[name], name, name in features, name in categories, *signs) for name in named]
    unusable = [c for c in columns if not c.is_feature and c.name in features and "constant" not in c.note]
    if unusable:
        raise TableError(f"{unusable[0].name!r} cannot be a feature: {unusable[0].note}")
    if not any(column.is_feature for column in columns):
        why = shortened("; ".join(f"{column.name}: {column.note}" for column in columns), 1000)
        raise TableError(f"no column is left to cluster by ({why or 'there is no other'})")
    return columns


def _column(
    column: pd.Series, name: str, asked: bool, category: bool, thousands: str | None, decimal: str
) -> Column:
    values = column.dropna()
    if is_nested(values):
        return Column(name, "left out", "its cells are lists, not single values")
    if name.startswith("Unnamed: ") and not asked:
        return Column(name, "left out", "it has no name")
    if values.nunique() <= 1:
        return Column(name, "left out", "constant" if len(values) else "constant: every cell is missing")
    if pd.api.types.is_datetime64_any_dtype(values):
        return Column(name, "left out", "dates")
    if category or pd.api.types.is_bool_dtype(values):
        return Column(name, "category", _rare(values))
    if pd.api.types.is_numeric_dtype(values):
        found = None if asked else _identifies(values, name)
        return Column(name, "identifier", found) if found else Column(name, "number")
    return _text_column(values.astype(str).str.strip(), name, asked, thousands, decimal)


def _text_column(text: pd.Series, name: str, asked: bool, thousands: str | None, decimal: str) -> Column:
    found = numbers(text, thousands, decimal)
    numeric = found.notna()
    if numeric.all():
        identifies = None if asked else _identifies(found, name)
        if identifies:
            return Column(name, "identifier", identifies)
        signed = text.str.contains(thousands or _thousands(decimal), regex=False)
        example = "" if not signed.any() else shortened(repr(text[signed].iloc[0]))
        return Column(name, "number", example and f"{example} is read as {found[signed].iloc[0]:.15g}")
    distinct = text.nunique()
    signs = _other_signs(text[~numeric])
    if text.str.fullmatch(_DATE.pattern).mean() > _NEARLY_ALL:
        return Column(name, "left out", f"dates, such as {shortened(repr(text.iloc[0]))}")
    if numeric.mean() > 0.5 and distinct > MAX_CATEGORIES:
        strange = text[~numeric]
        why = (
            f"{len(strange):,} cells are not numbers, the first is {shortened(repr(strange.iloc[0]))} in data row "
            f"{int(strange.index[0]) + 1}; correct them, or see --thousands and --decimal"
        )
        return Column(name, "left out", why)
    many = f"{distinct:,} different values in {len(text):,} rows{signs}"
    if distinct > _NEARLY_ALL * len(text):
        return Column(name, "identifier", f"an identifier: {many}")
    if distinct > 0.5 * len(text):
        return Column(name, "left out", f"free text: {many}")
    return Column(name, "category", (_rare(text) + signs).removeprefix("; "))


def _other_signs(text: pd.Series) -> str:
    """A hint if cells that are no numbers would be numbers with other signs than those that the options name."""
    for option, thousands, decimal in (
        ("--decimal ,", ".", ","),
        ('--thousands "\'"', "'", "."),
        ("--thousands ' '", " ", "."),
        ("--decimal .", ",", "."),
    ):
        if numbers(text, thousands, decimal).notna().mean() > _NEARLY_ALL:
            example = shortened(repr(text.iloc[0]))
            return f"; it seems to hold numbers, such as {example}, which {option} would read"
    return ""


def _rare(values: pd.Series) -> str:
    distinct = values.nunique()
    if distinct <= MAX_CATEGORIES:
        return ""
    return f"of {distinct:,} categories the {MAX_CATEGORIES - 1} most frequent, and one for all others"


def _identifies(values: pd.Series, name: str) -> str | None:
    """Why a column of numbers seems to identify the rows; None if it does not.

    A measurement can also differ in every row. So whole numbers must also count the rows in some order, rise from row
    to row, all have the same number of digits, or have a name like that of an identifier.
    """
    distinct = values.nunique()
    if len(values) < FEW_ROWS or distinct <= _NEARLY_ALL * len(values) or (values % 1 != 0).any():
        return None
    if values.diff().iloc[1:].eq(1).all():
        return "it counts the rows"
    span, digits = float(values.max() - values.min()), values.abs().astype("int64").astype(str).str.len()
    looks_so = span < 1.1 * len(values) or values.is_monotonic_increasing or digits.nunique() == 1
    if looks_so or _ID_NAME.search(name):
        return f"an identifier: {distinct:,} different whole numbers in {len(values):,} rows"
    return None


def numbers(cells: pd.Series, thousands: str | None, decimal: str) -> pd.Series:
    """The cells of a column as floats; NaN for those that are no numbers."""
    if pd.api.types.is_numeric_dtype(cells):
        return cells.astype(float)
    found = to_numbers(factor(cells), decimal, thousands or _thousands(decimal))
    return pd.Series(found, cells.index, name=cells.name)


def _thousands(decimal: str) -> str:
    return "." if decimal == "," else ","
