"""Chunks of rows from arrays and Parquet files.

A chunk of a file does not hold its rows. It describes where they are, so that any process can read them.
"""

from __future__ import annotations

import mmap
import platform
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from fairclust.group_encoding import Values
from fairclust.messages import UserError, count

CHUNK_ROWS = 1 << 20
# File systems round the time of a change to a tick of the clock, which is at most this long on local disks.
_TICK_SECONDS = 0.02


class ChunkError(UserError):
    """Rows, files or workers that a fit in chunks cannot use. The message names them and says what is wrong."""


def on_one_line(error: Exception) -> str:
    """The message of an error of another package, to be followed by a full stop."""
    # NumPy adds the advice to unpickle a file that it does not know, which is no advice for a damaged file.
    told = str(error).partition(" If you trust")[0]
    return " ".join(told.split()).rstrip(".") or type(error).__name__


class Chunk(Protocol):
    """A block of consecutive rows that is read into memory as a whole."""

    @property
    def n_rows(self) -> int: ...

    def read(self) -> tuple[np.ndarray, Values]:
        """Features, shape (n_rows, n_features), float32 or float64, and the sensitive column."""

    def check(self) -> None:
        """Raise a ChunkError if the chunk is in a file that has changed since it was opened."""

    def place(self, row: int) -> str:
        """The name of a row of the chunk in messages."""

    def feature(self, column: int) -> str:
        """The name of a feature in messages."""


class FileState(NamedTuple):
    """A file as it was when the rows were opened."""

    path: str
    machine: str
    device: int
    inode: int
    size: int
    changed: int

    @classmethod
    def of(cls, path: str | Path) -> FileState:
        """The present state. Every change after this call gives another state."""
        if 0 <= time.time() - Path(path).stat().st_mtime < _TICK_SECONDS:
            # Another change within the same tick of the clock would have the same time.
            time.sleep(_TICK_SECONDS)
        return cls._now(path)

    @classmethod
    def _now(cls, path: str | Path) -> FileState:
        found = Path(path).stat()
        place = platform.node(), found.st_dev, found.st_ino
        return cls(str(path), *place, found.st_size, found.st_mtime_ns)

    def check(self) -> None:
        """Raise a ChunkError if the file has been changed or replaced."""
        try:
            now = FileState._now(self.path)
        except OSError as error:
            raise ChunkError(f"{self.path} cannot be read any more: {error.strerror or error}") from None
        # Another machine may mount the same folder as another device, and number its files differently.
        if now == self or (now.machine != self.machine and now[4:] == self[4:]):
            return
        raise ChunkError(
            f"{self.path} has changed since the rows were opened: open them again, and do not change files during a fit"
        )


@dataclass(frozen=True)
class MappedArray:
    """A contiguous array in a file."""

    file: FileState
    offset: int
    dtype: str
    shape: tuple[int, ...]

    @classmethod
    def of(cls, array: np.ndarray) -> MappedArray | None:
        """The place in the file of a mapped array; None if the file does not have these entries one after the other."""
        root: Any = array
        while isinstance(root, np.ndarray) and not isinstance(root.base, mmap.mmap):
            root = root.base
        if not isinstance(root, np.memmap) or root.filename is None or not array.flags.c_contiguous:
            return None
        address = root.__array_interface__["data"][0]
        if root.mode == "c" or not Path(root.filename).exists():
            return None
        file = FileState.of(root.filename)
        if _mapped_inode(address) not in (file.inode, None):
            return None
        # `root.offset` is the offset of the whole mapped array in the file, even if `array` is a part of it.
        behind = array.__array_interface__["data"][0] - address
        return cls(file, root.offset + behind, array.dtype.str, array.shape)

    def rows(self, first: int, last: int) -> np.ndarray:
        """Rows of the array. A process maps the file once, as long as the file does not change."""
        self.file.check()
        array = _mapped(self)
        # Pages that have been read count as memory of the process, and Dask pauses workers that use too much memory.
        # This gives up the pages of earlier chunks, which stay in the page cache and are mapped again where needed. Not
        # all systems can do it, nor processes with locked memory.
        with suppress(AttributeError, OSError):
            cast(mmap.mmap, array.base).madvise(mmap.MADV_DONTNEED)
        return np.asarray(array[first:last])


@lru_cache(maxsize=16)
def _mapped(place: MappedArray) -> np.ndarray:
    return np.memmap(place.file.path, place.dtype, "r", place.offset, place.shape)


def _mapped_inode(address: int) -> int | None:
    """The inode of the file that is mapped at an address; None where /proc does not tell.

    The file that a mapped array names may have been replaced since it was mapped.
    """
    with suppress(OSError), Path("/proc/self/maps").open() as lines:
        for line in lines:
            bounds, _, _, _, inode = line.split(maxsplit=5)[:5]
            low, high = (int(bound, 16) for bound in bounds.split("-"))
            if low <= address < high:
                return int(inode)
    return None


