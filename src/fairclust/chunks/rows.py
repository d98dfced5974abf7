"""The rows of a fit. Those in chunks are fitted on a random sample that grows, and from its result on all rows.

A checkpoint is a file with the last outer step, from which a fit that was stopped is resumed. The labels of many rows
are an array, a .npy file or a Dask array, in the smallest integer type that holds them.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.passes import label_type
from fairclust.chunks.points import ChunkedPoints, LazyLabels
from fairclust.chunks.sources import ChunkError, on_one_line, slices_of
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable
from fairclust.outputs import atomic_write
from fairclust.solvers.alternation import Alternation, Prototypes, Run, Step, alternate

# All starts run on the first _FIRST_ROWS rows of the sample. The best one continues on _MORE_ROWS times as many rows,
# and so on up to the whole sample. Steps on few rows are cheap, and after them few steps on many rows are needed.
_FIRST_ROWS, _MORE_ROWS = 1 << 18, 4
_LOG = logging.getLogger("fairclust.chunks")


@dataclass
class Rows:
    """The points of a fit."""

    points: Any
    begun: Run | None = None  # a run that was stopped, which the fit continues

    def alternate(self, kind: Alternation, prototypes: Prototypes, *, max_iter: int, verbose: int) -> Run:
        """See `fairclust.solvers.alternation.alternate`."""
        return alternate(
            kind,
            self.points,
            prototypes,
            max_iter=max_iter,
            verbose=verbose,
            begun=self.begun,
            keep=self.keep,
        )

    def keep(self, run: Run) -> None:
        """Store the run after each of its steps; rows in memory do not."""


class ChunkedRows(Rows):
    """Rows in chunks, after the survey. A fit starts on `samples` of them, given by their numbers of rows.

    `dtype` is that of the distances, unless the rows need double precision (`is_far`). `fit` holds the parameters of
    the fit. If it was stopped and has a checkpoint, `begun` is the run read from this.
    """

    points: ChunkedPoints

    def __init__(
        self,
        table: ChunkTable,
        n_clusters: int,
        seed: int,
        *,
        dtype: DTypeLike,
        takes_lists: bool,
        fit: Mapping[str, Any],
    ) -> None:
        if table.labels is not None:
            needed = table.n_rows * label_type(n_clusters).itemsize
            free = shutil.disk_usage(table.labels.absolute().parent).free
            if free < needed:
                raise ChunkError(
                    f"{table.labels} would take {needed:,} bytes, and its disk has {free:,} bytes left: "
                    "free some space or name a file on another disk"
                )
        known = survey(table.chunks, table.engine, sample_rows=table.sample_rows, seed=seed)
        n_sampled = len(known.X)
        _LOG.info(
            "%s rows, %d groups, %s rows sampled", f"{known.n_rows:,}", len(known.names), f"{n_sampled:,}"
        )
        self.is_far = known.needs_double(n_clusters)
        if self.is_far:
            dtype = np.float64
            known = known._replace(X=known.X.astype(dtype))
        rows = [known.sizes.tolist(), known.low.tolist(), known.high.tolist(), known.total]
        self.has_groups = table.has_groups
        self._table, self._checkpoint = table, Checkpoint(table.checkpoint, {**fit, "rows": rows})
        self.known, self.samples = known, stages(known)
        self._dtype = np.dtype(dtype)
        self.points = ChunkedPoints(
            table.chunks, table.engine, known, n_clusters, dtype=dtype, takes_lists=takes_lists
        )
        self.begun = self._checkpoint.load(self.points)

    def keep(self, run: Run) -> None:
        """Write the checkpoint, and log the step."""
        self._checkpoint.save(run)
        step, objective, seconds = (run.history[-1][name] for name in ("step", "objective", "seconds"))
        _LOG.info("step %d: objective %.9g, %.0f s", step, objective, seconds)

    def sample(self, n_rows: int) -> Any:
        """The first rows of the sample, packed."""
        known, whole = self.known, self.points.sample
        if n_rows == len(known.codes):
            return whole
        X, codes = known.X[:n_rows], known.codes[:n_rows]
        shape = whole.n_groups, whole.n_clusters
        return type(whole).pack(X, codes, *shape, shift=whole.shift, dtype=self._dtype)

    def labels(self, found: Any) -> Any:
        """The labels of all rows as an array, a memory-mapped file or a Dask array. The fit ends with them."""
        points, table = self.points, self._table
        dtype = label_type(points.n_clusters)
        if table.labels is not None:
            labels: Any = write_labels(points.written(found), points.n_samples, dtype, table.labels)
        elif table.is_collection:
            from fairclust.chunks.cluster import held_labels

            labels = held_labels(found, points.chunks, points.engine, dtype)  # type: ignore[arg-type]
        else:
            labels = np.empty(points.n_samples, dtype)
            for rows, part in zip(slices_of(points.chunks), points.written(found), strict=True):
                labels[rows] = part
        self._checkpoint.remove()
        return labels


def stages(known: Survey) -> list[int]:
    """The numbers of rows of the sample to fit on, one after the other. The last one is all of them."""
    n_rows, whole = _FIRST_ROWS, len(known.codes)
    if len(np.unique(known.codes[:n_rows])) < len(known.names):
        return [whole]
    found = []
    while 2 * n_rows <= whole:
        found.append(n_rows)
        n_rows *= _MORE_ROWS
    return [*found, whole]


class Checkpoint:
    """A file with the centres, prices and history of the last outer step. Without a path nothing is written.

    Every outer step replaces the file. `about` holds parameters of the fit and sums over its rows. `load` refuses a
    checkpoint for which these differ.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self.path = path
        # A version of this package that stores other fields must not read the file.
        known = json.dumps(
            [about, Run._fields, Step._fields, Prototypes._fields], sort_keys=True, default=str
        )
        self._digest = hashlib.sha256(known.encode()).hexdigest()

    def save(self, run: Run) -> None:
        """Write the outer steps so far to the file."""
        if self.path is None:
            return
        labels, more = run.last.labels, dict(run.last.more)
        content: dict[str, Any] = (
            run._asdict() | run.last._asdict() | run.prototypes._asdict() | {"more": more}
        )
        content |= {"precise": labels.by.precise, "sizes": labels.sizes, "sums": labels.sums}
        content["digest"] = self._digest
        for name in ("last", "labels", "prototypes"):
            del content[name]
        arrays: dict[str, Any] = {
            name: value for name, value in content.items() if isinstance(value, np.ndarray)
        }
        text = {name: value for name, value in content.items() if name not in arrays}
        # NumPy does not close its archive if the disk is full, so the archive is written as a whole.
        packed = io.BytesIO()
        np.savez(packed, text=np.array(json.dumps(text)), **arrays)
        with atomic_write(self.path) as file:
            file.write(packed.getbuffer())

    def load(self, points: ChunkedPoints) -> Run | None:
        """Read the outer steps from the file; None if there is no file.

        ChunkError if the file is not a checkpoint, or if it is the checkpoint of another fit.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened) as file:
                content = {name: file[name] for name in file.files}
            content |= json.loads(str(content["text"]))
            digest = content["digest"]
        except Exception as error:  # a damaged archive can raise almost any error
            raise ChunkError(
                f"{self.path} is no checkpoint, or is damaged ({on_one_line(error)}): remove it to start the fit "
                "again, or name another file"
            ) from None
        if digest != self._digest:
            raise ChunkError(
                f"{self.path} is the checkpoint of another fit, with other parameters or rows: remove it, or name "
                "another file"
            )
        points.measure(content["centers"])
        by = points.map_of(content["scale"], content["offset"], precise=content["precise"])
        content["labels"] = LazyLabels(by, points.n_samples, content["sizes"], content["sums"])
        for name, kind in ("last", Step), ("prototypes", Prototypes):
            content[name] = kind(**{field: content[field] for field in kind._fields})
        return Run(**{field: content[field] for field in Run._fields})

    def remove(self) -> None:
        """Delete the file. A fit calls this when it has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


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
