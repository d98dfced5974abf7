"""Reading a raw table with the options of a command, as the matrix and the groups that the methods take."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from fairclust.cli import CommandError
from fairclust.group_encoding import SensitiveColumn, one_spelling
from fairclust.messages import nearest, shortened
from fairclust.tables import (
    Column,
    TableError,
    cross,
    find_ranges,
    group_columns,
    make_preparation,
    read_table,
    text_or_numbers,
    understand,
)


@dataclass(frozen=True)
class RawTable:
    """The rows that are clustered."""

    frame: pd.DataFrame  # the rows that are kept, all columns; the index counts the rows of the file from 0
    X: np.ndarray  # (n_rows, n_features)
    groups: pd.DataFrame  # the sensitive columns as text
    crossed: np.ndarray  # (n_rows,), the combination of groups of every row, as text
    ranges: dict[str, SensitiveColumn]  # columns of numbers that are cut into ranges, the groups
    columns: list[Column]  # how each column is read
    ids: list[str]  # columns to write beside the labels
    preparation: Pipeline  # turns rows into features; fitted to `frame`
    notes: list[str]  # sentences on what was left out, and on how the rest was read

    @property
    def texts(self) -> list[str]:
        """The sensitive columns and categories that are text, and not numbers."""
        names = [*self.groups, *(column.name for column in self.columns if column.role == "category")]
        return [name for name in names if not pd.api.types.is_numeric_dtype(self.frame[name])]

    @property
    def by_column(self) -> dict[str, np.ndarray]:
        """Codes of the values of each sensitive column, shape (n_rows,); empty if there is only one column."""
        if len(self.groups.columns) < 2:
            return {}
        return {name: np.unique(of, return_inverse=True)[1] for name, of in self.groups.astype(str).items()}


def sensitive_for(cls: type, raw: RawTable, *, crossed: bool, means: Collection[str] = ()) -> Any:
    """The groups in the form that a method takes: columns by name, or combinations of values, shape (n_rows,).

    Columns by name are given if there are several and the method takes them, or if it bounds `means`, columns of
    numbers. With `crossed`, the combinations are the groups. CommandError if `crossed` is combined with `means`,
    because a mean belongs to one column, or one of `means` does not hold numbers.
    """
    if means and crossed:
        raise CommandError(
            "--crossed: mean_tolerance bounds the mean of one column. Fix: leave out one of the two"
        )
    if means:
        try:
            return {name: text_or_numbers(raw.groups, raw.frame, name, means) for name in raw.groups}
        except TableError as error:
            raise CommandError(str(error)) from None
    if len(raw.groups.columns) > 1 and getattr(cls, "takes_columns", False) and not crossed:
        return {name: raw.groups[name].to_numpy(dtype=str) for name in raw.groups}
    return raw.crossed


def read(args: argparse.Namespace, means: Collection[str] = ()) -> RawTable:
    """Read a table, find the role of each column, and prepare the rows.

    `means` are columns of numbers whose mean is bounded; the report shows them in four ranges unless `--bins` says
    otherwise. CommandError, with the option that helps, if the file cannot be read, or a column does not exist or
    cannot be used as asked.
    """
    try:
        frame = read_table(
            args.table,
            delimiter=args.delimiter,
            decimal=args.decimal,
            encoding=args.encoding,
            values=_possible(args.sensitive, args.categories),
            ids=_possible(args.id),
        )
        return _prepare(frame, args, means)
    except TableError as error:
        raise CommandError(str(error)) from None


def _possible(*options: list[str]) -> set[str]:
    """All names that options may mean: as they are given, and cut at commas. Only the table tells which is meant."""
    given = [name for option in options for name in option]
    return {one_spelling(part) for name in given for part in (name, *name.split(","))}


def _prepare(frame: pd.DataFrame, args: argparse.Namespace, means: Collection[str]) -> RawTable:
    listed = {name: _names(getattr(args, name), name, frame, args) for name in _LISTS}
    sensitive, features, ids = listed["sensitive"], listed["features"], listed["id"]
    both = [name for name in features if name in (*sensitive, *ids, *listed["exclude"])]
    if both:
        raise CommandError(
            f"--features: {both[0]!r} is named by another option too. Fix: leave it out of one of the two options"
        )
    # If --categories names a sensitive column of numbers, each number is a group. Other columns with many different
    # numbers are cut into ranges.
    codes = [name for name in sensitive if name in listed["categories"]]
    measured = [name for name in sensitive if name in means]
    ranges = find_ranges(frame, [name for name in sensitive if name not in (*codes, *measured)], args.bins)
    ranges |= find_ranges(frame, measured, args.bins or _SHOWN_RANGES)
    own = {"thousands": args.thousands, "decimal": args.decimal}
    others = frame.drop(columns=[*sensitive, *ids, *listed["exclude"]])
    categories = [name for name in listed["categories"] if name not in codes]
    columns = understand(others, features=features, categories=categories, **own)
    groups = group_columns(frame, sensitive, missing_is_group=args.missing == "group", ranges=ranges)
    for name, of in groups.drop(columns=measured).items():
        if len(of) >= _FEW_ROWS and of.nunique() > len(of) / 2:
            raise CommandError(
                f"--sensitive: {name!r} holds {of.nunique():,} different values in {len(of):,} rows, and each would be "
                "a group. Fix: name a column whose values many rows share"
            )
    # A row without the number cannot count for the mean, so it is left out even if missing values are a group.
    groups[measured] = groups[measured].where(frame[measured].notna())
    used = [column.name for column in columns if column.role != "left out"]
    keep = groups.notna().all(axis=1)
    notes = frame.attrs["notes"] + _column_notes(columns) + _missing_notes(frame, groups, used, args.missing)
    if args.missing == "drop":
        keep &= frame[used].notna().all(axis=1)
    frame, groups = frame[keep], groups[keep]
    crossed = cross(groups).to_numpy(dtype=str)
    if len(set(crossed)) < 2:
        group = f"only the group {shortened(repr(str(crossed[0])))}" if len(crossed) else ""
        only = group or "no row without missing values"
        raise CommandError(f"{args.table} has {only}. Fix: name another column by --sensitive")
    preparation = make_preparation(columns, scale=args.scale, missing=args.missing, **own)
    X = preparation.fit_transform(frame)
    return RawTable(frame, np.ascontiguousarray(X), groups, crossed, ranges, columns, ids, preparation, notes)


_SHOWN_RANGES = 4
# In tables with fewer rows than this, groups can be small by chance.
_FEW_ROWS = 20
_LISTS = ("sensitive", "features", "exclude", "id", "categories")


def _names(given: list[str], option: str, frame: pd.DataFrame, args: argparse.Namespace) -> list[str]:
    """The columns that an option names, as separate arguments or separated by commas."""
    names = [
        one_spelling(part)
        for name in given
        for part in ([name] if one_spelling(name) in frame else name.split(","))
    ]
    for name in names:
        if name not in frame:
            hint = nearest(name, frame.columns)
            delimiter = frame.attrs.get("delimiter")
            if delimiter and (len(frame.columns) == 1 or args.delimiter is None):
                hint += f"; is {delimiter!r} the right --delimiter?"
            raise CommandError(f"--{option}: {args.table} has no column {shortened(repr(name))}; {hint}")
    return list(dict.fromkeys(names))


def _column_notes(columns: Iterable[Column]) -> list[str]:
    lines = []
    for role, words in (("number", ""), ("category", ""), ("left out", "left out: ")):
        lines += [f"{c.name}: {words}{c.note}" for c in columns if c.role == role and c.note]
    return lines


def _missing_notes(frame: pd.DataFrame, groups: pd.DataFrame, used: list[str], missing: str) -> list[str]:
    lacking = frame[used].isna().sum()
    lines = [
        f"{name}: {count:,} missing cells, {_TREATED[missing]}" for name, count in lacking.items() if count
    ]
    without = int(groups.isna().any(axis=1).sum())
    if without:
        lines.append(
            f"{without:,} rows without a value in {' or '.join(groups.columns)} are left out; --missing group makes "
            "them a group"
        )
    return lines


_TREATED = {
    "impute": "imputed",
    "drop": "their rows are left out",
    "group": "treated as a separate value",
}


def describe_scale(scale: str) -> str:
    """How the features are scaled, in words."""
    return {"standardize": "standardised", "l2": "standardised, rows of unit length", "none": "not scaled"}[
        scale
    ]
