"""Files of cells. Every record and every labelling has its own digest, so that damaged data is never used.

A fit job appends each finished cell to a working file, so that a kill loses only the cell that is being fitted.
When all cells are finished, they are written to a new file, the output of the Snakemake job: first the cells that
the configuration asks for, then other cells to keep. Its last entry holds the counts of cells. Layout::

    "fairclust cells 1\\n", then entries:
    kind (4 bytes: CELL or DONE), length of the record and of the labels (two little-endian 64-bit integers),
    digest of these twenty bytes with the record (16 bytes), digest of the labels (16 bytes),
    record (JSON, zlib), labels (type, then the integers, zlib; nothing if the cell has no labels)
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.outputs import atomic_write

KEEP_COPY = "FAIRCLUST_KEEP_COPY"
"""Environment variable that the main process of a run on a cluster sets: until the run ends, every fit job keeps a
second hard link to its output."""

_HEADER = b"fairclust cells 1\n"
_KINDS = (b"CELL", b"DONE")
_FRONT = struct.Struct("<4sQQ")
_DIGEST = 16


class DamagedFile(ValueError):
    """A file of the results does not match its digests; the message names the file."""


def _digest(*parts: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


@dataclass(frozen=True)
class Entry:
    """A cell in a file: its record, and the place of its labels."""

    record: dict[str, Any]
    path: Path
    offset: int
    length: int
    digest: bytes

    def labels(self) -> np.ndarray | None:
        """The labels, shape (n_samples,); None if the cell has none.

        Raises
        ------
        DamagedFile
            The labels do not match their digest.
        """
        if not self.length:
            return None
        packed = b""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self.offset)
            packed = file.read(self.length)
        if _digest(packed) != self.digest:
            raise DamagedFile(
                f"{self.path} is damaged: the labels of cell {self.record.get('key')} do not match their digest"
            )
        text, _, raw = zlib.decompress(packed).partition(b"\n")
        return np.frombuffer(raw, np.dtype(text.decode()))


def _pack_labels(labels: np.ndarray | None) -> bytes:
    if labels is None:
        return b""
    small = labels.astype(np.min_scalar_type(int(labels.max(initial=0))))
    return zlib.compress(small.dtype.str.encode() + b"\n" + small.tobytes(), 6)


def _entry_bytes(kind: bytes, record: dict[str, Any], labels: bytes) -> bytes:
    packed = zlib.compress(json.dumps(record).encode(), 6)
    front = _FRONT.pack(kind, len(packed), len(labels))
    return b"".join([front, _digest(front, packed), _digest(labels), packed, labels])


class WorkingFile:
    """The file to which one job appends its cells.

    Every job has its own file, because on a cluster a job of a killed run may still be running.

    Parameters
    ----------
    output : Path
        The output of the job. The working file is in the same folder.
    """

    def __init__(self, output: Path) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        # The time in the name lets `files_beside` sort the working files by their start.
        self.path = output.with_name(f".{output.name}.{time.time_ns()}.working")
        self._file = self.path.open("xb")
        self._file.write(_HEADER)

    def add(self, record: dict[str, Any], labels: np.ndarray | None) -> None:
        """Append a cell. When this returns, the cell survives a kill of this process."""
        self._file.write(_entry_bytes(b"CELL", record, _pack_labels(labels)))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _walk(path: Path) -> Iterator[tuple[bytes, Entry, int]]:
    """Kind, entry and end of every intact entry, up to the first that does not match its digest."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if file.read(len(_HEADER)) != _HEADER:
            return
        at = len(_HEADER)
        while True:
            front = file.read(_FRONT.size)
            if len(front) < _FRONT.size:
                return
            kind, n_record, n_labels = _FRONT.unpack(front)
            begin = at + _FRONT.size + 2 * _DIGEST
            if kind not in _KINDS or begin + n_record + n_labels > size:
                return
            own, of_labels = file.read(_DIGEST), file.read(_DIGEST)
            packed = file.read(n_record)
            if _digest(front, packed) != own:
                return
            at = begin + n_record + n_labels
            file.seek(at)
            record = json.loads(zlib.decompress(packed))
            yield kind, Entry(record, path, begin + n_record, n_labels, of_labels), at


