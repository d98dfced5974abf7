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
    """Return the SHA-256 of a file, and read a file that has not changed only once per process.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    str
        64 hex digits.

    Raises
    ------
    OSError
        The file cannot be read.

    Notes
    -----
    A file is unchanged if its inode, size, `mtime_ns` and `ctime_ns` are. No program can set the
    `ctime`, so `cp -p` or `touch` do not hide a replaced file.
    """
    with Path(path).open("rb") as file:
        stat = os.fstat(file.fileno())
        key = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
        if key in _known:
            return _known[key]
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    if time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED_NS:
        _known[key] = digest.hexdigest()
    return digest.hexdigest()
