"""`fairclust fit` and `fairclust methods`."""

from __future__ import annotations

import argparse
import codecs
import difflib
import inspect
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fairclust import methods
from fairclust.base import Diverged
from fairclust.cli import CommandError
from fairclust.datasets import DatasetError, DatasetSpec, PreparedDataset, SourceSpec, prepare_dataset
from fairclust.metrics import contingency
from fairclust.metrics.table import METRICS, score_labels
from fairclust.pipeline.cell_store import atomic_write

# What people, and the pipeline's configuration, call the methods.
SHORT_NAMES = {
    "price": "PriceFairKMeans",
    "vfc": "VariationalFairKMeans",
    "vfc_kmedians": "VariationalFairKMedians",
    "vfc_ncut": "VariationalFairNCut",
    "bfkm": "BalancedFairKMeans",
    "fmc": "FairMixture",
    "fca": "FairAlignmentKMeans",
    "backurs": "FairletTreeClustering",
    "fairlets": "FairletClustering",
    "sfairsc": "FairSpectralClustering",
}
_SHOWN = ("sse", "balance", "fairness_error", "delta")
# Beyond this many values a column of numbers is no column of groups.
_MANY_VALUES = 20
_PRINTED_GROUPS = 8
_DELIMITERS = {"\\t": "\t", "tab": "\t"}


def _homes() -> dict[str, str]:
    """Name on the command line (the method's file) to class."""
    return {home: name for name, home in methods._HOMES.items()}


def list_methods() -> list[str]:
    """One line per method: its name here, its class, its first sentence."""
    homes = _homes()
    also = {home: short for short, name in SHORT_NAMES.items() for home in homes if homes[home] == name}
    rows = []
    for home, name in sorted(homes.items()):
        called = f"{home} ({also[home]})" if home in also else home
        first = (inspect.getdoc(getattr(methods, name)) or "").partition("\n")[0]
        rows.append((called, name, first))
    widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
    return [f"{row[0]:{widths[0]}}  {row[1]:{widths[1]}}  {row[2]}" for row in rows]


def _find_method(name: str) -> type:
    homes = _homes()
    found = SHORT_NAMES.get(name) or homes.get(name) or (name if name in homes.values() else None)
    if found is None or found not in homes.values():
        known = [*SHORT_NAMES, *homes, *homes.values()]
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else "`fairclust methods` lists them"
        raise CommandError(f"--method: there is no method {name!r}; {hint}")
    return getattr(methods, found)


