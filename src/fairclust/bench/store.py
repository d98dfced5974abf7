"""The store of finished cells: what a killed, widened or repeated run finds again.

Snakemake does not own these files. A finished cell becomes a file of its own at once, written under another
name and renamed; when a block ends, its files are packed into one compressed file. Reading takes both, so a
kill at any moment loses only the cell in flight.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

Entry = tuple[dict[str, Any], np.ndarray | None]
Rows = dict[str, tuple[str, bytes | None, str | None]]


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when complete.

    Parameters
    ----------
    path : Path

    Yields
    ------
    binary file
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_table(path: Path) -> Any:
    """A table of the results, written as Parquet.

    Raises
    ------
    ValueError
        The file is damaged.
    """
    try:
        return pq.read_table(io.BytesIO(path.read_bytes())).to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise ValueError(
            f"{path} is damaged ({error}). Fix: delete it and run again; finished cells are kept"
        ) from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _smallest_integers(labels: np.ndarray) -> np.ndarray:
    return labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


class CellStore:
    """Records, with or without labels, by key, in one folder.

    Parameters
    ----------
    folder : Path
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        # By path: when it was read (modification time and size; other jobs may write it), and its rows.
        self._packs: dict[Path, tuple[tuple[int, int], Rows]] = {}

    def put(self, key: str, record: dict[str, Any], labels: np.ndarray | None = None) -> None:
        """Write one cell, atomically."""
        arrays = {"record": np.frombuffer(json.dumps(record).encode(), np.uint8)}
        if labels is not None:
            arrays["labels"] = _smallest_integers(labels)
        buffer = io.BytesIO()
        np.savez_compressed(buffer, allow_pickle=False, **arrays)
        with atomic_write(self.folder / f"{key}.npz") as file:
            file.write(buffer.getvalue())

    def get(self, key: str) -> Entry | None:
        """The cell's record and labels; None if it is not there or not readable."""
        loose = self.folder / f"{key}.npz"
        if loose.is_file():
            entry = self._read_loose(loose)
            if entry is not None:
                return entry
        found = [pack[key] for pack in self._read_packs() if key in pack]
        if not found:
            return None
        # A cell that was tried again may stand in several packs.
        entries = [(json.loads(text), data, dtype) for text, data, dtype in found]
        record, data, dtype = max(entries, key=lambda entry: entry[0].get("finished") or 0)
        return record, None if data is None else np.frombuffer(data, dtype)

    def list_keys(self) -> list[str]:
        """The keys of all cells."""
        loose = [file.stem for file in self.folder.glob("*.npz")]
        return list(dict.fromkeys([*loose, *(key for pack in self._read_packs() for key in pack)]))

    def compact(self, keys: Iterable[str], name: str = "pack") -> None:
        """Move single files into the pack `name`; other packs, and files of other jobs, are left alone.

        The pack is complete before a single file goes, so that a kill in between leaves a cell twice.

        Parameters
        ----------
        keys : iterable of str
            Cells to move; those without a file of their own are passed over.
        name : str
        """
        loose = [file for file in (self.folder / f"{key}.npz" for key in keys) if file.is_file()]
        if not loose:
            return
        path = self.folder / f"{name}.parquet"
        rows = dict(self._read_pack(path) or {}) if path.is_file() else {}
        for file in loose:
            entry = self._read_loose(file)
            if entry is not None:
                record, labels = entry
                data, dtype = (None, None) if labels is None else (labels.tobytes(), labels.dtype.str)
                rows[file.stem] = (json.dumps(record), data, dtype)
        table = pa.table(
            {
                "key": pa.array(list(rows), pa.string()),
                "record": pa.array([r[0] for r in rows.values()], pa.string()),
                "labels": pa.array([r[1] for r in rows.values()], pa.large_binary()),
                "dtype": pa.array([r[2] for r in rows.values()], pa.string()),
            }
        )
        with atomic_write(path) as sink:
            pq.write_table(table, sink, compression="zstd")
        for file in loose:
            file.unlink(missing_ok=True)

    def _read_loose(self, file: Path) -> Entry | None:
        try:
            with np.load(file, allow_pickle=False) as data:
                record = json.loads(data["record"].tobytes())
                return record, data["labels"] if "labels" in data.files else None
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            self._set_aside(file, error)
            return None

    def _read_packs(self) -> Iterable[Rows]:
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            version = (status.st_mtime_ns, status.st_size)
            known = self._packs.get(path)
            if known is None or known[0] != version:
                rows = self._read_pack(path)
                if rows is None:
                    continue
                known = self._packs[path] = (version, rows)
            yield known[1]

    def _read_pack(self, path: Path) -> Rows | None:
        try:
            # Not by path: pyarrow would memory-map, and a rename under a map is nobody's friend.
            columns = pq.read_table(io.BytesIO(path.read_bytes())).to_pydict()
            return dict(
                zip(
                    columns["key"],
                    zip(columns["record"], columns["labels"], columns["dtype"], strict=True),
                    strict=True,
                )
            )
        except (OSError, KeyError, pa.ArrowException) as error:
            self._set_aside(path, error)
            return None

    @staticmethod
    def _set_aside(file: Path, error: Exception) -> None:
        aside = file.with_name(file.name + ".corrupt")
        try:
            file.replace(aside)
        except FileNotFoundError:
            return  # Another job has packed or moved it meanwhile.
        warnings.warn(
            f"{file} cannot be read ({error}); it is kept as {aside.name} and its cells are computed again",
            stacklevel=3,
        )
