"""Parquet files that do not fit in memory, as rows that `fairclust fit` reads chunk by chunk in every pass."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairclust.chunks import ChunkTable
from fairclust.chunks.passes import Engine, group_codes, total_of
from fairclust.chunks.sources import Chunk, slices_of
from fairclust.cli.options import Fit
from fairclust.cli.rows import Rows, check_groups, decided
from fairclust.messages import UserError
from fairclust.tables import left_out_rows, table_files
from fairclust.tables.chunked import prepare_chunks


@dataclass(kw_only=True)
class RowsInChunks(Rows):
    """The rows of Parquet files."""

    X: ChunkTable
    over: str = " over all files"

    def counts_and_costs(self, labels: Any, model: Any) -> tuple[np.ndarray, np.ndarray]:
        names, chunks = np.array(list(self.combinations.index)), self.X.chunks
        parts = (np.asarray(labels[rows]) for rows in slices_of(chunks))
        moments = self.X.engine.run(_moments, chunks, parts, *map(repeat, (names, model.n_clusters)))
        counts, squares, sums = total_of(moments)
        means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)[:, None]
        costs = squares - 2 * (sums * means).sum(axis=2) + counts * (means**2).sum(axis=1)
        return counts, costs.sum(axis=1)

    def parts(self, labels: Any) -> Iterator[tuple[pd.DataFrame, pd.Series, np.ndarray]]:
        ids = self.preparation.ids
        for chunk, rows in zip(self.X.chunks, slices_of(self.X.chunks), strict=True):
            frame, _, reasons = chunk.usable(ids)  # type: ignore[attr-defined]
            yield frame[ids], reasons, np.asarray(labels[rows])


def _moments(chunk: Chunk, labels: np.ndarray, names: np.ndarray, n_clusters: int) -> tuple[Any, ...]:
    """For every group and cluster the number of rows, the sum of their squared lengths, and their sum."""
    X, values = chunk.read()
    if not len(X):
        return ()
    shape = len(names), n_clusters
    cells = group_codes(values, names, chunk).astype(int) * n_clusters + labels
    of_cells = sp.csr_array(
        (np.ones(len(X)), (cells, np.arange(len(X)))), shape=(shape[0] * shape[1], len(X))
    )
    counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
    return counts, (of_cells @ (X**2).sum(axis=1)).reshape(shape), (of_cells @ X).reshape(*shape, X.shape[1])


def read_in_chunks(args: Fit, cls: type, stack: ExitStack) -> RowsInChunks:
    """The rows of the files, whose engine runs until the stack is closed; its passes are printed."""
    _check(args, cls)
    log, handler = logging.getLogger("fairclust"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log.addHandler(handler)
    stack.callback(log.removeHandler, handler)
    log.setLevel(logging.INFO)
    engine = Engine()
    if where := args.scheduler or args.workers:
        from fairclust.chunks.cluster import Cluster

        log.info("starting or joining the workers")
        engine = Cluster(where)
    stack.enter_context(closing(engine))
    chunks, decision, counted, notes = prepare_chunks(
        args.table, lambda sample: decided(sample, args), engine, args.seed
    )
    left_out = left_out_rows(counted.reasons, args.missing)
    check_groups(counted.sizes, left_out, args)
    return RowsInChunks(
        preparation=decision.preparation,
        columns=decision.columns,
        X=ChunkTable([*chunks], engine),
        combinations=counted.groups,
        sizes=counted.sizes,
        notes=[*left_out, *decision.notes, *notes],
        left_out=bool(counted.reasons),
    )


def _check(args: Fit, cls: type) -> None:
    """UserError if the table, the method or an option does not work with tables in chunks."""
    if not getattr(cls, "takes_chunks", False):
        raise UserError(
            f"--method: {cls.__name__} needs all rows in memory; price, vfc and kmeans do not. Fix: name one of these"
        )
    if args.weight:
        raise UserError(
            "--weight: rows of tables that are read in chunks count one each. Fix: leave it out, or fit a sample"
        )
    if args.workers is not None and args.scheduler:
        raise UserError("--workers: cannot be combined with --scheduler. Fix: leave out one of the two")
    if any(file.suffix.lower() != ".parquet" for file in table_files(args.table)):
        raise UserError(
            f"{args.table} is not Parquet, and only Parquet files are read in chunks. Fix: write the table as "
            "Parquet, or leave out --workers and --scheduler"
        )