def _parameters(cls: type, args: argparse.Namespace) -> dict[str, Any]:
    known = set(inspect.signature(cls).parameters)
    params: dict[str, Any] = {"n_clusters": args.n_clusters}
    if "random_state" in known:
        params["random_state"] = args.seed
    for given in args.set:
        name, sign, value = given.partition("=")
        if not sign:
            raise CommandError(f"--set {given}: expected NAME=VALUE, such as --set lam=100")
        if name == "n_clusters":
            raise CommandError(f"--set {given}: give it as --n-clusters {value}")
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(sorted(known))}"
            raise CommandError(f"--set {given}: {cls.__name__} has no parameter {name!r}; {hint}")
        try:
            params[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise CommandError(f"--set {given}: {value!r} cannot be read as a value") from None
    return params


def _delimiter(args: argparse.Namespace) -> str:
    """As given, or the one that the first line has most of."""
    if args.delimiter is None:
        with args.csv.open(encoding=args.encoding) as file:
            line = re.sub('"[^"]*"', "", file.readline())
        return max(",;\t|", key=line.count)
    delimiter = str(_DELIMITERS.get(args.delimiter, args.delimiter))
    if len(delimiter) != 1:
        raise CommandError(f"--delimiter: {delimiter!r} is not one character")
    return delimiter


def _head(args: argparse.Namespace) -> tuple[pd.DataFrame, str]:
    """The first rows, to choose columns by, and the delimiter."""
    if not args.csv.is_file():
        raise CommandError(f"there is no file {args.csv}")
    try:
        delimiter = _delimiter(args)
        head = pd.read_csv(
            args.csv,
            sep=delimiter,
            decimal=args.decimal,
            encoding=args.encoding,
            nrows=1000,
            skipinitialspace=True,
        )
    except CommandError:
        raise
    except UnicodeDecodeError:
        with args.csv.open("rb") as file:
            marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        other = "utf-16" if marked else "latin-1"
        raise CommandError(f"{args.csv} is no {args.encoding} text; try --encoding {other}") from None
    except pd.errors.EmptyDataError:
        raise CommandError(f"{args.csv} is empty") from None
    except (ValueError, LookupError) as error:
        what = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise CommandError(f"{args.csv} cannot be read as a table: {what}") from None
    if head.empty:
        raise CommandError(f"{args.csv} has a header and no rows")
    return head, delimiter


def _features(head: pd.DataFrame, args: argparse.Namespace) -> list[str]:
    """The columns to cluster by; says what is left out, and what looks odd."""
    if args.features:
        return [name.strip() for name in args.features.split(",")]
    others = [column for column in head.columns if column != args.sensitive]
    unnamed = [column for column in others if column.startswith("Unnamed: ")]
    numbers = head.drop(columns=unnamed).select_dtypes([np.number]).columns
    features = [column for column in others if column in numbers]
    left_out = [column for column in others if column not in [*features, *unnamed]]
    if not features:
        raise CommandError(
            f"{args.csv}: no column but {args.sensitive!r} holds numbers to cluster by"
            + (f"; {left_out[0]!r} holds {head[left_out[0]].iloc[0]!r}" if left_out else "")
        )
    if left_out:
        print(f"columns without numbers, left out: {', '.join(left_out)}")
    if unnamed:
        print(f"{_count(len(unnamed), 'column')} without a name, left out")
    for column in left_out:
        if head[column].astype(str).str.fullmatch(r"-?\d[\d ]*([.,]\d+)+").all():
            print(
                f"{column} is not read as numbers: --decimal gives its decimal point, no other may be there"
            )
    for column in features:
        steps = head[column].diff().iloc[1:]
        if len(steps) > 2 and (steps == 1).all():
            print(f"{column} counts the rows: without it by --features?")
    return features


def _read(args: argparse.Namespace) -> PreparedDataset:
    head, delimiter = _head(args)
    head.columns = head.columns.map(str)
    if args.sensitive not in head.columns:
        near = difflib.get_close_matches(args.sensitive, head.columns, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(head.columns[:20])}"
        if len(head.columns) == 1 or args.delimiter is None:
            hint += f"; is {delimiter!r} the right --delimiter?"
        raise CommandError(f"--sensitive: {args.csv} has no column {args.sensitive!r}; {hint}")
    groups = head[args.sensitive]
    if pd.api.types.is_numeric_dtype(groups) and groups.nunique() > _MANY_VALUES:
        found = f"{groups.nunique()} different ones in the first {len(groups)} rows"
        if groups.nunique() > len(groups) / 2:
            raise CommandError(
                f"--sensitive: {args.sensitive!r} holds numbers, {found}, and each would be a group; make a "
                "column with a few ranges of them"
            )
        print(f"{args.sensitive} holds numbers, {found}: each is a group")
    name = args.csv.name
    source = SourceSpec.model_validate({"path": str(args.csv)})
    reader = {"sep": delimiter, "skipinitialspace": True, "decimal": args.decimal, "encoding": args.encoding}
    spec = DatasetSpec.model_validate(
        {
            "title": name,
            "source": source,
            "reader": reader,
            "features": _features(head, args),
            "sensitive": {"column": args.sensitive},
            "scale": args.scale,
            "n_clusters": max(2, args.n_clusters),
        }
    )
    try:
        return prepare_dataset(name, spec, {name: args.csv}, {name: source})
    except DatasetError as error:
        # Its advice is for the configuration of the pipeline.
        what = str(error).partition(" Fix: ")[0].removeprefix(f"data set '{name}', ")
        fix = "correct the file, or say by --features which columns to cluster by"
        if "only one group" in what:
            fix = "name another column by --sensitive"
        elif f"no {args.encoding} text" in what:
            fix = "give the file's encoding by --encoding, latin-1 perhaps"
        elif f"column '{args.sensitive}'" in what:
            fix = "correct the file, or take out these rows"
        raise CommandError(f"{what} Fix: {fix}") from None


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to a CSV.

    Parameters
    ----------
    args : Namespace
        csv, sensitive, method, n_clusters, features, scale, set, seed, delimiter, decimal, encoding, out.

    Returns
    -------
    list of str
        The metrics, and the groups by cluster.

    Raises
    ------
    CommandError
        The file, a column, the method or a parameter is not what it should be.
    """
    cls = _find_method(args.method)
    params = _parameters(cls, args)
    if args.out and args.out.resolve() == args.csv.resolve():
        raise CommandError(f"--out: {args.out} is the table itself")
    if args.out and not args.out.absolute().parent.is_dir():
        raise CommandError(f"--out: there is no folder {args.out.parent}")
    data = _read(args)
    names = np.array(data.group_names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cls(**params).fit(data.X, sensitive_features=names[data.groups])
        except (ValueError, TypeError, Diverged) as error:
            raise CommandError(f"{cls.__name__} cannot fit {args.csv}: {error}") from None
    K, J = args.n_clusters, len(names)
    more = ", ..." if data.X.shape[1] > 20 else ""
    scaled = {"standardize": " (standardised)", "l2": " (standardised, rows of unit length)", "none": ""}
    lines = [
        f"{cls.__name__}: {_count(len(data.X), 'row')}, {_count(data.X.shape[1], 'feature')}, "
        f"{_count(J, 'group')}, {_count(K, 'cluster')}",
        f"features: {', '.join(data.feature_names[:20])}{more}{scaled[args.scale]}",
        *(f"note: {str(item.message).splitlines()[0]}" for item in caught),
    ]
    sizes = np.bincount(data.groups, minlength=J)
    if sizes.min() < K:
        lines.append(
            f"note: group {names[sizes.argmin()]} has {_count(sizes.min(), 'row')}, too few for {K} clusters"
        )
    if args.out:
        labels = pd.DataFrame({"row": np.arange(1, len(data.X) + 1), "cluster": model.labels_})
        with atomic_write(Path(args.out)) as file:
            labels.to_csv(file, index=False)
    lines += _metrics(cls, model.labels_, data, K)
    lines += ["", *_by_cluster(contingency(model.labels_, data.groups, K, J), names)]
    if args.out:
        lines += ["", f"labels: {args.out} (rows counted from 1, clusters from 0)"]
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")


def _metrics(cls: type, labels: np.ndarray, data: PreparedDataset, n_clusters: int) -> list[str]:
    """Metrics of the labels, beside those of k-means, which does not look at the groups."""
    columns = {cls.__name__: labels}
    if cls is not methods.KMeans:
        # One start: a rough measure of what fairness costs must not take longer than the method.
        plain = methods.KMeans(n_clusters, n_init=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns["KMeans"] = plain.fit(data.X, sensitive_features=data.groups).labels_
    J = len(data.group_names)
    scores = [
        score_labels(data.X, of, data.groups, n_clusters=n_clusters, n_groups=J, metrics=list(_SHOWN))
        for of in columns.values()
    ]
    rows = [["", *columns, ""]]
    for name in scores[0]:
        metric = METRICS[name]
        shown = ["–" if math.isnan(of[name]) else f"{of[name]:,.{metric.decimals}f}" for of in scores]
        rows.append([metric.label, *shown, f"{metric.direction} is better"])
    return _aligned(rows, left=(0, len(rows[0]) - 1))


def _by_cluster(table: np.ndarray, names: np.ndarray) -> list[str]:
    """Sizes and shares of the groups, cluster by cluster and in all; of many groups the largest."""
    largest = np.sort(np.argsort(-table.sum(axis=1), kind="stable")[:_PRINTED_GROUPS])
    rest = len(names) - len(largest)
    rows = [["cluster", "size", *map(str, names[largest]), *([f"{rest} others"] if rest else [])]]
    for label, counts in [*enumerate(table.T), ("all", table.sum(axis=1))]:
        size = int(counts.sum())
        shown = [*counts[largest], *([size - counts[largest].sum()] if rest else [])]
        shares = [f"{100 * count / size:.1f} %" if size else "–" for count in shown]
        rows.append([str(label), f"{size:,}", *shares])
    return _aligned(rows)


def _aligned(rows: list[list[str]], left: tuple[int, ...] = ()) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}"
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
