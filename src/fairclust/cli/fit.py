"""`fairclust fit` and `fairclust methods`."""

from __future__ import annotations

import argparse
import difflib
import inspect
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from fairclust import methods
from fairclust.base import Diverged
from fairclust.bench.store import atomic_write
from fairclust.cli import CommandError
from fairclust.datasets import DatasetError, DatasetSpec, PreparedDataset, SourceSpec, prepare_dataset
from fairclust.metrics import contingency
from fairclust.metrics.table import METRICS, score_labels

# What people call the methods that they ask for most.
SHORT_NAMES = {"price": "PriceFairKMeans", "vfc": "VariationalFairKMeans"}
_SHOWN = ("sse", "balance", "fairness_error", "delta", "n_empty")


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


def _read(args: argparse.Namespace) -> PreparedDataset:
    if not args.csv.is_file():
        raise CommandError(f"there is no file {args.csv}")
    try:
        head = pd.read_csv(args.csv, sep=args.delimiter, nrows=1000, skipinitialspace=True)
    except (ValueError, UnicodeDecodeError) as error:
        raise CommandError(f"{args.csv} cannot be read as a table: {error}") from None
    columns = [str(column) for column in head.columns]
    if args.sensitive not in columns:
        near = difflib.get_close_matches(args.sensitive, columns, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(columns[:20])}"
        if len(columns) == 1:
            hint += f"; one column only: is {args.delimiter!r} the right --delimiter?"
        raise CommandError(f"--sensitive: {args.csv} has no column {args.sensitive!r}; {hint}")
    features: list[str]
    if args.features:
        features = [name.strip() for name in args.features.split(",")]
    else:
        numbers = head.select_dtypes([np.number]).columns
        features = [column for column in columns if column != args.sensitive and column in numbers]
        if not features:
            raise CommandError(f"{args.csv}: no column but {args.sensitive!r} holds numbers to cluster by")
        left_out = [c for c in columns if c not in features and c != args.sensitive]
        if left_out:
            print(f"columns without numbers, left out: {', '.join(left_out)}")
    name = args.csv.name
    source = SourceSpec.model_validate({"path": str(args.csv)})
    spec = DatasetSpec.model_validate(
        {
            "title": name,
            "source": source,
            "reader": {"sep": args.delimiter, "skipinitialspace": True},
            "features": features,
            "sensitive": {"column": args.sensitive},
            "scale": args.scale,
            "n_clusters": max(2, args.n_clusters),
        }
    )
    try:
        return prepare_dataset(name, spec, {name: args.csv}, {name: source})
    except DatasetError as error:
        # Its advice is for the configuration of the pipeline.
        what = str(error).partition(" Fix: ")[0]
        raise CommandError(f"{what} Fix: choose columns by --features, or correct the file") from None


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to a CSV.

    Parameters
    ----------
    args : Namespace
        csv, sensitive, method, n_clusters, features, scale, set, seed, delimiter, out.

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
    data = _read(args)
    names = np.array(data.group_names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = cls(**params).fit(data.X, sensitive_features=names[data.groups])
        except (ValueError, TypeError, Diverged) as error:
            raise CommandError(f"{cls.__name__} cannot fit {args.csv}: {error}") from None
    K, J = args.n_clusters, len(names)
    scores = score_labels(
        data.X,
        model.labels_,
        data.groups,
        n_clusters=K,
        n_groups=J,
        metrics=[m for m in _SHOWN if m in METRICS],
    )
    lines = [f"{cls.__name__}: {len(data.X):,} rows, {data.X.shape[1]} features, {J} groups, {K} clusters"]
    more = ", ..." if data.X.shape[1] > 20 else ""
    lines.append(f"features: {', '.join(data.feature_names[:20])}{more}")
    lines += [f"note: {str(item.message).splitlines()[0]}" for item in caught]
    width = max(len(METRICS[name].label) for name in scores)
    for name, value in scores.items():
        shown = "–" if math.isnan(value) else f"{value:,.{METRICS[name].decimals}f}"
        lines.append(f"{METRICS[name].label:{width}}  {shown}")
    lines += ["", *_by_cluster(contingency(model.labels_, data.groups, K, J), names)]
    if args.out:
        labels = pd.DataFrame({"row": np.arange(1, len(data.X) + 1), "cluster": model.labels_})
        with atomic_write(Path(args.out)) as file:
            labels.to_csv(file, index=False)
        lines += ["", f"labels: {args.out} (rows counted from 1, clusters from 0)"]
    return lines


def _by_cluster(table: np.ndarray, names: np.ndarray) -> list[str]:
    """Sizes and shares of the groups, cluster by cluster and in all."""
    rows = [["cluster", "size", *map(str, names)]]
    for label, counts in [*enumerate(table.T), ("all", table.sum(axis=1))]:
        size = int(counts.sum())
        shares = [f"{100 * count / size:.1f} %" if size else "–" for count in counts]
        rows.append([str(label), f"{size:,}", *shares])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in rows]
