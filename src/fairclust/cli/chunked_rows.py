"""Parquet files that do not fit in memory, as rows that `fairclust fit` reads chunk by chunk in every pass."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairclust.chunks.engines import Engine, Threads
from fairclust.cli import CommandError
from fairclust.cli.options import Fit
from fairclust.cli.progress import progress
from fairclust.cli.rows import Rows, decided, plain_kmeans
from fairclust.tables import left_out_rows, table_files
from fairclust.tables.chunked import ChunkedTable, prepare_chunks


@dataclass(kw_only=True)
class RowsInChunks(Rows):
    """The rows of Parquet files."""

    table: ChunkedTable
    over: str = " over all files"

    def plain(self, model: Any) -> Any:
        with progress("fitting k-means, to compare with"):
            return plain_kmeans(model).fit(self.table.table).labels_

    def counts_and_costs(self, labels: Any, model: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.table.scored(labels, model.n_clusters)

    def parts(self, labels: Any) -> Iterator[tuple[pd.DataFrame, pd.Series, np.ndarray]]:
        first = 0
        for frame, reasons in self.table.parts():
            last = first + int((reasons == "").sum())
            yield frame, reasons, np.asarray(labels[first:last])
            first = last


def read_in_chunks(args: Fit, cls: type, params: dict[str, Any], stack: ExitStack) -> RowsInChunks:
    """The rows of the files, whose engine runs until the stack is closed; its passes are printed."""
    _check(args, cls, params)
    log, handler = logging.getLogger("fairclust"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)
    log.setLevel(logging.INFO)
    engine: Engine = Threads()
    if where := args.scheduler or args.workers:
        # Imported only here, because Dask is not needed without a cluster.
        from fairclust.chunks.cluster import Cluster

        log.info("starting or joining the workers")
        engine = Cluster(where)
    stack.enter_context(closing(engine))
    table = prepare_chunks(args.table, lambda sample: decided(sample, args), engine, seed=args.seed)
    decision = table.decision
    return RowsInChunks(
        preparation=decision.preparation,
        columns=decision.columns,
        X=table.table,
        combinations=table.groups,
        sizes=table.sizes,
        notes=[*left_out_rows(table.reasons, args.missing), *decision.notes, *table.notes],
        left_out=bool(table.reasons),
        table=table,
    )


def _check(args: Fit, cls: type, params: dict[str, Any]) -> None:
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
    if any(file.suffix.lower() != ".parquet" for file in table_files(args.table)):
        raise CommandError(
            f"{args.table} is not Parquet, and only Parquet files are read in chunks. Fix: write the table as "
            "Parquet, or leave out --workers and --scheduler"
        )
