"""Digests of files: whether a file has changed is decided by its content, not by its time stamp."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

# A file that changes twice within the resolution of its time stamps would look unchanged.
SETTLED_NS = 2 * 10**9

_known: dict[tuple[int, ...], str] = {}


def content_digest(path: str | Path) -> str:
    """The SHA-256 of a file, as 64 hex digits. A file that has not changed is read only once per process.

    It has not changed if its inode, size, `mtime_ns` and `ctime_ns` are the same. No program can set the `ctime`, so
    `cp -p` or `touch` do not hide a replaced file.
    """
    with Path(path).open("rb") as file:
        stat = os.fstat(file.fileno())
        key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if key in _known:
            return _known[key]
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED_NS:
        _known[key] = digest
    return digest


def is_damaged(path: Path, digest: str) -> bool:
    """Whether a file is missing or its content does not match the digest."""
    return not path.is_file() or content_digest(path) != digest
