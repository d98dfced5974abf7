"""Labels of many rows as an array, a .npy file or a Dask array, in the smallest integer type that holds them."""

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
from fairclust.outputs import atomic_write


def check_space(table: ChunkTable, n_clusters: int) -> None:
    """Raise ChunkError before the fit if the disk has too little free space for the labels."""
    if table.labels is not None:
        needed = table.n_rows * label_type(n_clusters).itemsize
        free = shutil.disk_usage(table.labels.absolute().parent).free
        if free < needed:
            raise ChunkError(
                f"{table.labels} would take {needed:,} bytes, and its disk has {free:,} bytes left: "
                "free some space or name a file on another disk"
            )


def label_type(n_clusters: int) -> np.dtype:
    """The smallest unsigned integer type that holds the labels."""
    return np.min_scalar_type(n_clusters - 1)


def computed(labels: LazyLabels, points: ChunkedPoints, table: ChunkTable) -> Any:
    """The labels of all rows in the form that `open_chunks` was asked for: array, memory-mapped file or Dask array."""
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
    """Write labels to a .npy file and map it. The file gets its name only when it is complete.

    ChunkError if the disk is full or the file cannot be written. No part of the file is left then.
    """
    try:
        with atomic_write(path) as file:
            header = {"descr": dtype.str, "fortran_order": False, "shape": (n_rows,)}
            np.lib.format.write_array_header_1_0(file, header)
            file.flush()
            _reserve(file, n_rows * dtype.itemsize)
            for part in parts:
                file.write(part.data)
    except OSError as error:
        raise ChunkError(
            f"{n_rows * dtype.itemsize:,} bytes of labels cannot be written to {path}: {error.strerror or error}. "
            "Free some space or name another file, and fit again. A fit with a checkpoint resumes from its last "
            "outer step"
        ) from error
    return np.load(path, mmap_mode="r")


def _reserve(file: BinaryIO, n_bytes: int) -> None:
    """Reserve space for the labels, so that a full disk raises its error before the pass."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(file.fileno(), file.tell(), n_bytes)
    except OSError as error:
        # Some file systems cannot reserve space. The labels are then written without a reservation.
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
