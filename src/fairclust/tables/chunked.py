"""Parquet files that do not fit in memory: a sample of the rows decides their preparation, which every pass applies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from fairclust.chunks.passes import Engine
from fairclust.chunks.sources import CHUNK_ROWS, Chunk, ParquetChunk, is_index, read_metadata, row_groups
from fairclust.tables.preparation import Decision, Preparation, cross, encoded_names
from fairclust.tables.reading import TableError, check_same_columns, clean, column_names, table_files

# The preparation is decided on about so many rows.
DECIDING_ROWS = 1 << 18


@dataclass(frozen=True)
class TableChunk(Chunk):
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
        clean(frame, ids={*self.preparation.ids} - {*self.preparation.sensitive})
        groups = self.preparation.groups(frame)
        return frame, groups, self.preparation.reasons(frame, groups)

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        frame, groups, reasons = self.usable(self.preparation.features)
        keep = reasons == ""
        return self.preparation.transform(frame[keep]), cross(groups[keep]).to_numpy()

    def place(self, row: int) -> str:
        return f"row {row} of those with a group from {self.rows.place(0)} on"

    def feature(self, column: int) -> str:
        return f"feature {encoded_names(self.preparation.columns)[column]!r}"


class Counted(NamedTuple):
    """The rows of a chunk by what becomes of them."""

    groups: pd.DataFrame  # the combinations of groups that occur, as text; the index has their names
    sizes: Counter[str]  # the number of rows of each combination
    reasons: Counter[str]  # the numbers of rows without a label, by the reason


def prepare_chunks(
    path: str | Path, decided: Callable[[pd.DataFrame], Decision], engine: Engine, seed: int
) -> tuple[list[TableChunk], Decision, Counted, list[str]]:
    """The chunks, prepared; how a sample of the rows decides their preparation; the counts of all rows; and notes.

    `decided` gets the sample as a data frame. TableError or ChunkError if a file cannot be read, its columns differ
    from those of the first file, or a column cannot be used as asked.
    """
    chunks = _chunks(path)
    n_rows = sum(chunk.n_rows for chunk in chunks)
    if not n_rows:
        raise TableError(f"the files at {path} have no rows")
    share = min(1.0, DECIDING_ROWS / n_rows)
    seeds = ([seed, i] for i in range(len(chunks)))
    sample = pd.concat(engine.run(_drawn, chunks, seeds, repeat(share)))
    notes = clean(sample)
    if share < 1:
        drawn = f"{len(sample):,} rows drawn from {n_rows:,}"
        notes.insert(0, f"roles of columns, usual values and scales are those of {drawn}")
    sample.attrs["decimal"] = "."
    decision = decided(sample)
    preparation = replace(decision.preparation, strict=False)
    chunks = [replace(chunk, preparation=preparation) for chunk in chunks]
    counted = [*engine.run(_counted, chunks)]
    prepared = [
        replace(chunk, n_rows=sum(of.sizes.values())) for chunk, of in zip(chunks, counted, strict=True)
    ]
    groups = pd.concat(of.groups for of in counted)
    total = Counted(
        groups[~groups.index.duplicated()].sort_index(),
        sum((of.sizes for of in counted), Counter[str]()),
        sum((of.reasons for of in counted), Counter[str]()),
    )
    return prepared, decision, total, notes


def _chunks(path: str | Path) -> list[TableChunk]:
    chunks: list[TableChunk] = []
    begin = 0
    for file in table_files(path):
        metadata = read_metadata(file)
        schema = metadata.schema.to_arrow_schema()
        written = tuple(name for name in schema.names if not is_index(name))
        names = tuple(column_names(written, file))
        if chunks:
            check_same_columns(names, file, chunks[0].names, Path(chunks[0].rows.name))
        for rows in row_groups(file, metadata, written, "", CHUNK_ROWS):
            chunks.append(TableChunk(rows, begin, names, rows.n_rows))
            begin += rows.n_rows
    return chunks


def _drawn(chunk: TableChunk, seed: list[int], share: float) -> pd.DataFrame:
    """A random sample of the rows, in their order."""
    frame = chunk.frame(chunk.names)
    n_rows = int(np.ceil(share * len(frame)))
    rows = np.random.default_rng(seed).choice(len(frame), n_rows, replace=False, shuffle=False)
    return frame.iloc[np.sort(rows)]


def _counted(chunk: TableChunk) -> Counted:
    _, groups, reasons = chunk.usable()
    keep = reasons == ""
    crossed = cross(groups[keep])
    combinations = groups[keep].set_axis(crossed, axis=0)
    return Counted(combinations[~combinations.index.duplicated()], Counter(crossed), Counter(reasons[~keep]))
