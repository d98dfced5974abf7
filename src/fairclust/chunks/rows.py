"""The rows of a fit in chunks, which starts on a random sample that grows, and goes on from its result on all rows."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.sources import ChunkError, slices_of
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable
from fairclust.outputs import atomic_write

# All starts run on the first _FIRST_ROWS rows of the sample. The best one continues on _MORE_ROWS times as many rows,
# and so on up to the whole sample. Steps on few rows are cheap, and after them few steps on many rows are needed.
_FIRST_ROWS, _MORE_ROWS = 1 << 18, 4
_LOG = logging.getLogger("fairclust.chunks")


class ChunkedRows:
    """Rows in chunks, after the survey. A fit starts on `samples` of them, given by their numbers of rows.

    `dtype` is that of the distances, unless the rows need double precision (`is_far`).
    """

    def __init__(
        self, table: ChunkTable, n_clusters: int, seed: int, *, dtype: DTypeLike, takes_lists: bool
    ) -> None:
        known = survey(table.chunks, table.engine, sample_rows=table.sample_rows, seed=seed)
        n_sampled = len(known.X)
        _LOG.info(
            "%s rows, %d groups, %s rows sampled", f"{known.n_rows:,}", len(known.names), f"{n_sampled:,}"
        )
        self.is_far = known.needs_double
        if self.is_far:
            dtype = np.float64
            known = known._replace(X=known.X.astype(dtype))
        self.has_groups, self._path, self._dtype = table.has_groups, table.labels, np.dtype(dtype)
        self.known, self.samples = known, stages(known)
        self.points = ChunkedPoints(
            table.chunks, table.engine, known, n_clusters, dtype=dtype, takes_lists=takes_lists
        )

    def sample(self, n_rows: int) -> Any:
        """The first rows of the sample, packed."""
        known, whole = self.known, self.points.sample
        if n_rows == len(known.codes):
            return whole
        X, codes = known.X[:n_rows], known.codes[:n_rows]
        shape = whole.n_groups, whole.n_clusters
        return type(whole).pack(X, codes, *shape, shift=whole.shift, dtype=self._dtype)

    def written(self, labels: Any) -> np.ndarray:
        """The labels of all rows, from `ChunkLabels`: an array, or mapped from the file that the table names.

        The file gets its name when it is complete. ChunkError if it cannot be written, as on a full disk.
        """
        points, path, dtype = self.points, self._path, np.min_scalar_type(self.points.n_clusters - 1)
        if path is None:
            array = np.empty(points.n_samples, dtype)
            for rows, part in zip(slices_of(points.chunks), points.written(labels), strict=True):
                array[rows] = part
            return array
        try:
            with atomic_write(path) as file:
                header = {"descr": dtype.str, "fortran_order": False, "shape": (points.n_samples,)}
                np.lib.format.write_array_header_1_0(file, header)
                for part in points.written(labels):
                    file.write(part.data)
        except OSError as error:
            raise ChunkError(
                f"{points.n_samples * dtype.itemsize:,} bytes of labels cannot be written to {path}: "
                f"{error.strerror or error}. Free some space or name another file, and fit again"
            ) from error
        return np.load(path, mmap_mode="r")


def stages(known: Survey) -> list[int]:
    """The numbers of rows of the sample to fit on, one after the other. The last one is all of them."""
    n_rows, whole = _FIRST_ROWS, len(known.codes)
    if len(np.unique(known.codes[:n_rows])) < len(known.names):
        return [whole]
    numbers = []
    while 2 * n_rows <= whole:
        numbers.append(n_rows)
        n_rows *= _MORE_ROWS
    return [*numbers, whole]
