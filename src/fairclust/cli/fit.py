"""`fairclust fit`: cluster the rows of a table fairly, and report the cost and which groups pay it."""

from __future__ import annotations

import inspect
import os
from contextlib import ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from fairclust.chunks import ChunkError
from fairclust.chunks.sources import read_metadata
from fairclust.cli.chunked_rows import read_in_chunks
from fairclust.cli.methods import find_method, fit, parameters
from fairclust.cli.options import Fit
from fairclust.cli.progress import progress
from fairclust.cli.results import report
from fairclust.cli.rows import Rows, read_rows
from fairclust.messages import UserError, count, listed, shortened
from fairclust.outputs import check_outputs
from fairclust.tables import table_files

# If clusters have fewer rows than this on average, the group shares in them mean little.
_FEW_ROWS = 20
# The bytes that a fit in memory takes for a cell of the table, with its copies, and for a row and a cluster. The search
# of `PriceFairKMeans` has two tables of distances.
_PER_CELL, _PER_CLUSTER = 64, 12


def run(args: Fit) -> list[str | Table]:
    """Fit a method to a table, in memory or in chunks."""
    cls = find_method(args.method)
    if args.equal_sizes and "size_min" not in inspect.signature(cls).parameters:
        raise UserError(
            f"--equal-sizes: {cls.__name__} has no bounds on sizes. Fix: leave it out, or fit by --method price"
        )
    params = parameters(cls, args.n_clusters, args.seed, args.settings)
    chunked = _is_chunked(args)
    outputs = {"--out": args.out, "--save": args.save, "--report": args.report}
    check_outputs(outputs, [*table_files(args.table), *([args.scheduler] if args.scheduler else [])])
    if args.save and not hasattr(cls, "predict"):
        raise UserError(
            f"--save: {cls.__name__} cannot predict the clusters of new rows. Fix: write the labels by --out instead"
        )
    with ExitStack() as stack:
        with progress(f"reading {args.table}"):
            rows: Rows = read_in_chunks(args, cls, stack) if chunked else _read_in_memory(args, cls, params)
        sizes = _size_notes(rows, args.n_clusters)
        with nullcontext() if chunked else progress(f"fitting {cls.__name__}"):
            model, seconds, warned = fit(cls, params, rows.X, rows.groups, rows.weights)
        notes = [*sizes, *warned, *rows.notes]
        return report(args, rows, model, notes=notes, seconds=seconds)


def _read_in_memory(args: Fit, cls: type, params: dict[str, Any]) -> Rows:
    means = params.get("mean_tolerance")
    rows = read_rows(args, list(map(str, means)) if isinstance(means, dict) else [])
    rows.groups = rows.sensitive_for(cls, crossed=args.crossed)
    return rows


def _size_notes(rows: Rows, n_clusters: int) -> list[str]:
    """Notes on small clusters and small groups, and on several sensitive columns."""
    notes, columns, sizes = [], rows.preparation.sensitive, dict(rows.sizes)
    if len(columns) > 1:
        names, pairs = " and ".join(columns), count(len(sizes), "combination")
        apart = f"each of {names} counts on its own; --crossed takes their {pairs} instead"
        notes = [apart if isinstance(rows.groups, dict) else f"the groups are the {pairs} of {names}"]
    n_rows = sum(sizes.values())
    if n_rows < _FEW_ROWS * n_clusters:
        notes.append(
            f"a cluster has {n_rows / n_clusters:.0f} rows on average; shares of groups in so few rows mean little"
        )
    if isinstance(rows.groups, dict):
        # Each column is bounded, and not their combinations. Columns of numbers have bounds on their means.
        sizes = {
            f"{name} {value}": int(size)
            for name, of in rows.groups.items()
            if of.dtype.kind == "U"
            for value, size in zip(*np.unique(of, return_counts=True), strict=True)
        }
    small = [f"{shortened(name)} ({count(size, 'row')})" for name, size in sizes.items() if size < n_clusters]
    if small:
        notes.append(
            f"too few rows for {n_clusters} clusters in group {listed(small, 5)}: some clusters "
            "have none of them; join the group with another one in the table, or leave its rows out"
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
    sizes = [1 << 33]
    with suppress(AttributeError, ValueError, OSError):
        sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    with suppress(OSError, ValueError):
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(sizes) // 2
