"""What the commands that fit methods share: the table of the user, parameters of `--set`, fits from several starts."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from fairclust import methods
from fairclust.base import Diverged
from fairclust.cli import CommandError
from fairclust.cli.methods import find_method
from fairclust.cli.options import Front, Raw
from fairclust.group_encoding import one_spelling
from fairclust.messages import nearest, shortened
from fairclust.metrics import Scored
from fairclust.tables import Asked, Decision, Preparation, cross, decide, left_out_rows, numbers, read_table
from fairclust.tables.columns import Column


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
    columns: list[Column]  # those that are not sensitive, excluded or named as identifiers

    @property
    def shown(self) -> list[Column]:
        """The features, by which clusters are described."""
        return [column for column in self.columns if column.is_feature]

    def sensitive_for(self, cls: type, *, crossed: bool) -> Any:
        """The groups in the form that a method takes: columns by name, or combinations of values, shape (n_rows,).

        Columns by name are given if there are several and the method takes them, or if the mean of one is bounded. With
        `crossed`, the combinations are the groups. CommandError if a mean is bounded as well, because that belongs to
        one column, or if its column does not hold numbers.
        """
        means = self.preparation.means
        if means and crossed:
            raise CommandError(
                "--crossed: mean_tolerance bounds the mean of one column. Fix: leave out one of the two"
            )
        several = len(self.groups.columns) > 1 and getattr(cls, "takes_columns", False) and not crossed
        return self.preparation.for_method(self.frame, self.groups, by_column=bool(means) or several)


def read_raw(args: Raw, means: Collection[str] = ()) -> RawTable:
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
        sheet=args.sheet,
        header_row=args.header_row,
        values=possible(args.sensitive, args.categories),
        ids=possible(args.id),
    )
    counts = None
    counted = pd.Series(True, index=frame.index)
    for name in _weight(frame, args):
        decimal = frame.attrs["decimal"]
        thousands = args.thousands or ("." if decimal == "," else ",")
        counts = numbers(frame[name], {"thousands": thousands, "decimal": decimal})
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
    notes = [*found.notes[: found.n_urgent], *frame.attrs["notes"]]
    notes += left_out_rows(reasons[~keep].value_counts().to_dict(), args.missing)
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
    notes += [*found.notes[found.n_urgent :], *frame.attrs["spellings"]]
    X, ids = preparation.transform(kept), frame[preparation.ids]
    return RawTable(kept, X, groups, crossed, preparation, notes, ids, reasons, weights, found.columns)


def possible(*options: Sequence[str]) -> set[str]:
    """All names that options may mean: as they are given, and cut at commas. Only the table tells which is meant."""
    given = [name for option in options for name in option]
    return {one_spelling(part) for name in given for part in (name, *name.split(","))}


def decided(frame: pd.DataFrame, args: Raw, means: Collection[str] = ()) -> Decision:
    """The roles of the columns of a table, or of a sample of its rows, as the options ask."""
    lists = ("sensitive", "features", "exclude", "id", "categories", "numbers", "log", "clip")
    listed = {name: _names(getattr(args, name), name, frame, args) for name in lists}
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
        exclude=[*listed["exclude"], *weight],
        ids=listed["id"],
        asked=Asked(
            **{name: listed[name] for name in ("features", "categories", "numbers", "log", "clip")},
            ordered=_scales(args.ordered, frame, args),
            thousands=args.thousands,
            decimal=frame.attrs["decimal"],
        ),
        means=means,
        bins=args.bins,
        scale=args.scale,
        missing=args.missing,
    )


def _scales(given: Sequence[str], frame: pd.DataFrame, args: Raw) -> dict[str, list[str]]:
    """The steps of scales from the ``COLUMN=low,medium,high`` of ``--ordered``."""
    found = {}
    for text in given:
        name, sign, steps = text.partition("=")
        listed = [one_spelling(step) for step in steps.split(",") if step.strip()]
        if not sign or len(set(listed)) < 2:
            raise CommandError(
                f"--ordered {text}: expected COLUMN=STEP,STEP,..., such as size=small,medium,large"
            )
        found[_names([name], "ordered", frame, args)[0]] = listed
    return found


def _weight(frame: pd.DataFrame, args: Raw) -> list[str]:
    """The column of weights, if the command has one."""
    return _names([args.weight], "weight", frame, args)[:1] if args.weight else []


def _names(given: Sequence[str], option: str, frame: pd.DataFrame, args: Raw) -> list[str]:
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
            hint += "".join(
                f"; {note}" for note in frame.attrs.get("notes", ()) if "--sheet" in note or "row" in note
            )
            raise CommandError(f"--{option}: {args.table} has no column {shortened(repr(name))}; {hint}")
    return list(dict.fromkeys(names))


# k-means, with which fits are compared. With fewer starts or without the search, fairness would look too cheap.
PLAIN = {"n_init": 10, "search": True}
# Values to try for the parameter that sets the fairness of a method. The weights, for methods that have no bound, are
# multiples of the sum of the squared lengths of all rows.
_GRIDS = {
    "tolerance": (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
    "rho": (1, 5, 20, 100),
    "lam": (0.02, 0.1, 0.2, 0.5, 2.0),
}
# Truth values and None in the notation of YAML.
_WORDS = {"true": "True", "false": "False", "none": "None", "null": "None"}


def parameters(cls: type, n_clusters: int, seed: int, assignments: list[str]) -> dict[str, Any]:
    """Parameters of a method from the ``NAME=VALUE`` of ``--set``, checked against its signature.

    `seed` becomes ``random_state`` if the method has this parameter. CommandError if a text is not of the form
    ``NAME=VALUE``, or names a parameter that cannot be set here.
    """
    known = set(inspect.signature(cls).parameters)
    params: dict[str, Any] = {"n_clusters": n_clusters}
    if "random_state" in known:
        params["random_state"] = seed
    chosen: set[str] = set()
    for given in assignments:
        name, sign, value = given.partition("=")
        if not sign:
            raise CommandError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        if name == "n_clusters":
            raise CommandError(f"--set {given}: give it as --n-clusters {value}")
        if name not in known:
            of_price = name in inspect.signature(methods.PriceFairKMeans).parameters
            hint = nearest(name, sorted(known))
            hint = "Fix: leave it out, or fit by --method price, which has it" if of_price else hint
            raise CommandError(f"{given}: {cls.__name__} has no parameter {name!r}; {hint}")
        if name in chosen:
            raise CommandError(f"{given}: {name} is set twice. Fix: leave out one of the two")
        chosen.add(name)
        # What is no number, list, mapping or truth value in the notation of Python or YAML is text.
        params[name] = value
        with suppress(ValueError, SyntaxError):
            params[name] = ast.literal_eval(_WORDS.get(value.lower(), value))
    return params


def fit(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, weights: np.ndarray | None = None
) -> tuple[Any, float, list[str]]:
    """Fit a method to rows and their groups, which may be a mapping of columns.

    Returns the model, the seconds that the fit took, and the first line of each warning. CommandError if the method
    refuses the data or a parameter, takes no weights although they are given, or diverges.
    """
    begin = perf_counter()
    counted = {} if weights is None else {"sample_weight": weights}
    if counted and not getattr(cls, "takes_weights", False):
        raise CommandError(
            f"--weight: {cls.__name__} takes no weights. Fix: leave it out, or fit by --method price"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cls(**params).fit(X, sensitive_features=groups, **counted)
        except (ValueError, TypeError, Diverged) as error:
            raise CommandError(f"{cls.__name__} cannot fit the table: {error}") from None
    return model, perf_counter() - begin, [str(item.message).splitlines()[0] for item in caught]


def is_cosine(model: Any) -> bool:
    """Whether a model compares rows by their angles."""
    return getattr(model, "metric", None) == "cosine"


def plain_kmeans(model: Any, params: dict[str, Any]) -> Any:
    """k-means with as many starts as a fair fit with these parameters. With fewer, fairness would look too cheap."""
    found = {"n_init": getattr(model, "n_init", 1), "search": getattr(model, "search", False)}
    found |= {"metric": "cosine"} if is_cosine(model) else {}
    return methods.KMeans(model.n_clusters, random_state=params.get("random_state"), **found)


def fit_starts(
    cls: type, params: dict[str, Any], X: np.ndarray, groups: Any, starts: int
) -> tuple[Any, float, list[str]]:
    """Fit a method from several starts, and keep the fit with the lowest objective. Returns what `fit` returns.

    A method without the parameter `n_init` is fitted once for each start, with another seed each time, so all methods
    that have random starts are compared with the same number of them. The seconds are those of all starts together.
    """
    takes = inspect.signature(cls).parameters
    if "n_init" in takes:
        return fit(cls, {"n_init": starts} | params, X, groups)
    if "random_state" not in takes:
        return fit(cls, params, X, groups)
    seeds = range(params["random_state"], params["random_state"] + starts)
    fits = [fit(cls, params | {"random_state": seed}, X, groups) for seed in seeds]
    model, _, warned = min(fits, key=lambda found: found[0].history_[-1]["objective"])
    return model, sum(seconds for _, seconds, _ in fits), warned


class Grid:
    """What `front` fits to a table: the options name the numbers of clusters and the methods."""

    def __init__(self, args: Front) -> None:
        if args.starts < 1:
            raise CommandError(
                f"--starts: {args.starts} is no number of starts. Fix: write a whole number of 1 or more"
            )
        first, colon, last = args.n_clusters.partition(":")
        try:
            self.numbers = list(range(int(first), int(last) + 1)) if colon else [int(first)]
        except ValueError:
            self.numbers = []
        if not self.numbers or self.numbers[0] < 1:
            raise CommandError(
                f"--n-clusters: {args.n_clusters!r} is neither a number nor a range. Fix: write 3 or 2:10, for example"
            )
        self.classes = [find_method(name) for name in args.methods or ("price", "vfc", "bfkm")]
        self.raw, self._crossed = read_raw(args), args.crossed

    def groups(self, cls: type) -> Any:
        """The sensitive features as a method takes them."""
        return self.raw.sensitive_for(cls, crossed=self._crossed)

    def scored(self, labels: np.ndarray, n_clusters: int) -> Scored:
        """A clustering of the table for `score_labels`.

        If there are several sensitive columns, the metrics of groups are those of the least fair column, or, if
        `--crossed` is given, of the combinations.
        """
        groups = self.raw.groups.astype(str)
        several = {} if self._crossed or len(groups.columns) < 2 else groups
        columns = {name: np.unique(several[name], return_inverse=True)[1] for name in several}
        codes = np.unique(self.raw.crossed, return_inverse=True)[1]
        return Scored(labels, codes, self.raw.X, n_clusters, columns=columns)

    def settings(self, seed: int, *, one: bool = False) -> Iterator[tuple[type, str, dict[str, Any]]]:
        """For every K, k-means, then each method over a grid of the parameter that sets its fairness.

        Yields the class, the setting (such as ``tolerance=0.1``; empty for defaults) and the arguments for the class.
        With `one`, each method is yielded once, with its defaults.
        """
        scale = float(np.square(self.raw.X).sum())
        for n_clusters in self.numbers:
            yield methods.KMeans, "", parameters(methods.KMeans, n_clusters, seed, []) | PLAIN
            for cls in self.classes:
                params = parameters(cls, n_clusters, seed, [])
                known = () if one else cls._parameter_constraints  # type: ignore[attr-defined]
                name = next((name for name in _GRIDS if name in known), "")
                if not name and cls is not methods.KMeans:
                    yield cls, "", params
                for value in _GRIDS.get(name, ()):
                    value = value if name == "tolerance" else float(f"{value * scale:.2g}")
                    yield cls, f"{name}={value:g}", params | {name: value}
