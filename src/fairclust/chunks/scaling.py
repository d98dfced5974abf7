"""Chunks whose rows are scaled when they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairclust.chunks.passes import total_of
from fairclust.chunks.sources import Chunk
from fairclust.chunks.survey import ends_of
from fairclust.chunks.table import ChunkTable
from fairclust.group_encoding import Values


@dataclass(frozen=True)
class ScaledChunk:
    """A chunk whose features are scaled to mean 0 and variance 1 over all chunks.

    If `unit_rows`, each row is then divided by its length.
    """

    chunk: Chunk
    mean: np.ndarray
    scale: np.ndarray
    unit_rows: bool

    @property
    def n_rows(self) -> int:
        return self.chunk.n_rows

    def read(self) -> tuple[np.ndarray, Values]:
        X, values = self.chunk.read()
        scaled = ((X - self.mean) / self.scale).astype(X.dtype)
        if self.unit_rows:
            length = np.sqrt(np.einsum("pf,pf->p", scaled, scaled))
            scaled /= np.where(length > 0, length, 1)[:, None]
        return scaled, values

    def check(self) -> None:
        self.chunk.check()

    def place(self, row: int) -> str:
        return self.chunk.place(row)

    def feature(self, column: int) -> str:
        return self.chunk.feature(column)


def standardized(table: ChunkTable, *, unit_rows: bool = False) -> ChunkTable:
    """A table whose features have mean 0 and variance 1. Finding their scale takes two passes.

    The table must be one of arrays or files, not a Dask collection. `unit_rows` divides every scaled row by its
    length.
    """
    found = total_of(table.engine.run(_sums, table.chunks))
    if not found:
        return table
    n_rows, sums = found
    mean = sums / n_rows
    (squares,) = total_of(table.engine.run(_squares, table.chunks, mean))
    # A constant feature becomes 0.
    scale = np.where(squares > 0, np.sqrt(squares / n_rows), 1.0)
    return replace(table, chunks=[ScaledChunk(chunk, mean, scale, unit_rows) for chunk in table.chunks])


def _sums(chunk: Chunk) -> tuple[Any, ...]:
    X, _ = chunk.read()
    if not len(X):
        return ()
    ends_of(X, chunk)
    return len(X), X.sum(axis=0, dtype=np.float64)


def _squares(chunk: Chunk, mean: np.ndarray) -> tuple[np.ndarray]:
    X, _ = chunk.read()
    return (((X - mean) ** 2).sum(axis=0),)
