"""Chunks of rows from arrays, .npy files and Parquet files.

A chunk of a file does not hold its rows. It describes where they are, so that any process can read them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from fairclust.base import with_nan
from fairclust.group_encoding import Values, as_array, check_same_order
from fairclust.messages import UserError, count

CHUNK_ROWS = 1 << 20
# The columns that pandas and Dask write for an index without a name.
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__")
# Threads that parse headers at the same time can fail before Python 3.11.8 (python/cpython#106905).
_PARSING = Lock()


class ChunkError(UserError):
    """Rows, files or workers that a fit in chunks cannot use. The message names them and says what is wrong."""


def on_one_line(error: Exception) -> str:
    """The message of an error of another package, to be followed by a full stop."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


class Chunk(ABC):
    """A block of consecutive rows that is read into memory as a whole."""

    name: str  # of the rows in messages, such as that of their file
    first: int  # the number of rows before this chunk
    n_rows: int

    @abstractmethod
    def read(self) -> tuple[np.ndarray, np.ndarray | Values]:
        """Features, shape (n_rows, n_features), float32 or float64, and the sensitive column."""

    def place(self, row: int) -> str:
        """The name of a row of the chunk in messages."""
        return f"{self.name}, row {self.first + row}"

    def feature(self, column: int) -> str:
        """The name of a feature in messages."""
        return f"feature {column}"


@dataclass(frozen=True)
class ArrayChunk(Chunk):
    """Rows of a matrix and of its sensitive column, each an array of these rows or the .npy file of all rows."""

    X: str | np.ndarray
    values: str | np.ndarray
    first: int
    n_rows: int
    name: str

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        return as_float(self._rows_of(self.X)), self._rows_of(self.values).reshape(-1)

    def _rows_of(self, source: str | np.ndarray) -> np.ndarray:
        if isinstance(source, np.ndarray):
            return source
        # The file is mapped again for each chunk, because the pages of a lasting map count as memory of the process.
        return np.asarray(_opened(source)[self.first : self.first + self.n_rows])


def as_float(X: np.ndarray) -> np.ndarray:
    """Convert numbers to float32 or float64. Other types become float32 if they have at most 16 bits, else float64."""
    if X.dtype in (np.float32, np.float64):
        return X
    return X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64)


def array_chunks(X: Any, values: Any, chunk_rows: int) -> list[Chunk]:
    """Chunks of a matrix and its sensitive column, each an array or the path of a .npy file.

    If the column is None, all rows are of one group. ChunkError if a file cannot be read, or a shape or type does not
    fit. ValueError for what `fit` refuses as well: dates, or two indexes in different orders.
    """
    check_same_order(X, values)
    matrix = _opened(X, with_nan)
    column = np.broadcast_to(np.uint8(0), matrix.shape[:1]) if values is None else _opened(values, as_array)
    name, column_name = (
        str(getattr(array, "filename", None) or word)
        for array, word in ((matrix, "X"), (column, "sensitive_features"))
    )
    if matrix.ndim != 2 or not matrix.shape[1] or matrix.dtype.kind not in "fiub":
        raise ChunkError(
            f"{name} must be a matrix of numbers, found shape {matrix.shape} of {matrix.dtype}: pass one row for each "
            "sample and one column for each feature"
        )
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    n_rows = len(matrix)
    if column.shape != (n_rows,):
        raise ChunkError(
            f"{column_name} has shape {column.shape}, {name} has {count(n_rows, 'row')}: pass the group of every row"
        )
    chunks: list[Chunk] = []
    for first in range(0, n_rows, chunk_rows):
        rows = slice(first, min(first + chunk_rows, n_rows))
        sources = [
            str(given) if isinstance(given, str | Path) else np.asarray(array[rows])
            for given, array in ((X, matrix), (values, column))
        ]
        chunks.append(ArrayChunk(sources[0], sources[1], first, rows.stop - first, name))
    return chunks


def _opened(array: Any, read: Callable[[Any], Any] = np.asanyarray) -> np.ndarray:
    """The array as the function reads it, or mapped if it is the path of a .npy file."""
    if not isinstance(array, str | Path):
        return np.asanyarray(read(array))
    try:
        with _PARSING:
            return open_memmap(array, mode="r")
    except (OSError, ValueError, TypeError, ArithmeticError, EOFError, SyntaxError, TokenError) as error:
        raise ChunkError(
            f"{array} cannot be mapped as an array: {on_one_line(error)}. Pass an existing .npy file of numbers or, "
            "for groups, of numbers or text"
        ) from None


