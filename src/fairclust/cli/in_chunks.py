"""`fairclust fit` of a table that does not fit in memory: Parquet files, read chunk by chunk in every pass."""

from __future__ import annotations

import argparse
import glob
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fairclust.chunks import ChunkTable, open_chunks
from fairclust.chunks.scaling import standardized
from fairclust.chunks.scores import score_chunks
from fairclust.chunks.sources import parquet_columns, parquet_files
from fairclust.cli import CommandError
from fairclust.cli.results import Measured, Rows
from fairclust.outputs import OutputError, check_outputs

# Options that work only for tables in memory. They are refused for tables that are read in chunks.
_NOT_HERE = ("bins", "categories", "id", "save", "spreadsheet_safe", "thousands")


def is_asked_for(args: argparse.Namespace) -> bool:
    """Whether the table is read in chunks: an option of chunks is given, or it is a folder or a pattern of files."""
    return bool(
        args.workers is not None
        or args.scheduler
        or args.checkpoint
        or glob.has_magic(args.table)
        or Path(args.table).is_dir()
    )


@contextmanager
def open_rows(args: argparse.Namespace, cls: type, params: dict[str, Any]) -> Iterator[Rows]:
    """The rows of Parquet files.

    CommandError if the files cannot be read, a column does not exist, or the method or an option does not work with
    tables that are read in chunks.
    """
    _check_options(args, cls)
    try:
        read = [*parquet_files(args.table), *([args.scheduler] if args.scheduler else [])]
        check_outputs({"--out": args.out, "--checkpoint": args.checkpoint}, read)
        with _told_steps(), _open(args) as table:
            scaled = table if args.scale == "none" else standardized(table, unit_rows=args.scale == "l2")
            yield _RowsInChunks(args, scaled)
    except (CommandError, OutputError):
        raise
    except ValueError as error:
        raise CommandError(f"{args.table} cannot be read: {error}") from None


class _RowsInChunks:
    def __init__(self, args: argparse.Namespace, table: ChunkTable) -> None:
        self._args, self.X, self.groups = args, table, None
        self.features, self.n_columns = list(table.features), len(table.features)
        self.notes: list[str] = []
        self.size_notes: list[str] = []

    def plain(self, model: Any) -> None:
        """No labels of k-means, because a second fit of so many rows would take as long as the first one."""

    def measured(self, labels: Any, model: Any) -> Measured:
        counts, cost = score_chunks(self.X, labels, model.groups_, model.n_clusters)
        tables = {self._args.sensitive[0]: (model.groups_.astype(str), counts)}
        return Measured(cost, tables, {"all rows": cost / int(counts.sum())})

    def write(self, model: Any) -> dict[str, str]:
        # The fit has written the labels.
        return {"labels": str(self._args.out)} if self._args.out else {}


def _check_options(args: argparse.Namespace, cls: type) -> None:
    if not getattr(cls, "takes_chunks", False):
        raise CommandError(
            f"--method: {cls.__name__} needs all rows in memory; price, vfc and kmeans do not. Fix: name one of these"
        )
    given = [name for name in _NOT_HERE if getattr(args, name)]
    if given:
        raise CommandError(
            f"--{given[0].replace('_', '-')}: does not work for tables that are read in chunks. Fix: leave it out"
        )
    if args.missing != "impute":
        raise CommandError(
            "--missing: does not work for tables that are read in chunks, in which a missing cell is an error. Fix: "
            "leave it out"
        )
    if args.workers is not None and (args.scheduler or args.workers < 1):
        raise CommandError(
            "--workers: cannot be combined with --scheduler, and must be at least 1. Fix: give one of the two options"
        )
    if len(args.sensitive) > 1:
        raise CommandError(
            "--sensitive: tables that are read in chunks take one column. Fix: join several into one in the files"
        )
    if args.out and args.out.suffix != ".npy":
        raise CommandError(
            "--out: labels of tables that are read in chunks are written as .npy. Fix: end the name with .npy"
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


def _open(args: argparse.Namespace) -> ChunkTable:
    features = [part for name in args.features for part in name.split(",")]
    excluded = [part for name in args.exclude for part in name.split(",")]
    if excluded and not features:
        given = (*args.sensitive, *excluded)
        features = [name for name in parquet_columns(args.table) if name not in given]
        if not features:
            raise CommandError("--exclude: no column is left to cluster by. Fix: leave out fewer columns")
    return open_chunks(
        args.table,
        args.sensitive[0],
        features=features or None,
        labels=args.out,
        checkpoint=args.checkpoint,
        client=args.scheduler or args.workers,
    )
