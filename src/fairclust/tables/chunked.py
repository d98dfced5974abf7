"""Parquet files that do not fit in memory: a sample of the rows decides their preparation, which every pass applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairclust.chunks import ChunkError, ChunkTable
from fairclust.chunks.engines import Engine
from fairclust.chunks.passes import group_codes, total_of
from fairclust.chunks.sources import CHUNK_ROWS, Chunk, ParquetChunk, read_metadata, row_groups, slices_of
from fairclust.group_encoding import Values, factored
from fairclust.tables.preparation import Decision, Preparation, cross, encoded_names
from fairclust.tables.reading import TableError, check_same_columns, clean, column_names, table_files

# The preparation is decided on about so many rows.
DECIDING_ROWS = 1 << 18
# Pandas writes an index without a name as a column whose name begins like this.
_INDEX = "__index_level_"


@dataclass(frozen=True)
class TableChunk:
    """Rows of a Parquet file. Those that get a label are prepared, as soon as the preparation is known."""

    rows: ParquetChunk
    begin: int  # the number of rows of all files before this chunk
    names: tuple[str, ...]  # of the columns, in one spelling
    n_rows: int  # those that get a label, or all if there is no preparation yet
    preparation: Preparation = field(default_factory=lambda: Preparation([], []))

    def frame(self, columns: Iterable[str]) -> pd.DataFrame:
        """Some columns; the index counts the rows of all files from 0."""
        asked, written = list(dict.fromkeys(columns)), dict(zip(self.names, self.rows.features, strict=True))
        frame = self.rows.table([written[name] for name in asked]).to_pandas(ignore_metadata=True)
        return frame.set_axis(asked, axis=1).set_axis(range(self.begin, self.begin + len(frame)))

    def usable(self, columns: Iterable[str] = ()) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
        """These columns and those that decide whether a row gets a label; the groups; and the reasons against one."""
        frame = self.frame([*self.preparation.needed, *columns])
        clean(frame, ids=self.preparation.ids)
        groups = self.preparation.groups(frame)
        return frame, groups, self.preparation.reasons(frame, groups)

    def read(self) -> tuple[np.ndarray, Values]:
        preparation = self.preparation
        frame, groups, reasons = self.usable(preparation.features)
        keep = reasons == ""
        if not keep.any():
            return np.empty((0, len(encoded_names(preparation.columns)))), Values(np.empty(0, str))
        return preparation.transform(frame[keep]), factored(cross(groups[keep]).to_numpy())

    def place(self, row: int) -> str:
        return f"row {row} of those with a group from {self.rows.place(0)} on"

    def feature(self, column: int) -> str:
        return f"feature {encoded_names(self.preparation.columns)[column]!r}"


class ChunkedTable(NamedTuple):
    """Files of rows, prepared."""

    table: ChunkTable
    decision: Decision
    groups: pd.DataFrame  # the combinations of groups that occur, as text; the index has their names
    sizes: dict[str, int]  # the number of rows of each combination
    reasons: dict[str, int]  # the numbers of rows without a label, by the reason
    notes: list[str]

    def parts(self) -> Iterator[tuple[pd.DataFrame, pd.Series]]:
        """Chunk by chunk, the identifiers of all rows, and the reasons why rows get no label."""
        ids = self.decision.preparation.ids
        for chunk in self.table.chunks:
            frame, _, reasons = chunk.usable(ids)  # type: ignore[attr-defined]
            yield frame[ids], reasons

    def scored(self, labels: Any, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """The group-by-cluster table, and for each group the sum of squared distances to the cluster means.

        The rows of the table are those of `groups`.
        """
        names, chunks = np.array(list(self.groups.index)), self.table.chunks
        parts = ((np.asarray(labels[rows]),) for rows in slices_of(chunks))
        moments = self.table.engine.run(_moments, chunks, names, n_clusters, each=parts)
        counts, squares, sums = total_of(moments)
        means = sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1)[:, None]
        costs = squares - 2 * (sums * means).sum(axis=2) + counts * (means**2).sum(axis=1)
        return counts, costs.sum(axis=1)


def prepare_chunks(
    path: str | Path, decided: Callable[[pd.DataFrame], Decision], engine: Engine, *, seed: int = 0
) -> ChunkedTable:
    """Decide the preparation on a sample of the rows, then count the rows that it keeps, in two passes.

    `decided` gets the sample as a data frame. TableError or ChunkError if a file cannot be read, its columns differ
    from those of the first file, or a column cannot be used as asked.
    """
    chunks = _chunks(path)
    n_rows = sum(chunk.n_rows for chunk in chunks)
    share = min(1.0, DECIDING_ROWS / max(1, n_rows))
    seeds = (([seed, number],) for number in range(len(chunks)))
    sample = pd.concat(engine.run(_drawn, chunks, share, each=seeds))
    if sample.empty:
        raise TableError(f"{path} has columns and no rows")
    notes = clean(sample)
    if share < 1:
        notes.insert(
            0,
            f"roles of columns, usual values and scales are those of {len(sample):,} rows drawn from {n_rows:,}",
        )
    sample.attrs["decimal"] = "."
    decision = decided(sample)
    chunks = [replace(chunk, preparation=decision.preparation) for chunk in chunks]
    prepared: list[Chunk] = []
    combinations, sizes, reasons = [], Counter[str](), Counter[str]()
    for chunk, (crossed, of_groups, left_out) in zip(chunks, engine.run(_counted, chunks), strict=True):
        prepared.append(replace(chunk, n_rows=sum(of_groups.values())))
        combinations.append(crossed)
        sizes.update(of_groups)
        reasons.update(left_out)
    groups = pd.concat(combinations)
    groups = groups[~groups.index.duplicated()].sort_index()
    return ChunkedTable(ChunkTable(prepared, engine), decision, groups, sizes, reasons, notes)


def _chunks(path: str | Path) -> list[TableChunk]:
    chunks: list[TableChunk] = []
    begin = 0
    for file in table_files(path):
        metadata = read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        written = tuple(name for name in schema.names if not name.startswith(_INDEX))
        names = tuple(column_names(written, file))
        if chunks:
            check_same_columns(names, file, chunks[0].names, Path(chunks[0].rows.file))
        for rows in row_groups(file, metadata, written, "", CHUNK_ROWS):
            chunks.append(TableChunk(rows, begin, names, rows.n_rows))
            begin += rows.n_rows
    if not chunks:
        raise ChunkError(f"the files at {path} have no rows")
    return chunks


def _drawn(chunk: TableChunk, seed: list[int], share: float) -> pd.DataFrame:
    """A random sample of the rows, in their order."""
    frame = chunk.frame(chunk.names)
    n_rows = int(np.ceil(share * len(frame)))
    rows = np.random.default_rng(seed).choice(len(frame), n_rows, replace=False, shuffle=False)
    return frame.iloc[np.sort(rows)]


def _counted(chunk: TableChunk) -> tuple[pd.DataFrame, dict[str, int], dict[str, int]]:
    """The combinations of groups in a chunk, the numbers of their rows, and those of rows without a label."""
    _, groups, reasons = chunk.usable()
    keep = reasons == ""
    crossed = cross(groups[keep]) if keep.any() else pd.Series(dtype=object)
    combinations = groups[keep].set_axis(crossed, axis=0)
    return (
        combinations[~combinations.index.duplicated()],
        crossed.value_counts().to_dict(),
        reasons[~keep].value_counts().to_dict(),
    )


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