@dataclass(frozen=True)
class ParquetChunk(Chunk):
    """Row groups of a Parquet file. `first` is the number of rows of the file before this chunk."""

    name: str
    groups: tuple[int, ...]
    features: tuple[str, ...]
    sensitive: str
    first: int
    n_rows: int

    def table(self, columns: Sequence[str]) -> Any:
        """Columns as a `pyarrow.Table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.name) as file:
                # Several chunks are read at the same time already, so further threads would slow them down.
                table = file.read_row_groups(list(self.groups), list(columns), use_threads=False)
            return table.unify_dictionaries()
        except (OSError, pa.ArrowException) as error:
            raise ChunkError(
                f"{self.place(0)} and after cannot be read: {on_one_line(error)}. Write the file again"
            ) from None

    def read(self) -> tuple[np.ndarray, Values]:
        import pyarrow as pa

        table = self.table(list(dict.fromkeys([*self.features, self.sensitive])))
        columns = (table.column(name) for name in self.features)
        # A missing number becomes NaN, which the survey reports with its row.
        numbers = [
            (column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column).to_numpy()
            for column in columns
        ]
        values = table.column(self.sensitive).combine_chunks()
        missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if missing.any():
            raise ChunkError(
                f"{self.place(int(missing.argmax()))}: column {self.sensitive!r} is missing: leave out such rows"
            )
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        names = np.asarray(values.dictionary.to_pylist())
        return as_float(np.column_stack(numbers)), Values(values.indices.to_numpy(), names)

    def feature(self, column: int) -> str:
        return f"column {self.features[column]!r}"


def slices_of(chunks: Sequence[Chunk]) -> Iterator[slice]:
    """The rows of every chunk, numbered over all chunks."""
    first = 0
    for chunk in chunks:
        yield slice(first, first + chunk.n_rows)
        first += chunk.n_rows


def is_index(column: object) -> bool:
    """Whether a column of a file is an index without a name, which counts the rows."""
    return _INDEX.fullmatch(str(column)) is not None


def parquet_files(pattern: str | Path) -> list[Path]:
    """The Parquet files of a path, sorted.

    The path is a file, a folder, or a pattern such as ``big/*.parquet``, which may match folders of files.
    """
    path = Path(pattern)
    if path.is_file():
        return [path]
    # A relative pattern has no anchor, and then this is the current folder.
    folder = Path(path.anchor)
    found = path.rglob("*.parquet") if path.is_dir() else folder.glob(str(path.relative_to(folder)))
    # Dask and Spark write folders whose names end as those of the files in them.
    files = {file for of in found for file in (of, *of.rglob("*.parquet"))}
    if not (names := sorted(of for of in files if of.suffix != ".parquet" or not of.is_dir())):
        raise ChunkError(
            f"there is no Parquet file at {pattern}: pass a file, a folder or a pattern that matches files"
        )
    return names


def parquet_chunks(
    pattern: str | Path, sensitive: str, features: Sequence[str] | None, chunk_rows: int
) -> tuple[list[Chunk], tuple[str, ...]]:
    """The chunks of `row_groups` of all files, and the names of the features.

    ChunkError if a file is missing, cannot be read or lacks a column of the first, or if a feature is not a number.
    """
    chunks: list[Chunk] = []
    names: tuple[str, ...] = tuple(features or ())
    for path in parquet_files(pattern):
        metadata = read_metadata(path)
        schema = metadata.schema.to_arrow_schema()
        names = names or tuple(name for name in schema.names if name != sensitive and not is_index(name))
        _check_columns(path, schema, names, sensitive)
        chunks += row_groups(path, metadata, names, sensitive, chunk_rows)
    return chunks, names


def _check_columns(path: Path, schema: Any, names: tuple[str, ...], sensitive: str) -> None:
    """ChunkError if a column that is read is missing, or of a type that cannot be used."""
    from pyarrow import types as are

    if not names:
        raise ChunkError(f"{path} has only the column {sensitive!r}: add columns of numbers to cluster by")
    for name in (sensitive, *names):
        if schema.names.count(name) != 1:
            how_many = "two columns" if name in schema.names else "no column"
            raise ChunkError(f"{path} has {how_many} {name!r}; it has {', '.join(schema.names)}")
        column_type = schema.field(name).type
        is_number = are.is_floating(column_type) or are.is_integer(column_type) or are.is_boolean(column_type)
        if are.is_nested(column_type) or not (is_number or name == sensitive):
            raise ChunkError(
                f"{path}: column {name!r} is of type {column_type}, which is not a type of "
                f"{'groups' if name == sensitive else 'numbers'}: pass the columns to cluster by as features, and one "
                "column with the group of every row"
            )


def read_metadata(path: Path) -> Any:
    """The metadata of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise ChunkError(
            f"{path} cannot be read as Parquet: {on_one_line(error)}. Write the file again, or name another one"
        ) from None


def row_groups(
    path: Path, metadata: Any, names: tuple[str, ...], sensitive: str, chunk_rows: int
) -> list[ParquetChunk]:
    """Chunks of whole row groups of a file. A chunk has at most `chunk_rows` rows, unless a row group has more."""
    n_groups = metadata.num_row_groups
    ends = np.cumsum([0, *(metadata.row_group(g).num_rows for g in range(n_groups))]).tolist()
    chunks: list[ParquetChunk] = []
    first = 0
    while first < n_groups:
        last = max(first + 1, bisect_right(ends, ends[first] + chunk_rows) - 1)
        groups, n_rows = tuple(range(first, last)), ends[last] - ends[first]
        chunks.append(ParquetChunk(str(path), groups, names, sensitive, ends[first], n_rows))
        first = last
    return chunks
