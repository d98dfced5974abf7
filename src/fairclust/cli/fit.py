"""`fairclust fit`: cluster the rows of a table fairly, and report the cost and which groups pay it."""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust import methods
from fairclust.chunks import ChunkTable
from fairclust.cli import CommandError, in_chunks, raw_table
from fairclust.cli.fitting import fit, parameters
from fairclust.cli.methods import find_method
from fairclust.cli.progress import USUAL_PASSES, Passes, expected_seconds, progress
from fairclust.cli.raw_table import RawTable
from fairclust.cli.results import Measured, Rows, as_text, counted, describe
from fairclust.messages import shortened
from fairclust.metrics import group_costs, sse
from fairclust.outputs import atomic_write, check_outputs
from fairclust.tables import TableModel

# If clusters have fewer rows than this on average, the group shares in them mean little.
_FEW_ROWS = 20


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to a table, in memory or in chunks.

    Returns metrics, certificate, fairness by column, who pays, and the groups by cluster. CommandError if the table
    cannot be read or fitted, an output cannot be written, or an option names a column, method or parameter that does
    not exist.
    """
    cls = find_method(args.method)
    # Floats are multiples of the mean size.
    equal = ["size_min=1.0", "size_max=1.0"] if args.equal_sizes else []
    params = parameters(cls, args.n_clusters, args.seed, [*args.set, *equal])
    open_rows = in_chunks.open_rows if in_chunks.is_asked_for(args) else _open_rows
    with ExitStack() as stack:
        with progress(f"reading {args.table}"):
            rows = stack.enter_context(open_rows(args, cls, params))
        expected, passes = expected_seconds(cls, params, rows.X, rows.groups), None
        if isinstance(rows.X, ChunkTable):
            passes = Passes(rows.X.engine, USUAL_PASSES[cls.__name__])
            rows.X = replace(rows.X, engine=passes)
        with progress(f"fitting {cls.__name__}", expected=expected, notes=rows.size_notes, passes=passes):
            model, seconds, warned = fit(cls, params, rows.X, rows.groups)
        notes = [*rows.notes, *rows.size_notes, *warned]
        result = describe(
            model, rows, scaled=raw_table.describe_scale(args.scale), notes=notes, seconds=seconds
        )
        result |= rows.write(model)
    return [json.dumps(result, indent=2)] if args.json else as_text(result)


@contextmanager
def _open_rows(args: argparse.Namespace, cls: type, params: dict[str, Any]) -> Iterator[Rows]:
    """The rows of a table that is read into memory."""
    check_outputs({"--out": args.out, "--save": args.save}, [args.table])
    if args.save and not hasattr(cls, "predict"):
        raise CommandError(
            f"--save: {cls.__name__} cannot predict the clusters of new rows. Fix: write the labels by --out instead"
        )
    means = params.get("mean_tolerance")
    yield _RowsInMemory(args, cls, params, [str(name) for name in means] if isinstance(means, dict) else [])


class _RowsInMemory:
    def __init__(self, args: argparse.Namespace, cls: type, params: dict[str, Any], means: list[str]) -> None:
        self._args, self._params, self._means = args, params, means
        self._raw = raw = raw_table.read(args, means)
        self.X, self.notes = raw.X, raw.notes
        self.groups = raw_table.sensitive_for(cls, raw, crossed=args.crossed, means=means)
        self.size_notes = _size_notes(raw, args.n_clusters, isinstance(self.groups, dict))
        self.features = [column.name for column in raw.columns if column.role != "left out"]
        self.n_columns = raw.X.shape[1]

    def plain(self, model: Any) -> np.ndarray:
        """Labels of k-means with as many starts as the fair fit. With fewer starts, fairness would look too cheap."""
        starts, seed = getattr(model, "n_init", 1), self._params.get("random_state")
        plain = methods.KMeans(model.n_clusters, n_init=starts, random_state=seed)
        with warnings.catch_warnings(), progress("fitting k-means, to compare with"):
            warnings.simplefilter("ignore")
            return plain.fit(self.X, sensitive_features=self._raw.crossed).labels_

    def measured(self, labels: np.ndarray, model: Any) -> Measured:
        raw = self._raw
        groups = {name: column.to_numpy(dtype=str) for name, column in raw.groups.items()}
        costs = {"all rows": float(group_costs(raw.X, labels, sensitive_features=np.zeros(len(labels)))[0])}
        for name, of in groups.items():
            paid = group_costs(raw.X, labels, sensitive_features=of)
            costs |= {f"{name} {group}": float(cost) for group, cost in zip(np.unique(of), paid, strict=True)}
        if len(groups) > 1:
            groups[" & ".join(groups)] = raw.crossed
        tables = {name: counted(labels, of, model.n_clusters) for name, of in groups.items()}
        return Measured(sse(raw.X, labels), tables, costs)

    def write(self, model: Any) -> dict[str, str]:
        args, raw = self._args, self._raw
        written = {}
        if args.out:
            table = labels_table(raw.frame, raw.ids, model.labels_, spreadsheet_safe=args.spreadsheet_safe)
            write_csv(args.out, table)
            written["labels"] = f"{args.out} (rows counted from 1, clusters from 0)"
        if args.save:
            table_model = TableModel(
                raw.preparation,
                model,
                list(raw.groups.columns),
                args.missing,
                raw.ids,
                raw.ranges,
                by_column=isinstance(self.groups, dict),
                means=self._means,
                texts=raw.texts,
            )
            table_model.save(args.save)
            written["model"] = f"{args.save} (fairclust predict {args.save} NEW_TABLE)"
        return written


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
