"""Reading a raw table with the options of a command, as the matrix and the groups that the methods take."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairclust.cli import CommandError
from fairclust.group_encoding import one_spelling
from fairclust.messages import nearest, shortened
from fairclust.tables import Decision, Preparation, cross, decide, left_out_rows, numbers, read_table


@dataclass(frozen=True)
class RawTable:
    """The rows that are clustered."""

    frame: pd.DataFrame  # all columns; the index counts the rows of the file from 0
    X: np.ndarray  # (n_rows, n_features)
    groups: pd.DataFrame  # the sensitive columns as text
    crossed: np.ndarray  # (n_rows,), the combination of groups of every row, as text
    preparation: Preparation
    notes: list[str]  # sentences on what was left out, and on how the rest was read
    whole: pd.DataFrame  # the identifiers of all rows of the file
    reasons: pd.Series  # for every row of the file, why it is not clustered; empty text if it is
    weights: np.ndarray | None  # (n_rows,), of mean 1; None if all rows count alike


def sensitive_for(cls: type, raw: RawTable, *, crossed: bool) -> Any:
    """The groups in the form that a method takes: columns by name, or combinations of values, shape (n_rows,).

    Columns by name are given if there are several and the method takes them, or if the mean of one is bounded. With
    `crossed`, the combinations are the groups. CommandError if a mean is bounded as well, because that belongs to one
    column, or if its column does not hold numbers.
    """
    means = raw.preparation.means
    if means and crossed:
        raise CommandError(
            "--crossed: mean_tolerance bounds the mean of one column. Fix: leave out one of the two"
        )
    several = len(raw.groups.columns) > 1 and getattr(cls, "takes_columns", False) and not crossed
    return raw.preparation.for_method(raw.frame, raw.groups, by_column=bool(means) or several)


def read(args: argparse.Namespace, means: Collection[str] = ()) -> RawTable:
    """Read a table, find the role of each column, and prepare the rows.

    `means` are columns of numbers whose mean is bounded; the report shows them in four ranges unless `--bins` says
    otherwise. CommandError, with the option that helps, if the file cannot be read, or a column does not exist or
    cannot be used as asked.
    """
    frame = read_table(
        args.table,
        delimiter=args.delimiter,
        decimal=args.decimal,
        encoding=args.encoding,
        values=possible(args.sensitive, args.categories),
        ids=possible(args.id),
    )
    counts = None
    counted = pd.Series(True, index=frame.index)
    for name in _weight(frame, args):
        counts = numbers(frame[name], args.thousands, frame.attrs["decimal"])
        counted = (counts > 0) & np.isfinite(counts)
        if not counted.any():
            raise CommandError(
                f"--weight: no cell of {shortened(repr(name))} is a positive number. Fix: name a column of numbers"
            )
    found = decided(frame[counted], args, means)
    preparation = found.preparation
    groups = preparation.groups(frame)
    reasons = preparation.reasons(frame, groups)
    reasons[(reasons == "") & ~counted] = f"no positive number in {args.weight}" if counts is not None else ""
    keep = reasons == ""
    notes = frame.attrs["notes"] + left_out_rows(reasons[~keep].value_counts().to_dict(), args.missing)
    kept, groups = frame[keep], groups[keep]
    crossed = cross(groups).to_numpy(dtype=str)
    if len(set(crossed)) < 2:
        group = f"only the group {shortened(repr(str(crossed[0])))}" if len(crossed) else ""
        only = group or "no row without missing values"
        raise CommandError(f"{args.table} has {only}. Fix: name another column by --sensitive")
    if counts is not None:
        notes.append(
            f"sizes, shares and costs count a row as often as {args.weight} says, relative to its mean"
        )
    weights = None if counts is None else (counts[keep] / counts[keep].mean()).to_numpy()
    notes += [*found.notes, *frame.attrs["spellings"]]
    X, ids = preparation.transform(kept), frame[preparation.ids]
    return RawTable(kept, X, groups, crossed, preparation, notes, ids, reasons, weights)


def possible(*options: list[str]) -> set[str]:
    """All names that options may mean: as they are given, and cut at commas. Only the table tells which is meant."""
    given = [name for option in options for name in option]
    return {one_spelling(part) for name in given for part in (name, *name.split(","))}


def decided(frame: pd.DataFrame, args: argparse.Namespace, means: Collection[str] = ()) -> Decision:
    """The roles of the columns of a table, or of a sample of its rows, as the options ask."""
    listed = {name: _names(getattr(args, name), name, frame, args) for name in _LISTS}
    weight = _weight(frame, args)
    others = {*listed["sensitive"], *listed["id"], *listed["exclude"], *weight}
    both = [name for name in listed["features"] if name in others]
    if both:
        raise CommandError(
            f"--features: {both[0]!r} is named by another option too. Fix: leave it out of one of the two options"
        )
    return decide(
        frame,
        listed["sensitive"],
        features=listed["features"],
        exclude=[*listed["exclude"], *weight],
        ids=listed["id"],
        categories=listed["categories"],
        means=means,
        bins=args.bins,
        scale=args.scale,
        missing=args.missing,
        thousands=args.thousands,
        decimal=frame.attrs["decimal"],
    )


_LISTS = ("sensitive", "features", "exclude", "id", "categories")


def _weight(frame: pd.DataFrame, args: argparse.Namespace) -> list[str]:
    """The column of weights, if the command has one."""
    given = getattr(args, "weight", None)
    return _names([given], "weight", frame, args)[:1] if given else []


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
            if delimiter and len(frame.columns) == 1:
                hint += f"; is {delimiter!r} the right --delimiter?"
            raise CommandError(f"--{option}: {args.table} has no column {shortened(repr(name))}; {hint}")
    return list(dict.fromkeys(names))
