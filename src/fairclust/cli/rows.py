"""The rows of the user's table, as the commands that cluster and audit take them."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from fairclust import methods
from fairclust.cli.options import Raw
from fairclust.cli.progress import progress
from fairclust.explain import profiles_of
from fairclust.group_encoding import one_spelling
from fairclust.messages import UserError, nearest, shortened
from fairclust.tables import Asked, Decision, Preparation, cross, decide, left_out_rows, numbers, read_table
from fairclust.tables.cells import as_number
from fairclust.tables.columns import Column
from fairclust.tables.reading import table_files


@dataclass(kw_only=True)
class Rows(ABC):
    """The rows of a table, in memory or in chunks."""

    preparation: Preparation
    columns: Sequence[Column]  # those that are not sensitive, excluded or named as identifiers
    X: Any  # what the methods fit
    combinations: pd.DataFrame  # the combinations of groups that occur, as text; the index has their names
    sizes: Mapping[str, int]  # the numbers of their rows
    notes: list[str]  # on what was left out, and on how the rest was read
    left_out: bool  # whether some rows have no label
    groups: Any = None  # the sensitive features of a fit; None if `X` has them
    weights: np.ndarray | None = None  # (n_rows,), of mean 1; None if all rows count alike
    over: str = ""  # how far the count of the rows reaches

    def plain(self, model: Any) -> Any:
        """Labels of k-means with the starts and the search of a model, without which fairness would look too cheap."""
        params = {"n_init": getattr(model, "n_init", 1), "search": getattr(model, "search", False)}
        seed = model.get_params().get("random_state", 0)
        # A fit in chunks prints a line for each pass.
        shown = nullcontext() if self.over else progress("fitting k-means, to compare with")
        with warnings.catch_warnings(action="ignore"), shown:
            if self.weights is not None:
                weighted = KMeans(model.n_clusters, n_init=params["n_init"], random_state=seed)
                return weighted.fit(self.X, sample_weight=self.weights).labels_
            return methods.KMeans(model.n_clusters, random_state=seed, **params).fit(self.X).labels_

    @abstractmethod
    def counts_and_costs(self, labels: Any, model: Any) -> tuple[np.ndarray, np.ndarray]:
        """Counts, or sums of weights, by combination and cluster, and the sums of squared distances by combination."""

    @abstractmethod
    def parts(self, labels: Any) -> Iterable[tuple[pd.DataFrame, pd.Series, np.ndarray]]:
        """Tables of identifiers, reasons why some of their rows have no label, and the labels of the others."""


@dataclass(kw_only=True)
class RowsInMemory(Rows):
    """The rows of a table that are clustered."""

    frame: pd.DataFrame  # all columns; the index counts the rows of the file from 0
    by_name: pd.DataFrame  # the sensitive columns as text
    codes: np.ndarray  # (n_rows,), the combination of groups of every row, as its position in `combinations`
    whole: pd.DataFrame  # the identifiers of all rows of the file
    reasons: pd.Series  # for every row of the file, why it is not clustered; empty text if it is

    @property
    def crossed(self) -> np.ndarray:
        """The combination of groups of every row, as text."""
        return self.combinations.index.to_numpy(dtype=str)[self.codes]

    def sensitive_for(self, cls: type, *, crossed: bool) -> Any:
        """The groups in the form that a method takes: columns by name, or combinations of values, shape (n_rows,).

        Columns by name are given if there are several and the method takes them, or if the mean of one is bounded. With
        `crossed`, the combinations are the groups. UserError if a mean is bounded as well, because that belongs to
        one column, or if its column does not hold numbers.
        """
        means = self.preparation.means
        if means and crossed:
            raise UserError(
                "--crossed: mean_tolerance bounds the mean of one column. Fix: leave out one of the two"
            )
        several = len(self.by_name.columns) > 1 and getattr(cls, "takes_columns", False) and not crossed
        return self.preparation.for_method(self.frame, self.by_name, by_column=bool(means) or several)

    def counts_and_costs(self, labels: np.ndarray, model: Any) -> tuple[np.ndarray, np.ndarray]:
        X, shape = self.X, (len(self.combinations), model.n_clusters)
        weights = np.ones(len(labels)) if self.weights is None else self.weights
        n_used = int(labels.max()) + 1
        sizes = np.maximum(np.bincount(labels, weights, n_used), np.finfo(float).tiny)
        means = np.column_stack([np.bincount(labels, weights * column, n_used) / sizes for column in X.T])
        paid = weights * ((X - means[labels]) ** 2).sum(axis=1)
        counts = np.bincount(self.codes * shape[1] + labels, self.weights, minlength=shape[0] * shape[1])
        return counts.reshape(shape), np.bincount(self.codes, paid)

    def parts(self, labels: Any) -> Iterable[tuple[pd.DataFrame, pd.Series, np.ndarray]]:
        return [(self.whole, self.reasons, labels)]

    def profiles(self, labels: Any) -> list[dict[str, Any]]:
        """The columns that set the clusters apart, see `fairclust.profiles`, as they were read for the fit."""
        found = profiles_of(self.frame, np.asarray(labels), self.columns, self.X).astype(object)
        return found.where(found.notna(), None).to_dict("records")


def read_rows(args: Raw, means: Collection[str] = ()) -> RowsInMemory:
    """Read a table, find the role of each column, and prepare the rows.

    `means` are columns of numbers whose mean is bounded; the report shows them in four ranges unless `--bins` says
    otherwise. UserError, with the option that helps, if the file cannot be read, or a column does not exist or
    cannot be used as asked.
    """
    values, ids = possible(args.sensitive, args.categories), possible(args.id)
    frame = read_table(args.table, values=values, ids=ids, **args.reading)
    counts = None
    counted = pd.Series(True, index=frame.index)
    for name in _weight(frame, args):
        counts = numbers(frame[name], {"decimal": frame.attrs["decimal"]})
        counted = (counts > 0) & np.isfinite(counts)
        if not counted.any():
            why = f"no cell of {shortened(repr(name))} is a positive number"
            raise UserError(f"--weight: {why}. Fix: name a column of numbers")
    decision = decided(frame[counted], args, means)
    preparation = replace(decision.preparation, strict=False)
    groups = preparation.groups(frame)
    reasons = preparation.reasons(frame, groups)
    reasons[(reasons == "") & ~counted] = f"no positive number in {args.weight}"
    keep = reasons == ""
    kept, groups = frame[keep], groups[keep]
    crossed = cross(groups).to_numpy(dtype=str)
    names, first, codes, sizes = np.unique(
        crossed, return_index=True, return_inverse=True, return_counts=True
    )
    left_out = left_out_rows(reasons[~keep].value_counts().to_dict(), args.missing)
    check_groups(names, left_out, args)
    notes = [*decision.notes[: decision.n_urgent], *frame.attrs["notes"], *left_out]
    if counts is not None:
        counts = (counts[keep] / counts[keep].mean()).to_numpy()
        notes.append(
            f"sizes, shares and costs count a row as often as {args.weight} says, relative to its mean; what each "
            "cluster is like counts every row once"
        )
    return RowsInMemory(
        preparation=decision.preparation,
        columns=decision.columns,
        X=preparation.transform(kept),
        combinations=groups.iloc[first].set_axis(names),
        sizes=dict(zip(names.tolist(), sizes.tolist(), strict=True)),
        notes=[*notes, *decision.notes[decision.n_urgent :], *frame.attrs["spellings"]],
        left_out=not keep.all(),
        weights=counts,
        frame=kept,
        by_name=groups,
        codes=codes,
        whole=frame[preparation.ids],
        reasons=reasons,
    )


def check_groups(names: Collection[str], left_out: Sequence[str], args: Raw) -> None:
    """UserError if the rows that are not left out have fewer than two groups."""
    if len(names) < 2:
        group = "".join(f"only the group {shortened(repr(str(name)))}" for name in names)
        only = "; ".join([group or "no row without missing values", *left_out])
        raise UserError(f"{args.table} has {only}. Fix: name another column by --sensitive")


def possible(*options: Sequence[str]) -> set[str]:
    """All names that options may mean: as they are given, and cut at commas. Only the table tells which is meant."""
    given = [name for option in options for name in option]
    return {one_spelling(part) for name in given for part in (name, *name.split(","))}


def decided(frame: pd.DataFrame, args: Raw, means: Collection[str] = ()) -> Decision:
    """The roles of the columns of a table, or of a sample of it, as the options ask. Sets names in `args.exclude`."""
    lists = ("sensitive", "features", "exclude", "id", "categories", "numbers", "log", "clip")
    listed: dict[str, Any] = {name: _names(getattr(args, name), name, frame, args) for name in lists}
    scales, how = _scales(args.ordered, frame, args), ("numbers", "log", "clip", "ordered")
    listed |= {"weight": _weight(frame, args), "ordered": [*scales]}
    pairs = {*product(("features", *how), ("sensitive", "id", "exclude", "weight")), ("numbers", "ordered")}
    # A sensitive column of numbers may have cells that are none, too.
    for option, other in sorted(pairs - {("numbers", "sensitive")} | {*product(how, ["categories"])}):
        if both := [name for name in listed[option] if name in listed[other]]:
            raise UserError(
                f"--{option}: {both[0]!r} is named by --{other} too. Fix: leave it out of one of the two options"
            )
    for option in how if listed["features"] else ():
        if outside := [name for name in listed[option] if name not in listed["features"]]:
            raise UserError(
                f"--{option}: {outside[0]!r} is not among --features. Fix: name it there, or leave it out here"
            )
    found = decide(
        frame,
        listed["sensitive"],
        exclude=[*listed["exclude"], *listed["weight"]],
        ids=listed["id"],
        asked=Asked(
            **{name: listed[name] for name in ("features", "categories", "numbers", "log", "clip")},
            ordered=scales,
            decimal=args.decimal or frame.attrs["decimal"],
        ),
        means=means,
        bins=args.bins,
        scale=args.scale,
        missing=args.missing,
    )
    args.exclude = listed["exclude"]  # one name each, for the page
    folders = [{of for of in file.parent.parts if "=" in of} for file in table_files(args.table)]
    stated = sorted(folders[0].union(*folders) - folders[0].intersection(*folders))
    notes = [f"the folder {of!r} is no column; write its value into its files to use it" for of in stated[:1]]
    return found._replace(notes=[*found.notes, *notes])


def _scales(given: Sequence[str], frame: pd.DataFrame, args: Raw) -> dict[str, list[str]]:
    """The steps of scales from the ``COLUMN=low,medium,high`` of ``--ordered``."""
    scales = {}
    for text in given:
        name, sign, steps = text.partition("=")
        listed = [one_spelling(step) for step in steps.split(",") if step.strip()]
        if not sign or len(set(listed)) < 2:
            form = "COLUMN=STEP,STEP,..., such as size=small,medium,large"
            raise UserError(f"--ordered {text}: expected {form}")
        scales[_names([name], "ordered", frame, args)[0]] = listed
    return scales


def _weight(frame: pd.DataFrame, args: Raw) -> list[str]:
    """The column of weights, if the command has one."""
    return _names([args.weight], "weight", frame, args)[:1] if args.weight else []


def _names(given: Sequence[str], option: str, frame: pd.DataFrame, args: Raw) -> list[str]:
    """The columns that an option names, as separate arguments or separated by commas."""
    parts = ([name] if one_spelling(name) in frame else name.split(",") for name in given)
    names = [*map(one_spelling, chain.from_iterable(parts))]
    for name in names:
        if name not in frame:
            hint = nearest(name, frame.columns)
            if len(frame.columns) == 1 and {*",;|\t"}.intersection(frame.columns[0]):
                hint += "; --delimiter states the sign between the cells"
            for note in () if hint.endswith("?") else frame.attrs.get("notes", ()):
                hint += f"; {note}" if "--sheet" in note or "names of the columns" in note else ""
            if any(as_number(of) is not None for of in frame.columns):
                hint += "; if the first row is data, write the names of the columns above it"
            raise UserError(f"--{option}: {args.table} has no column {shortened(repr(name))}; {hint}")
    return list(dict.fromkeys(names))
