"""Chunks whose rows are prepared when they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from fairclust.chunks.passes import total_of
from fairclust.chunks.sources import Chunk
from fairclust.chunks.survey import ends_of
from fairclust.chunks.table import ChunkTable
from fairclust.group_encoding import Values


@dataclass(frozen=True)
class PreparedChunk:
    """A chunk whose features a fitted pipeline prepares, as the one of a table in memory does."""

    chunk: Chunk
    preparation: Pipeline

    @property
    def n_rows(self) -> int:
        return self.chunk.n_rows

    def read(self) -> tuple[np.ndarray, Values]:
        X, values = self.chunk.read()
        if not len(X):
            return X, values
        # The survey has checked that all numbers are finite.
        with sklearn.config_context(assume_finite=True):
            return self.preparation.transform(X), values

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
    scaler = StandardScaler()
    scaler.mean_, scaler.n_features_in_ = sums / n_rows, len(sums)
    (squares,) = total_of(table.engine.run(_squares, table.chunks, scaler.mean_))
    # A constant feature becomes 0.
    scaler.scale_ = np.where(squares > 0, np.sqrt(squares / n_rows), 1.0)
    preparation = make_pipeline(scaler, *([Normalizer()] if unit_rows else []))
    return replace(table, chunks=[PreparedChunk(chunk, preparation) for chunk in table.chunks])


def _sums(chunk: Chunk) -> tuple[Any, ...]:
    X, _ = chunk.read()
    if not len(X):
        return ()
    ends_of(X, chunk)
    return len(X), X.sum(axis=0, dtype=np.float64)


def _squares(chunk: Chunk, mean: np.ndarray) -> tuple[np.ndarray]:
    X, _ = chunk.read()
    return (((X - mean) ** 2).sum(axis=0),)
