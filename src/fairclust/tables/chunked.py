"""Parquet files that do not fit in memory, prepared as tables in memory are.

A sample of the rows decides the preparation, and every pass prepares the rows that it reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.chunks import ChunkError, ChunkTable
from fairclust.chunks.engines import Engine
from fairclust.chunks.passes import group_codes, total_of
from fairclust.chunks.sources import CHUNK_ROWS, Chunk, ParquetChunk, read_metadata, row_groups, slices_of
from fairclust.group_encoding import Values, factored
from fairclust.kernels.assignment import cluster_moments
from fairclust.metrics.centers import squared_distances_to_centers
from fairclust.metrics.counts import contingency
from fairclust.tables.preparation import Decision, Preparation, cross, encoded_names
from fairclust.tables.reading import check_same_columns, clean, column_names, table_files
from fairclust.tables.text import TableError

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
    values: frozenset[str]  # columns of groups or categories, see `clean`
    n_rows: int  # those that get a label, or all if there is no preparation yet
    preparation: Preparation | None = None

    def frame(self, columns: Iterable[str] | None = None) -> pd.DataFrame:
        """Some columns, or all, as they are written; the index counts the rows of all files from 0."""
        asked = self.names if columns is None else list(dict.fromkeys(columns))
        written = dict(zip(self.names, self.rows.features, strict=True))
        frame = self.rows.table([written[name] for name in asked]).to_pandas(ignore_metadata=True)
        return frame.set_axis(asked, axis=1).set_axis(range(self.begin, self.begin + len(frame)))

    def usable(
        self, preparation: Preparation, columns: Iterable[str] = ()
    ) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
        """These columns and those that decide whether a row gets a label; the groups; and the reasons against one."""
        frame = self.frame([*preparation.needed, *columns])
        clean(frame, values=self.values, ids=preparation.ids)
        groups = preparation.groups(frame)
        return frame, groups, preparation.reasons(frame, groups)

    def read(self) -> tuple[np.ndarray, Values]:
        preparation = self.preparation
        assert preparation is not None  # `prepare_chunks`
        frame, groups, reasons = self.usable(preparation, preparation.features)
        keep = reasons == ""
        if not keep.any():
            return np.empty((0, len(encoded_names(preparation.columns)))), Values(np.empty(0, str))
        return preparation.transform(frame[keep]), factored(cross(groups[keep]).to_numpy())

    def place(self, row: int) -> str:
        return f"row {row} of those with a group from {self.rows.place(0)} on"

    def feature(self, column: int) -> str:
        return f"feature {encoded_names(self.preparation.columns)[column]!r}"  # type: ignore[union-attr]


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
        preparation = self.decision.preparation
        for chunk in self.table.chunks:
            frame, _, reasons = chunk.usable(preparation, preparation.ids)  # type: ignore[attr-defined]
            yield frame[preparation.ids], reasons

    def scored(self, labels: Any, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
        """The group-by-cluster table, and for each group the sum of squared distances to the cluster means.

        The rows of the table are those of `groups`. This takes two passes.
        """
        names, chunks, engine = np.array(list(self.groups.index)), self.table.chunks, self.table.engine

        def parts() -> Iterator[tuple[np.ndarray]]:
            return ((np.asarray(labels[rows]),) for rows in slices_of(chunks))

        counts, sums = total_of(engine.run(_counts_and_sums, chunks, names, n_clusters, each=parts()))
        means = sums / np.maximum(counts.sum(axis=0), 1)[:, None]
        (costs,) = total_of(engine.run(_costs, chunks, names, means, each=parts()))
        return counts, costs


def prepare_chunks(
    path: str | Path,
    decided: Callable[[pd.DataFrame], Decision],
    engine: Engine,
    *,
    values: Collection[str] = (),
    seed: int = 0,
) -> ChunkedTable:
    """Decide the preparation on a sample of the rows, then count the rows that it keeps, in two passes.

    `decided` gets the sample as a data frame, and `values` are as in `clean`. TableError or ChunkError if a file
    cannot be read, its columns differ from those of the first file, or a column cannot be used as asked.
    """
    chunks = _chunks(path, frozenset(values))
    n_rows = sum(chunk.n_rows for chunk in chunks)
    share = min(1.0, DECIDING_ROWS / max(1, n_rows))
    seeds = (([seed, number],) for number in range(len(chunks)))
    sample = pd.concat(engine.run(_drawn, chunks, share, each=seeds))
    if sample.empty:
        raise TableError(f"{path} has columns and no rows")
    spellings = clean(sample, values=values)
    sample.attrs["decimal"] = "."
    decision = decided(sample)
    preparation = decision.preparation
    _check_types(chunks, {*preparation.sensitive, *preparation.features})
    kept, combinations, sizes, reasons = [], [], Counter[str](), Counter[str]()
    for crossed, group_sizes, left_out in engine.run(_counted, chunks, preparation):
        kept.append(sum(group_sizes.values()))
        combinations.append(crossed)
        sizes.update(group_sizes)
        reasons.update(left_out)
    prepared: list[Any] = [
        replace(chunk, preparation=preparation, n_rows=n) for chunk, n in zip(chunks, kept, strict=True)
    ]
    drawn = (
        f"roles of columns, usual values and scales are those of {len(sample):,} rows drawn from {n_rows:,}"
    )
    notes = [drawn, *spellings] if share < 1 else spellings
    groups = pd.concat(combinations)
    return ChunkedTable(
        ChunkTable(prepared, engine),
        decision,
        groups[~groups.index.duplicated()].sort_index(),
        sizes,
        reasons,
        notes,
    )


def _chunks(path: str | Path, values: frozenset[str]) -> list[TableChunk]:
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
            chunks.append(TableChunk(rows, begin, names, values, rows.n_rows))
            begin += rows.n_rows
    if not chunks:
        raise ChunkError(f"the files at {path} have no rows")
    return chunks


def _check_types(chunks: list[TableChunk], columns: set[str]) -> None:
    """TableError if a column of another file has another type than in the first one."""
    first: dict[str, Any] = {}
    for file in dict.fromkeys(chunk.rows.file for chunk in chunks):
        schema = read_metadata(Path(file)).schema.to_arrow_schema()
        types = dict(zip(map(str.strip, schema.names), schema.types, strict=True))
        for name in columns & {*types}:
            if types[name] != first.setdefault(name, types[name]):
                raise TableError(
                    f"{file}: column {name!r} is of type {types[name]}, but in {chunks[0].rows.file} it is of "
                    f"type {first[name]}"
                )


def _drawn(chunk: TableChunk, seed: list[int], share: float) -> pd.DataFrame:
    """A random sample of the rows, in their order."""
    frame = chunk.frame()
    n_rows = int(np.ceil(share * len(frame)))
    rows = np.random.default_rng(seed).choice(len(frame), n_rows, replace=False, shuffle=False)
    return frame.iloc[np.sort(rows)]


def _counted(
    chunk: TableChunk, preparation: Preparation
) -> tuple[pd.DataFrame, dict[str, int], dict[str, int]]:
    """The combinations of groups in a chunk, the numbers of their rows, and those of rows without a label."""
    _, groups, reasons = chunk.usable(preparation)
    keep = reasons == ""
    crossed = cross(groups[keep]) if keep.any() else pd.Series(dtype=object)
    combinations = groups[keep].set_axis(crossed, axis=0)
    return (
        combinations[~combinations.index.duplicated()],
        crossed.value_counts().to_dict(),
        reasons[~keep].value_counts().to_dict(),
    )


def _counts_and_sums(chunk: Chunk, labels: np.ndarray, names: np.ndarray, n_clusters: int) -> tuple[Any, ...]:
    X, values = chunk.read()
    if not len(X):
        return ()
    labels = labels.astype(np.int32)
    counts = contingency(labels, group_codes(values, names, chunk).astype(np.int32), n_clusters, len(names))
    return counts, cluster_moments(np.array(X), labels, n_clusters)[1]


def _costs(chunk: Chunk, labels: np.ndarray, names: np.ndarray, means: np.ndarray) -> tuple[np.ndarray]:
    X, values = chunk.read()
    costs = squared_distances_to_centers(X, labels, means)
    return (np.bincount(group_codes(values, names, chunk), costs, len(names)),)
