"""Files of cells: every record and every labelling with a digest of its own, so that damage is never read.

A fit job appends each finished cell to a working file, so that a kill loses the cell in flight and no other. When
all cells are there, the file is written anew under its final name, with a last entry that lists the cells that the
configuration asks for: the output of the Snakemake job. Layout::

    "fairclust cells 1\\n", then entries:
    kind (4 bytes: CELL or DONE), length of the record and of the labels (two little-endian 64-bit integers),
    digest of these twenty bytes with the record (16 bytes), digest of the labels (16 bytes),
    record (JSON, zlib), labels (type, then the integers, zlib; nothing where a cell has none)
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairclust.temporary import temporary_beside

KEEP_COPY = "FAIRCLUST_KEEP_COPY"
"""Set by the main process of a run on a cluster: fit jobs keep a second name of their output until it ends."""

_HEADER = b"fairclust cells 1\n"
_KINDS = (b"CELL", b"DONE")
_FRONT = struct.Struct("<4sQQ")
_DIGEST = 16


class DamagedFile(ValueError):
    """A file of the results does not verify; the message names it and what to do."""


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
    temporary = temporary_beside(path)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _digest(*parts: bytes) -> bytes:
    found = hashlib.blake2b(digest_size=_DIGEST)
    for part in parts:
        found.update(part)
    return found.digest()


@dataclass(frozen=True)
class Entry:
    """A cell in a file: its record, and where its labels lie."""

    record: dict[str, Any]
    path: Path
    offset: int
    length: int
    digest: bytes

    def labels(self) -> np.ndarray | None:
        """The labels, shape (n_samples,); None where the cell has none.

        Raises
        ------
        DamagedFile
            They do not verify.
        """
        if not self.length:
            return None
        packed = b""
        with suppress(FileNotFoundError), self.path.open("rb") as file:
            file.seek(self.offset)
            packed = file.read(self.length)
        if _digest(packed) != self.digest:
            raise DamagedFile(
                f"{self.path} is damaged: the labels of cell {self.record.get('key')} do not verify"
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

    Every job has a file of its own: on a cluster, a job of a run that was killed may still be going.

    Parameters
    ----------
    output : Path
        The output of the job, beside which the file lies.
    """

    def __init__(self, output: Path) -> None:
        output.parent.mkdir(parents=True, exist_ok=True)
        # By name, they are in the order in which they were begun.
        self.path = output.with_name(f".{output.name}.{time.time_ns()}.working")
        self._file = self.path.open("xb")
        self._file.write(_HEADER)

    def add(self, record: dict[str, Any], labels: np.ndarray | None) -> None:
        """Append a cell; it is with the operating system when this returns."""
        self._file.write(_entry_bytes(b"CELL", record, _pack_labels(labels)))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _walk(path: Path) -> Iterator[tuple[bytes, Entry, int]]:
    """Kind, entry and end of every entry that verifies, up to the first that does not."""
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
    """Every cell of a file whose record verifies, by key; of a key that stands there twice, the later one.

    Parameters
    ----------
    path : Path
        A working file, an output, or one of them that is damaged; nothing if it is not there.
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
        First the cells that the configuration asks for, in its order, then cells to keep. Labels may be those
        of an entry elsewhere, which are copied as they are.
    asked : int
        How many of the cells the configuration asks for.
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
        The file does not verify. It is set aside first, so that the next run makes it anew and takes from it
        what is intact.
    """
    aside = path.with_name(f"{path.name}.damaged")
    if path.is_file() or not aside.is_file():  # else another job has found the damage before
        with suppress(DamagedFile):
            return verified_pack(path)
        set_aside(path)
    raise DamagedFile(
        f"{path} is damaged and now lies in {aside}. Fix: run the same command again; cells that are intact are kept"
    )


def verified_pack(path: Path) -> list[Entry]:
    """The same, but a file that does not verify stays where it is."""
    entries = list(_walk(path))
    if entries and entries[-1][0] == b"DONE" and entries[-1][2] == path.stat().st_size:
        last = entries[-1][1].record
        if last["cells"] == len(entries) - 1:
            return [entry for _, entry, _ in entries[: last["asked"]]]
    raise DamagedFile(f"{path} is damaged")


def count_errors(path: Path) -> int:
    """How many of the cells asked for have ended with an error; 0 if the file is not there or not complete."""
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
    """Where cells of a block may lie that are not in its output: set aside, and in working files."""
    working = sorted(path.parent.glob(f".{path.name}.*.working"))
    return [path.with_name(f"{path.name}.earlier"), path.with_name(f"{path.name}.damaged"), *working]


def set_aside(path: Path, why: str = "damaged") -> Path:
    """Rename a damaged or earlier file so that it is no output any more; a job still takes cells from it."""
    aside = path.with_name(f"{path.name}.{why}")
    with suppress(FileNotFoundError):  # another job has done so meanwhile
        path.replace(aside)
    return aside


def remove_copies(results: Path) -> None:
    """Remove the second names that fit jobs on a cluster gave their outputs."""
    for copy in results.glob("fits/*/*/*.cells.earlier"):
        output = copy.with_name(copy.name.removesuffix(".earlier"))
        with suppress(OSError):
            if output.samefile(copy):
                copy.unlink()
