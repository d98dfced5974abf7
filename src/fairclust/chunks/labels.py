"""Labels of many rows: an array of the smallest integers, a file of them, or a Dask array."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from fairclust.chunks.points import ChunkedPoints, LazyLabels
from fairclust.chunks.sources import ChunkError
from fairclust.chunks.table import ChunkTable
from fairclust.temporary import temporary_beside


def check_outputs(table: ChunkTable, n_clusters: int) -> None:
    """Find out before the fit what cannot be written after it.

    Raises
    ------
    ChunkError
        There is no such folder, or its disk has no room for the labels.
    """
    for path in (table.labels, table.checkpoint):
        if path is not None and not path.absolute().parent.is_dir():
            raise ChunkError(f"there is no folder {path.absolute().parent} to write {path.name} into")
    if table.labels is not None:
        needed = table.n_rows * label_type(n_clusters).itemsize
        free = shutil.disk_usage(table.labels.absolute().parent).free
        if free < needed:
            raise ChunkError(
                f"{table.labels} would take {needed:,} bytes, and its disk has {free:,} bytes left"
            )


def label_type(n_clusters: int) -> np.dtype:
    """The smallest integers that hold the labels."""
    return np.min_scalar_type(n_clusters - 1)


def computed(labels: LazyLabels, points: ChunkedPoints, table: ChunkTable) -> Any:
    """The labels of all rows, in the form that the table asks for.

    Returns
    -------
    ndarray, memmap or dask.array.Array of shape (n_samples,)
    """
    dtype = label_type(points.n_clusters)
    if table.labels is not None:
        return write_labels(points.written(labels), points.n_samples, dtype, table.labels)
    if table.is_collection:
        from fairclust.chunks.cluster import held_labels

        return held_labels(labels, points.chunks, points.engine, dtype)  # type: ignore[arg-type]
    out = np.empty(points.n_samples, dtype)
    first = 0
    for part in points.written(labels):
        out[first : first + len(part)] = part
        first += len(part)
    return out


def write_labels(parts: Iterable[np.ndarray], n_rows: int, dtype: np.dtype, path: Path) -> np.ndarray:
    """Write a .npy file, which gets its name once it is complete, and map it.

    Raises
    ------
    ChunkError
        The disk is full, or the file cannot be written: nothing is left of it.
    """
    temporary = temporary_beside(path)
    try:
        with temporary.open("wb") as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": (n_rows,)}
            np.lib.format.write_array_header_1_0(file, header)
            file.flush()
            _reserve(file, n_rows * dtype.itemsize)
            for part in parts:
                file.write(part.data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ChunkError(
            f"{n_rows * dtype.itemsize:,} bytes of labels cannot be written to {path}: {error.strerror or error}. "
            "Free some room or name another file, and fit again; a fit with a checkpoint goes on where it was"
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    return np.load(path, mmap_mode="r")


def _reserve(file: BinaryIO, n_bytes: int) -> None:
    """Take the room that is going to be written, so that a full disk says so before the pass, not after it."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), file.tell(), n_bytes)
    except OSError as error:
        # Some file systems cannot reserve room.
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
