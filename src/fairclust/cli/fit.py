"""`fairclust fit`: cluster the rows of a table fairly, and report the cost and which groups pay it."""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust import methods
from fairclust.cli import CommandError, in_chunks, raw_table
from fairclust.cli.fitting import fit, parameters
from fairclust.cli.methods import find_method
from fairclust.cli.progress import expected_seconds, progress
from fairclust.cli.raw_table import RawTable
from fairclust.cli.results import as_text, describe
from fairclust.messages import shortened
from fairclust.outputs import atomic_write, check_outputs
from fairclust.tables import TableModel

# If clusters have fewer rows than this on average, the group shares in them mean little.
_FEW_ROWS = 20


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to a table.

    Returns metrics, certificate, fairness by column, who pays, and the groups by cluster. CommandError if the table
    cannot be read or fitted, an output cannot be written, or an option names a column, method or parameter that does
    not exist.
    """
    if in_chunks.is_asked_for(args):
        return in_chunks.run(args)
    cls = find_method(args.method)
    params = parameters(cls, args.n_clusters, args.seed, args.set)
    _check_outputs(args, cls)
    means = params.get("mean_tolerance")
    means = [str(name) for name in means] if isinstance(means, dict) else []
    raw = raw_table.read(args, means)
    groups = raw_table.sensitive_for(cls, raw, crossed=args.crossed, means=means)
    each = isinstance(groups, dict)
    expected = expected_seconds(cls, params, raw.X, groups)
    size_notes = _size_notes(raw, args.n_clusters, each)
    with progress(f"fitting {cls.__name__}", expected=expected, notes=size_notes):
        model, seconds, notes = fit(cls, params, raw.X, groups)
    plain = None if cls is methods.KMeans else _plain(model, params, raw)
    result = describe(
        model,
        plain,
        raw,
        scaled=raw_table.describe_scale(args.scale),
        notes=[*raw.notes, *size_notes, *notes],
        seconds=seconds,
    )
    if args.out:
        table = labels_table(raw.frame, raw.ids, model.labels_, spreadsheet_safe=args.spreadsheet_safe)
        write_csv(args.out, table)
        result["labels"] = f"{args.out} (rows counted from 1, clusters from 0)"
    if args.save:
        sensitive = list(raw.groups.columns)
        table_model = TableModel(
            raw.preparation,
            model,
            sensitive,
            args.missing,
            raw.ids,
            raw.ranges,
            by_column=each,
            means=means,
            texts=raw.texts,
        )
        table_model.save(args.save)
        result["model"] = f"{args.save} (fairclust predict {args.save} NEW_TABLE)"
    return [json.dumps(result, indent=2)] if args.json else as_text(result)


def _check_outputs(args: argparse.Namespace, cls: type) -> None:
    check_outputs({"--out": args.out, "--save": args.save}, [args.table])
    if args.save and not hasattr(cls, "predict"):
        raise CommandError(
            f"--save: {cls.__name__} cannot predict the clusters of new rows. Fix: write the labels by --out instead"
        )


def _plain(model: Any, params: dict[str, Any], raw: RawTable) -> np.ndarray:
    """Labels of k-means with as many starts as the fair fit. With fewer starts, fairness would look too cheap."""
    starts = getattr(model, "n_init", 1)
    plain = methods.KMeans(params["n_clusters"], n_init=starts, random_state=params.get("random_state"))
    with warnings.catch_warnings(), progress("fitting k-means, to compare with"):
        warnings.simplefilter("ignore")
        return plain.fit(raw.X, sensitive_features=raw.crossed).labels_


def _size_notes(raw: RawTable, n_clusters: int, each: bool) -> list[str]:
    """Notes on small clusters and small groups, and on several sensitive columns.

    `each` says whether each sensitive column counts on its own.
    """
    notes = []
    if len(raw.X) < _FEW_ROWS * n_clusters:
        notes.append(
            f"{n_clusters} clusters of {len(raw.X):,} rows have {len(raw.X) / n_clusters:.0f} rows on average: with "
            "so few, shares of groups mean little"
        )
    names, sizes = np.unique(raw.crossed, return_counts=True)
    least = int(sizes.argmin())
    if sizes[least] < n_clusters:
        rows = "1 row" if sizes[least] == 1 else f"{sizes[least]} rows"
        notes.append(f"group {shortened(str(names[least]))} has {rows}, too few for {n_clusters} clusters")
    if len(raw.groups.columns) > 1:
        listed = " and ".join(raw.groups.columns)
        notes.insert(
            0,
            f"each of {listed} counts on its own; --crossed takes their {len(names)} combinations instead"
            if each
            else f"the groups are the combinations of {listed}: {len(names)} groups, and what the method promises "
            "holds for each of them",
        )
    return notes


def labels_table(
    frame: pd.DataFrame, ids: list[str], labels: np.ndarray, *, spreadsheet_safe: bool
) -> pd.DataFrame:
    """Make a table with the number of each row, counted from 1, its identifiers (columns `ids`) and its cluster.

    If `spreadsheet_safe`, text that a spreadsheet would take as a formula gets an apostrophe before it. Columns of
    numbers stay as they are.
    """
    table = pd.DataFrame({"row": frame.index + 1}, index=frame.index).join(frame[ids])
    if spreadsheet_safe:
        text = [name for name in ids if pd.to_numeric(table[name], errors="coerce").isna().any()]
        table[text] = table[text].map(_quoted)
        table = table.rename(columns=_quoted)
    return table.assign(cluster=labels)


def _quoted(value: Any) -> Any:
    return (
        f"'{value}"
        if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
        else value
    )


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV, completely or not at all."""
    with atomic_write(path) as file:
        table.to_csv(file, index=False)
