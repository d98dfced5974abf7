"""`fairclust fit`: cluster the rows of a table fairly, and report the cost and which groups pay it.

A table that does not fit in memory, in Parquet files, is read chunk by chunk in every pass.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table
from sklearn.cluster import KMeans

from fairclust.chunks import ChunkError, ChunkTable
from fairclust.chunks.engines import Engine, Threads
from fairclust.chunks.sources import read_metadata
from fairclust.cli import CommandError
from fairclust.cli.fitting import (
    RawTable,
    decided,
    fit,
    is_cosine,
    parameters,
    plain_kmeans,
    possible,
    read_raw,
)
from fairclust.cli.methods import find_method
from fairclust.cli.options import Fit
from fairclust.cli.progress import USUAL_PASSES, Passes, expected_seconds, progress
from fairclust.cli.results import Measured, Rows, as_text, describe, measure, write_fit
from fairclust.explain import profiles_of
from fairclust.frame import as_directions
from fairclust.messages import shortened
from fairclust.outputs import check_outputs
from fairclust.tables import left_out_rows, table_files
from fairclust.tables.chunked import prepare_chunks

_SHOWN_GROUPS = 5
# If clusters have fewer rows than this on average, the group shares in them mean little.
_FEW_ROWS = 20
# The bytes that a fit in memory takes for a cell of the table, with its copies, and for a row and a cluster. The search
# of `PriceFairKMeans` has two tables of distances.
_PER_CELL, _PER_CLUSTER = 64, 12


def run(args: Fit) -> list[str | Table]:
    """Fit a method to a table, in memory or in chunks."""
    cls = find_method(args.method)
    if args.equal_sizes and "size_min" not in inspect.signature(cls).parameters:
        raise CommandError(
            f"--equal-sizes: {cls.__name__} has no bounds on sizes. Fix: leave it out, or fit by --method price"
        )
    params = parameters(cls, args.n_clusters, args.seed, args.settings)
    chunked = _is_chunked(args)
    with ExitStack() as stack:
        with progress(f"reading {args.table}"):
            of = (args, cls, params)
            rows = _rows_in_chunks(*of, stack) if chunked else _rows_in_memory(*of)
        X, passes = rows.X, None
        expected = expected_seconds(cls, params, X, rows.groups)
        if isinstance(X, ChunkTable):
            passes = Passes(X.engine, USUAL_PASSES[cls.__name__] * sum(rows.sizes.values()))
            X = replace(X, engine=passes)
        sizes = _size_notes(rows, args.n_clusters)
        with progress(f"fitting {cls.__name__}", expected=expected, passes=passes):
            model, seconds, warned = fit(cls, params, X, rows.groups, rows.weights)
        notes = [*sizes, *warned, *rows.notes]
        result = describe(model, rows, scale=args.scale, notes=notes, seconds=seconds)
        result |= write_fit(args, rows, model, result)
    return [json.dumps(result, indent=2)] if args.json else as_text(result, verbose=args.verbose)


def _rows_in_memory(args: Fit, cls: type, params: dict[str, Any]) -> Rows:
    outputs = {"--out": args.out, "--save": args.save, "--report": args.report}
    check_outputs(outputs, table_files(args.table))
    if args.save and not hasattr(cls, "predict"):
        raise CommandError(
            f"--save: {cls.__name__} cannot predict the clusters of new rows. Fix: write the labels by --out instead"
        )
    means = params.get("mean_tolerance")
    raw = read_raw(args, list(map(str, means)) if isinstance(means, dict) else [])
    return rows_of(raw, params, raw.sensitive_for(cls, crossed=args.crossed))


def rows_of(raw: RawTable, params: dict[str, Any], groups: Any) -> Rows:
    """The rows of a table in memory, whose groups are as a method takes them."""

    def costed(model: Any) -> np.ndarray:
        """The rows as the model sees them, of which costs are computed."""
        return as_directions(raw.X) if is_cosine(model) else raw.X

    def plain(model: Any) -> np.ndarray:
        of = plain_kmeans(model, params)
        with warnings.catch_warnings(), progress("fitting k-means, to compare with"):
            warnings.simplefilter("ignore")
            if raw.weights is not None:
                weighted = KMeans(of.n_clusters, n_init=of.n_init, random_state=of.random_state)
                return weighted.fit(costed(model), sample_weight=raw.weights).labels_
            return of.fit(raw.X, sensitive_features=raw.crossed).labels_

    def measured(labels: np.ndarray, model: Any) -> Measured:
        X, n_clusters = costed(model), model.n_clusters
        weights = np.ones(len(labels)) if raw.weights is None else raw.weights
        # The squared distance of every row to the weighted mean of its cluster.
        n_used = int(labels.max()) + 1
        sizes = np.maximum(np.bincount(labels, weights, n_used), np.finfo(float).tiny)
        means = np.column_stack([np.bincount(labels, weights * column, n_used) / sizes for column in X.T])
        paid = weights * ((X - means[labels]) ** 2).sum(axis=1)
        names, first, codes = np.unique(raw.crossed, return_index=True, return_inverse=True)
        counts = np.bincount(codes * n_clusters + labels, raw.weights, minlength=len(names) * n_clusters)
        counts = counts.reshape(len(names), n_clusters)
        return measure(raw.groups.iloc[first].set_axis(names), counts, np.bincount(codes, paid))

    return Rows(
        preparation=raw.preparation,
        X=raw.X,
        groups=groups,
        weights=raw.weights,
        sizes=pd.Series(raw.crossed).value_counts().sort_index().to_dict(),
        notes=raw.notes,
        plain=plain,
        measured=measured,
        parts=lambda labels: [(raw.whole, raw.reasons, labels)],
        left_out=bool((raw.reasons != "").any()),
        columns=raw.columns,
        crossed=raw.crossed,
        profiles=lambda labels: profiles_of(raw.frame, np.asarray(labels), raw.shown, raw.X),
    )


def _size_notes(rows: Rows, n_clusters: int) -> list[str]:
    """Notes on small clusters and small groups, and on several sensitive columns."""
    notes, listed = [], " and ".join(rows.preparation.sensitive)
    if len(rows.preparation.sensitive) > 1 and isinstance(rows.groups, dict):
        others = f"{len(rows.sizes)} combinations"
        notes.append(f"each of {listed} counts on its own; --crossed takes their {others} instead")
    elif len(rows.preparation.sensitive) > 1:
        notes.append(
            f"the groups are the combinations of {listed}: {len(rows.sizes)} groups, and what the method promises "
            "holds for each of them"
        )
    n_rows = sum(rows.sizes.values())
    if n_rows < _FEW_ROWS * n_clusters:
        notes.append(
            f"{n_clusters} clusters of {n_rows:,} rows have {n_rows / n_clusters:.0f} rows on average: with so few, "
            "shares of groups mean little"
        )
    sizes = dict(rows.sizes)
    if isinstance(rows.groups, dict):
        # Each column is bounded, and not their combinations. Columns of numbers have bounds on their means.
        sizes = {
            f"{name} {value}": int(size)
            for name, of in rows.groups.items()
            if of.dtype.kind == "U"
            for value, size in zip(*np.unique(of, return_counts=True), strict=True)
        }
    small = {name: size for name, size in sizes.items() if size < n_clusters}
    if small:
        shown = ", ".join(
            f"{shortened(name)} ({size} row{'s' * (size > 1)})"
            for name, size in list(small.items())[:_SHOWN_GROUPS]
        )
        more = f" and {len(small) - _SHOWN_GROUPS:,} more" if len(small) > _SHOWN_GROUPS else ""
        notes.append(
            f"too few rows for {n_clusters} clusters in group {shown}{more}: some clusters get none of them; "
            "join them with another group in the table, or leave their rows out"
        )
    return notes


def _is_chunked(args: Fit) -> bool:
    """Whether the table is read in chunks: an option of chunks is given, or Parquet files do not fit in memory."""
    if args.workers is not None or args.scheduler:
        return True
    files = table_files(args.table)
    if files[0].suffix.lower() != ".parquet":
        return False
    size = 0
    with suppress(ChunkError):  # A damaged file is reported by the road through memory.
        for file in files:
            metadata = read_metadata(file)
            size += metadata.num_rows * (_PER_CELL * metadata.num_columns + _PER_CLUSTER * args.n_clusters)
    return size > memory()


def memory() -> int:
    """Half of the memory of this machine or of its control group, in bytes."""
    found = [1 << 33]
    with suppress(AttributeError, ValueError, OSError):
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found) // 2


def _check_chunks(args: Fit, cls: type, params: dict[str, Any]) -> None:
    """CommandError if the table, the method or an option does not work with tables in chunks."""
    if not getattr(cls, "takes_chunks", False):
        raise CommandError(
            f"--method: {cls.__name__} needs all rows in memory; price, vfc and kmeans do not. Fix: name one of these"
        )
    if args.weight:
        raise CommandError(
            "--weight: rows of tables that are read in chunks count one each. Fix: leave it out, or fit a sample"
        )
    if params.get("mean_tolerance"):
        raise CommandError(
            "--set mean_tolerance: does not work for tables that are read in chunks. Fix: bound ranges of the column "
            "instead, by --bins"
        )
    if args.workers is not None and (args.scheduler or args.workers < 1):
        raise CommandError(
            "--workers: cannot be combined with --scheduler, and must be at least 1. Fix: give one of the two options"
        )
    files = table_files(args.table)
    if any(file.suffix.lower() != ".parquet" for file in files):
        raise CommandError(
            f"{args.table} is not Parquet, and only Parquet files are read in chunks. Fix: write the table as "
            "Parquet, or leave out --workers and --scheduler"
        )
    read: list[str | Path] = [*files, *([args.scheduler] if args.scheduler else [])]
    check_outputs({"--out": args.out, "--save": args.save, "--report": args.report}, read)


def _print_steps(stack: ExitStack) -> None:
    """Print the passes of the fit until the stack is closed, without the log messages of Dask."""
    log, handler = logging.getLogger("fairclust"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)
    log.setLevel(logging.INFO)


def _rows_in_chunks(args: Fit, cls: type, params: dict[str, Any], stack: ExitStack) -> Rows:
    """The rows of Parquet files, whose engine runs until the stack is closed."""
    _check_chunks(args, cls, params)
    _print_steps(stack)
    engine: Engine = Threads()
    if where := args.scheduler or args.workers:
        # Imported only here, because Dask is not needed without a cluster.
        from fairclust.chunks.cluster import Cluster

        engine = Cluster(where)
    stack.enter_context(closing(engine))
    found = prepare_chunks(
        args.table,
        lambda sample: decided(sample, args),
        engine,
        values=possible(args.sensitive, args.categories),
        seed=args.seed,
    )
    decision = found.decision

    def plain(model: Any) -> Any:
        with progress("fitting k-means, to compare with"):
            return plain_kmeans(model, params).fit(found.table).labels_

    def measured(labels: Any, model: Any) -> Measured:
        return measure(found.groups, *found.scored(labels, model.n_clusters))

    def parts(labels: Any) -> Iterator[Any]:
        first = 0
        for frame, reasons in found.parts():
            last = first + int((reasons == "").sum())
            yield frame, reasons, np.asarray(labels[first:last])
            first = last

    return Rows(
        preparation=decision.preparation,
        X=found.table,
        groups=None,
        weights=None,
        sizes=found.sizes,
        notes=[*left_out_rows(found.reasons, args.missing), *decision.notes, *found.notes],
        plain=plain,
        measured=measured,
        parts=parts,
        left_out=bool(found.reasons),
        columns=decision.columns,
        over=" over all files",
    )