@dataclass(frozen=True)
class ArrayChunk:
    """The rows ``first`` to ``last - 1`` of two arrays. `name` is the array's name in messages.

    `X` and `values` are the whole arrays if these are mapped from a file; otherwise only the rows of the chunk.
    """

    X: MappedArray | np.ndarray
    values: MappedArray | np.ndarray
    first: int
    last: int
    name: str

    @property
    def n_rows(self) -> int:
        return self.last - self.first

    def read(self) -> tuple[np.ndarray, Values]:
        X, values = (
            one.rows(self.first, self.last) if isinstance(one, MappedArray) else one
            for one in (self.X, self.values)
        )
        return as_float(X), Values(values)

    def check(self) -> None:
        for one in (self.X, self.values):
            if isinstance(one, MappedArray):
                one.file.check()

    def place(self, row: int) -> str:
        return f"{self.name}, row {self.first + row}"

    def feature(self, column: int) -> str:
        return f"feature {column}"


def as_float(X: np.ndarray) -> np.ndarray:
    """Convert numbers to float32 or float64. Other types become float32 if they have at most 16 bits, else float64."""
    if X.dtype in (np.float32, np.float64):
        return X
    return X.astype(np.float32 if X.dtype.itemsize <= 2 else np.float64)


def array_chunks(X: Any, values: Any, chunk_rows: int) -> list[Chunk]:
    """Chunks of a matrix and its sensitive column. ChunkError if a shape or type does not fit.

    If the column is None, all rows are of one group.
    """
    if values is None:
        values = np.broadcast_to(np.uint8(0), np.shape(X)[:1])
    X, values = (one if isinstance(one, np.ndarray) else np.asarray(one) for one in (X, values))
    name, groups = (
        str(getattr(one, "filename", None) or word)
        for one, word in ((X, "X"), (values, "sensitive_features"))
    )
    if X.ndim != 2 or not X.shape[1] or X.dtype.kind not in "fiub":
        raise ChunkError(
            f"{name} must be a matrix of numbers, found shape {X.shape} of {X.dtype}: pass one row for each sample "
            "and one column for each feature"
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != X.shape[:1]:
        raise ChunkError(
            f"{groups} has shape {values.shape}, {name} has {count(len(X), 'row')}: pass the group of every row"
        )
    places = [MappedArray.of(one) for one in (X, values)]
    chunks: list[Chunk] = []
    for first in range(0, len(X), chunk_rows):
        last = min(first + chunk_rows, len(X))
        own = [
            np.asarray(one[first:last]) if place is None else place
            for one, place in zip((X, values), places, strict=True)
        ]
        chunks.append(ArrayChunk(own[0], own[1], first, last, name))
    return chunks


@dataclass(frozen=True)
class ParquetChunk:
    """Row groups of a Parquet file. `first` is the number of rows of the file before this chunk."""

    file: FileState
    groups: tuple[int, ...]
    features: tuple[str, ...]
    sensitive: str
    first: int
    n_rows: int

    def table(self, columns: Sequence[str]) -> Any:
        """Columns as a `pyarrow.Table`."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.file.check()
        try:
            with pq.ParquetFile(self.file.path) as file:
                # Several chunks are read at the same time already, so further threads would slow them down.
                table = file.read_row_groups(list(self.groups), list(columns), use_threads=False)
            return table.unify_dictionaries()
        except (OSError, pa.ArrowException) as error:
            self.file.check()
            raise ChunkError(
                f"{self.place(0)} and after cannot be read: {on_one_line(error)}. Write the file again"
            ) from None

    def read(self) -> tuple[np.ndarray, Values]:
        import pyarrow as pa

        table = self.table(list(dict.fromkeys([*self.features, self.sensitive])))
        kinds = [table.schema.field(name).type for name in self.features]
        # These types hold no number that float32 would round.
        small = (pa.float16(), pa.float32(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.bool_())
        is_small = all(kind in small for kind in kinds)
        X = np.empty((len(table), len(kinds)), np.float32 if is_small else np.float64)
        for f, (name, kind) in enumerate(zip(self.features, kinds, strict=True)):
            column = table.column(name)
            # A missing number becomes NaN, which the survey reports with its row.
            X[:, f] = (column.cast(pa.uint8()) if pa.types.is_boolean(kind) else column).to_numpy()
        values = (
            pa.concat_arrays(table.column(self.sensitive).chunks) if len(table) else pa.array([], pa.int8())
        )
        missing = values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        if missing.any():
            row = int(missing.argmax())
            raise ChunkError(
                f"{self.place(row)}: column {self.sensitive!r} is missing: leave out or fill in such rows"
            )
        if not pa.types.is_dictionary(values.type):
            values = values.dictionary_encode()
        return X, Values(values.indices.to_numpy(), np.asarray(values.dictionary.to_pylist()))

    def check(self) -> None:
        self.file.check()

    def place(self, row: int) -> str:
        return f"{self.file.path}, row {self.first + row}"

    def feature(self, column: int) -> str:
        return f"column {self.features[column]!r}"


def slices_of(chunks: Sequence[Chunk]) -> Iterator[slice]:
    """The rows of every chunk, numbered over all chunks."""
    first = 0
    for chunk in chunks:
        yield slice(first, first + chunk.n_rows)
        first += chunk.n_rows


def files_of(chunks: Sequence[Chunk]) -> set[str]:
    """The files from which the chunks are read."""
    found = set()
    for chunk in chunks:
        parts: tuple[Any, ...] = (chunk.X, chunk.values) if isinstance(chunk, ArrayChunk) else (chunk,)
        for part in parts:
            while isinstance(part, np.ndarray) and not isinstance(part, np.memmap):
                part = part.base
            state = getattr(part, "file", None)
            found.add(getattr(part, "filename", None) if state is None else state.path)
    return {str(name) for name in found if name is not None}


def parquet_files(pattern: str | Path) -> list[Path]:
    """The Parquet files of a path, sorted.

    The path is a file, a folder, or a pattern such as ``big/*.parquet``.
    """
    path = Path(pattern)
    if path.is_file():
        return [path]
    # A relative pattern has no anchor, and then this is the current folder.
    folder = Path(path.anchor)
    found = sorted(path.rglob("*.parquet") if path.is_dir() else folder.glob(str(path.relative_to(folder))))
    if not found:
        raise ChunkError(
            f"there is no Parquet file at {pattern}: pass a file, a folder or a pattern that matches files"
        )
    return found


def parquet_chunks(
    pattern: str | Path, sensitive: str, features: Sequence[str] | None, chunk_rows: int
) -> tuple[list[Chunk], tuple[str, ...]]:
    """Chunks of whole row groups, and the names of the features.

    A chunk has at most `chunk_rows` rows, unless a single row group has more. ChunkError if there is no file, a file
    cannot be read, a feature is not a number, or the columns of a file differ from those of the first in name or type.
    """
    import pyarrow as pa

    chunks: list[Chunk] = []
    names: tuple[str, ...] = tuple(features or ())
    first_file, first_types = None, {}
    for path in parquet_files(pattern):
        file, metadata = opened(path)
        schema = metadata.schema.to_arrow_schema()
        names = names or tuple(name for name in schema.names if name != sensitive)
        if not names:
            raise ChunkError(
                f"{path} has only the column {sensitive!r}: add columns of numbers to cluster by"
            )
        for name in (*names, sensitive):
            if schema.names.count(name) != 1:
                how = "two columns" if name in schema.names else "no column"
                raise ChunkError(f"{path} has {how} {name!r}; it has {', '.join(schema.names)}")
        types = {name: schema.field(name).type for name in (*names, sensitive)}
        if first_file is None:
            first_file, first_types, are = path, types, pa.types
            for name in names:
                kind = types[name]
                if not (are.is_floating(kind) or are.is_integer(kind) or are.is_boolean(kind)):
                    raise ChunkError(
                        f"{path}: column {name!r} is of type {kind}, which is not a type of numbers: "
                        "pass the columns to cluster by as features"
                    )
            if are.is_nested(types[sensitive]):
                raise ChunkError(
                    f"{path}: column {sensitive!r} is of type {types[sensitive]}, and a group must be one value: name "
                    "another column, or write one value for each row"
                )
        for name, kind in types.items():
            if kind != first_types[name]:
                raise ChunkError(
                    f"{path}: column {name!r} is of type {kind}, but in {first_file} it is of type {first_types[name]}"
                )
        more = [name for name in schema.names if name not in types]
        if features is None and more:
            raise ChunkError(
                f"{path} has the column {more[0]!r}, but {first_file} does not have it: "
                "pass the columns to cluster by as features"
            )
        chunks += row_groups(file, metadata, names, sensitive, chunk_rows)
    return chunks, names


def opened(path: Path) -> tuple[FileState, Any]:
    """The state of a Parquet file, and its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return FileState.of(path), pq.read_metadata(path)
    except (OSError, pa.ArrowException) as error:
        raise ChunkError(
            f"{path} cannot be read as Parquet: {on_one_line(error)}. Write the file again, or name another one"
        ) from None


def row_groups(
    file: FileState, metadata: Any, names: tuple[str, ...], sensitive: str, chunk_rows: int
) -> list[ParquetChunk]:
    """Chunks of whole row groups of a file. A chunk has at most `chunk_rows` rows, unless a row group has more."""
    chunks: list[ParquetChunk] = []
    groups: list[int] = []
    first = rows = 0
    for g in range(metadata.num_row_groups):
        own = metadata.row_group(g).num_rows
        if groups and rows + own > chunk_rows:
            chunks.append(ParquetChunk(file, tuple(groups), names, sensitive, first, rows))
            first, rows, groups = first + rows, 0, []
        groups.append(g)
        rows += own
    if groups:
        chunks.append(ParquetChunk(file, tuple(groups), names, sensitive, first, rows))
    return chunks
