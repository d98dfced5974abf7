"""The store of cells, one file for each, and the outputs of fit jobs.

The name of a cell's file is its key, a hash of everything on which the fit depends. So every job, run and
configuration that asks for the same fit finds it. A cell is written as soon as it is finished, so that a kill loses
only the cell that is being fitted. Files are written completely or not at all, and record and labels have digests, so
that damaged data is never used. Layout::

    "fairclust cell 2\\n", length of the record (little-endian 64-bit integer), digest of the record (16 bytes),
    digest of the labels (16 bytes), record (JSON, zlib), labels (type, then the integers, zlib; nothing without labels)

The output of a fit job holds the records of the cells that the configuration asks for, in its order: a line of JSON
with their number, the number of errors and a digest, then the records as a JSON list (zlib).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairclust.messages import UserError
from fairclust.outputs import atomic_write

_HEADER = b"fairclust cell 2\n"
_LENGTH = struct.Struct("<Q")
_DIGEST = 16


class DamagedFile(UserError):
    """A file of the results does not match its digests; the message names the file."""


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def cell_path(results: Path, key: str) -> Path:
    """The file of the cell with this key."""
    return results / "cells" / key[:2] / f"{key}.cell"


def store_of(output: Path) -> Path:
    """The folder of results to which the output of a fit job belongs."""
    return output.parents[2]


def write_cell(path: Path, record: dict[str, Any], labels: np.ndarray | None) -> None:
    """Write a cell. When this returns, the cell survives a kill of this process."""
    packed = zlib.compress(json.dumps(record).encode(), 6)
    content = b""
    if labels is not None:
        small = labels.astype(np.min_scalar_type(int(labels.max(initial=0))))
        content = zlib.compress(small.dtype.str.encode() + b"\n" + small.tobytes(), 6)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        for part in (_HEADER, _LENGTH.pack(len(packed)), _digest(packed), _digest(content), packed, content):
            file.write(part)


def _read_front(file: BinaryIO) -> tuple[bytes, bytes] | None:
    """The packed record and the digest of the labels; None if the record is damaged."""
    if file.read(len(_HEADER)) != _HEADER:
        return None
    front = file.read(_LENGTH.size + 2 * _DIGEST)
    if len(front) < _LENGTH.size + 2 * _DIGEST:
        return None
    own, of_labels = front[_LENGTH.size : -_DIGEST], front[-_DIGEST:]
    # A damaged length may be huge.
    packed = file.read(min(_LENGTH.unpack(front[: _LENGTH.size])[0], os.fstat(file.fileno()).st_size))
    return (packed, of_labels) if _digest(packed) == own else None


def read_record(path: Path) -> dict[str, Any] | None:
    """The record of a cell; None if the file does not exist or its record is damaged. Labels are not read."""
    with suppress(OSError), path.open("rb") as file:
        found = _read_front(file)
        if found is not None:
            return json.loads(zlib.decompress(found[0]))
    return None


def read_labels(path: Path) -> np.ndarray | None:
    """The labels of a cell, shape (n_samples,); None if it has none. DamagedFile if the file is damaged or missing."""
    found, content = None, b""
    with suppress(OSError), path.open("rb") as file:
        found = _read_front(file)
        content = file.read()
    if found is None or _digest(content) != found[1]:
        why = "is damaged: the cell does not match its digests" if path.exists() else "is missing"
        raise DamagedFile(f"{path} {why}")
    if not content:
        return None
    text, _, raw = zlib.decompress(content).partition(b"\n")
    return np.frombuffer(raw, np.dtype(text.decode()))


def write_output(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Write the output of a fit job: the records of the cells that the configuration asks for, in its order."""
    content = zlib.compress(json.dumps(records).encode(), 6)
    errors = sum(record["status"] == "error" for record in records)
    head = {"cells": len(records), "errors": errors, "digest": _digest(content).hex()}
    with atomic_write(path) as file:
        file.write(json.dumps(head).encode() + b"\n" + content)


def read_output(path: Path) -> list[dict[str, Any]]:
    """The records in the output of a fit job; DamagedFile if it is damaged. The next run then writes it again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        line, _, content = path.read_bytes().partition(b"\n")
        if _digest(content).hex() == json.loads(line)["digest"]:
            return json.loads(zlib.decompress(content))
    raise DamagedFile(
        f"{path} is damaged. Fix: run the same command again, which writes the file anew; finished fits are kept"
    )


def count_errors(path: Path) -> int:
    """The number of cells with the status 'error' in the output of a fit job; 0 if there is no such file."""
    # Only the first line is read: Snakemake asks this of every job when it starts.
    with suppress(OSError, ValueError, KeyError, TypeError), path.open("rb") as file:
        return int(json.loads(file.readline(1000))["errors"])
    return 0