def salvage(path: Path) -> dict[str, Entry]:
    """The cells of a file up to the first damaged record, by key. If a key occurs twice, the later cell counts.

    Parameters
    ----------
    path : Path
        A working file or an output, which may be damaged. If it does not exist, there are no cells.
    """
    with suppress(OSError):
        return {entry.record["key"]: entry for kind, entry, _ in _walk(path) if kind == b"CELL"}
    return {}


def write_pack(
    path: Path, cells: Iterable[tuple[dict[str, Any], Entry | np.ndarray | None]], asked: int
) -> None:
    """Write the output of a fit job, atomically.

    Parameters
    ----------
    path : Path
    cells : iterable of (record, labels)
        First the cells that the configuration asks for, in its order, then cells to keep. Labels can be an entry
        of another file, from which they are copied.
    asked : int
        Number of cells that the configuration asks for.
    """
    with atomic_write(path) as file:
        file.write(_HEADER)
        count = errors = 0
        for record, labels in cells:
            packed = _pack_labels(labels.labels() if isinstance(labels, Entry) else labels)
            errors += count < asked and record["status"] == "error"
            file.write(_entry_bytes(b"CELL", record, packed))
            count += 1
        file.write(_entry_bytes(b"DONE", {"asked": asked, "cells": count, "errors": errors}, b""))


def read_pack(path: Path) -> list[Entry]:
    """The cells that the configuration asks for, in its order; labels are not read.

    Parameters
    ----------
    path : Path
        The output of a fit job.

    Returns
    -------
    list of Entry

    Raises
    ------
    DamagedFile
        The file is damaged. It is renamed first, so that the next run writes the file again and takes the intact
        cells from the renamed one.
    """
    aside = path.with_name(f"{path.name}.damaged")
    if path.is_file() or not aside.is_file():  # otherwise another job has renamed it
        with suppress(DamagedFile):
            return verified_pack(path)
        set_aside(path)
    raise DamagedFile(
        f"{path} is damaged and now lies in {aside}. Fix: run the same command again; cells that are intact are kept"
    )


def verified_pack(path: Path) -> list[Entry]:
    """Like `read_pack`, but a damaged file is not renamed."""
    entries = list(_walk(path))
    if entries and entries[-1][0] == b"DONE" and entries[-1][2] == path.stat().st_size:
        last = entries[-1][1].record
        if last["cells"] == len(entries) - 1:
            return [entry for _, entry, _ in entries[: last["asked"]]]
    raise DamagedFile(f"{path} is damaged")


def count_errors(path: Path) -> int:
    """The number of requested cells with the status 'error'; 0 if the file does not exist or is not complete."""
    # Only the last entry is read: Snakemake asks this of every block when it starts.
    with suppress(OSError), path.open("rb") as file:
        at, size = len(_HEADER), os.fstat(file.fileno()).st_size
        while at + _FRONT.size <= size:
            file.seek(at)
            kind, n_record, n_labels = _FRONT.unpack(file.read(_FRONT.size))
            begin = at + _FRONT.size + 2 * _DIGEST
            at = begin + n_record + n_labels
            if kind == b"DONE" and at == size:
                file.seek(begin - 2 * _DIGEST)
                own, _, packed = file.read(_DIGEST), file.read(_DIGEST), file.read(n_record)
                if _digest(_FRONT.pack(kind, n_record, n_labels), packed) == own:
                    return int(json.loads(zlib.decompress(packed))["errors"])
    return 0


def files_beside(path: Path) -> list[Path]:
    """Further files that may hold cells of a block: outputs that were set aside, and working files."""
    working = sorted(path.parent.glob(f".{path.name}.*.working"))
    return [path.with_name(f"{path.name}.earlier"), path.with_name(f"{path.name}.damaged"), *working]


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Rename a damaged or earlier output, so that its job runs again; the job takes intact cells from it."""
    aside = path.with_name(f"{path.name}.{why}")
    with suppress(FileNotFoundError):  # another job has renamed it in the meantime
        path.replace(aside)
    return aside


def remove_copies(results: Path) -> None:
    """Remove the second hard links to outputs that fit jobs on a cluster made, see `KEEP_COPY`."""
    for copy in results.glob("fits/*/*/*.cells.earlier"):
        output = copy.with_name(copy.name.removesuffix(".earlier"))
        with suppress(OSError):
            if output.samefile(copy):
                copy.unlink()
