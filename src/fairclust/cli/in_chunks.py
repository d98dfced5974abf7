"""`fairclust fit` of a table that does not fit in memory: Parquet files, read chunk by chunk in every pass."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.chunks import ChunkError
from fairclust.chunks.engines import Engine, Threads
from fairclust.chunks.passes import score_chunks
from fairclust.chunks.sources import opened
from fairclust.cli import CommandError
from fairclust.cli.fitting import plain_kmeans
from fairclust.cli.labels import labels_table, write_fit
from fairclust.cli.progress import progress
from fairclust.cli.raw_table import decided, possible
from fairclust.cli.results import Measured, Rows, measure
from fairclust.outputs import check_outputs
from fairclust.tables import TableModel, left_out_rows, table_files
from fairclust.tables.chunked import ChunkedTable, prepare_chunks

# The bytes that a fit in memory takes for a cell of the table, with its copies, and for a row and a cluster. The search
# of `PriceFairKMeans` has two tables of distances.
_PER_CELL, _PER_CLUSTER = 64, 12


def is_asked_for(args: argparse.Namespace) -> bool:
    """Whether the table is read in chunks: an option of chunks is given, or Parquet files do not fit in memory."""
    if args.workers is not None or args.scheduler or args.checkpoint:
        return True
    files = table_files(args.table)
    if files[0].suffix.lower() != ".parquet":
        return False
    size = 0
    with suppress(ChunkError):  # A damaged file is reported by the road through memory.
        for file in files:
            metadata = opened(file)[1]
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


@contextmanager
def open_rows(args: argparse.Namespace, cls: type, params: dict[str, Any]) -> Iterator[Rows]:
    """The rows of Parquet files. CommandError if the method or an option does not work with tables in chunks."""
    _check_options(args, cls, params)
    files = table_files(args.table)
    if any(file.suffix.lower() != ".parquet" for file in files):
        raise CommandError(
            f"{args.table} is not Parquet, and only Parquet files are read in chunks. Fix: write the table as "
            "Parquet, or leave out --workers, --scheduler and --checkpoint"
        )
    read = [*files, *([args.scheduler] if args.scheduler else [])]
    check_outputs({"--out": args.out, "--save": args.save, "--checkpoint": args.checkpoint}, read)
    with _told_steps(), closing(_engine(args)) as engine:
        found = prepare_chunks(
            args.table,
            lambda sample: decided(sample, args),
            engine,
            values=possible(args.sensitive, args.categories),
            checkpoint=args.checkpoint,
            seed=args.seed,
        )
        yield _RowsInChunks(args, params, found)


class _RowsInChunks:
    def __init__(self, args: argparse.Namespace, params: dict[str, Any], found: ChunkedTable) -> None:
        self._args, self._params, self._found = args, params, found
        self.X, self.groups = found.table, None
        self.weights: np.ndarray | None = None
        preparation = found.decision.preparation
        self.features = preparation.features
        self.n_columns = len(preparation.pipeline.get_feature_names_out())
        self.columns, self.sizes = list(found.groups.columns), found.sizes
        self.notes = [*left_out_rows(found.reasons, args.missing), *found.decision.notes, *found.notes]

    def plain(self, model: Any) -> Any:
        with progress("fitting k-means, to compare with"):
            return plain_kmeans(model, self._params).fit(replace(self.X, checkpoint=None)).labels_

    def measured(self, labels: Any, model: Any) -> Measured:
        groups = self._found.groups
        names = np.array(list(groups.index))
        return measure(groups, *score_chunks(self.X, labels, names, model.n_clusters))

    def write(self, model: Any) -> dict[str, str]:
        found = self._found
        saved = TableModel(found.decision.preparation, model)
        parts, reasons = self._labels(model.labels_), bool(found.reasons)
        return write_fit(self._args, parts, saved, reasons=reasons, over=" over all files")

    def _labels(self, labels: Any) -> Iterator[Any]:
        first, ids = 0, self._found.decision.preparation.ids
        for frame, reasons in self._found.parts():
            last = first + int((reasons == "").sum())
            own = np.asarray(labels[first:last])
            yield labels_table(frame, ids, reasons, own, spreadsheet_safe=self._args.spreadsheet_safe)
            first = last


def _check_options(args: argparse.Namespace, cls: type, params: dict[str, Any]) -> None:
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


@contextmanager
def _told_steps() -> Iterator[None]:
    """Print the steps of the fit on standard error, without the log messages of Dask."""
    log, handler = logging.getLogger("fairclust"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _engine(args: argparse.Namespace) -> Engine:
    """The threads or the Dask workers that read the chunks."""
    if not args.scheduler and not args.workers:
        return Threads()
    # Imported only here, because Dask is not needed without a cluster.
    from fairclust.chunks.cluster import Cluster

    return Cluster(args.scheduler or args.workers)
