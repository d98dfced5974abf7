"""The rows of a fit in chunks, which starts on a random sample that grows, and goes on from its result on all rows.

Every pass over all rows computes the distances again and keeps only sums over the points.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.passes import (
    Engine,
    Kept,
    Listing,
    Map,
    close_to,
    hard_sums,
    labels_of,
    rows_beyond,
    soft_sums,
    total_of,
)
from fairclust.chunks.sources import Chunk, ChunkError, slices_of
from fairclust.chunks.survey import Survey, survey
from fairclust.chunks.table import ChunkTable
from fairclust.kernels.listed import ListedPoints, many_short
from fairclust.kernels.points import SoftSums, TiledPoints, worth_listing
from fairclust.outputs import atomic_write

# All starts run on the first _FIRST_ROWS rows of the sample. The best one continues on _MORE_ROWS times as many rows,
# and so on up to the whole sample. Steps on few rows are cheap, and after them few steps on many rows are needed.
_FIRST_ROWS, _MORE_ROWS = 1 << 18, 4
# The search for movable rows goes further from the boundaries than the sample suggests, so that one pass is enough. It
# aims at _MORE times the rows needed and _SPARE_ROWS more.
_MORE, _SPARE_ROWS = 3, 8
# The lists of at most so many rows, up to a gigabyte, are kept from pass to pass. Those of more rows are made anew.
_KEPT_ROWS = 20_000_000
_LOG = logging.getLogger("fairclust.chunks")


@dataclass
class ChunkLabels:
    """The labels of rows in chunks: those of a map, but for the few rows that rounding has moved.

    They are computed in the last pass. Before, only rows near a boundary can be read and changed, by indexing.
    """

    by: Map
    sizes: np.ndarray  # (n_clusters,), of the map's clusters
    sums: np.ndarray  # (n_clusters, n_features), of their points
    # The map's labels of rows near a boundary, and other labels of the rows that have moved.
    near: dict[int, int] = field(default_factory=dict)
    moved: dict[int, int] = field(default_factory=dict)

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.moved.get(row, self.near[row]) for row in rows.tolist()], np.int32)

    def __setitem__(self, rows: np.ndarray, labels: np.ndarray) -> None:
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            self.moved[row] = label
            if label == self.near[row]:
                del self.moved[row]


class ChunkedPoints:
    """An implementation of `fairclust.kernels.points.MeasuredPoints` for rows in chunks.

    `mean_gap` and `mean_excess` are those of the sample. They set the scale of the temperatures, which need not be
    exact. `n_passes` counts the passes over all rows, the survey included.
    """

    weights, late_moments = None, False

    def __init__(
        self,
        chunks: list[Chunk],
        engine: Engine,
        known: Survey,
        n_clusters: int,
        *,
        dtype: DTypeLike = np.float32,
        takes_lists: bool = False,
    ) -> None:
        self.chunks, self.engine, self.names = chunks, engine, known.names
        self.n_groups, self.n_clusters, self.n_samples = len(known.names), n_clusters, known.n_rows
        self.group_sizes = known.sizes
        self._dtype, shape = np.dtype(dtype), (self.n_groups, n_clusters)
        self._listed = takes_lists and worth_listing(len(known.X), *shape)
        points = ListedPoints if self._listed else TiledPoints
        self.sample = points.pack(known.X, known.codes, *shape, shift=known.center, dtype=dtype)
        self.rounding, self.shift = self.sample.rounding, self.sample.shift
        self.mean_gap, self.mean_excess = self.sample.mean_gap, self.sample.mean_excess
        self.row_min_sum = 0.0
        self.n_passes = 1
        self._centers: np.ndarray | None = None
        # Lists of clusters, and what the last pass over all clusters told of them (`fairclust.kernels.points.Lists`).
        keeps = self._listed and self.n_samples <= _KEPT_ROWS and type(engine) is Engine
        self._kept: Kept | None = {} if keeps else None
        self.listed_prices, self.reach, self._n_short = np.zeros(shape), np.inf, 0
        self.fit_centers = False
        self._priced: tuple[bytes, tuple[ChunkLabels, np.ndarray, float, float]] | None = None

    @property
    def lists(self) -> ChunkedPoints | None:
        return self if self._listed else None

    def outgrown(self, prices: np.ndarray) -> bool:
        self.priced(prices)
        return many_short(self._n_short, self.n_samples)

    def measure(self, centers: np.ndarray) -> None:
        if self._centers is not None and np.array_equal(centers, self._centers):
            return
        self.sample.measure(centers)
        self._centers = centers
        self._priced, self.fit_centers = None, False
        # This is an estimate from the sample. The next pass replaces it by the sum.
        self.row_min_sum = self.sample.row_min_sum * self.n_samples / self.sample.n_samples

    def map_of(self, scale: float, offset: np.ndarray, *, precise: bool = False) -> Map:
        """An assignment to the present centres."""
        assert self._centers is not None
        prices = self.listed_prices if self.fit_centers else None
        lists = Listing(self._kept, prices) if self._listed else None
        return Map(self.names, self.shift, self._centers, scale, offset, precise, self._dtype, lists)

    def _run(self, function: Any, *args: Any) -> Iterator[Any]:
        """The results of a pass, chunk by chunk."""
        begin = perf_counter()
        yield from self.engine.run(function, self.chunks, *map(repeat, args))
        self.n_passes += 1
        _LOG.info("pass %d over all rows: %.3g s", self.n_passes, perf_counter() - begin)

    def _sum(self, function: Any, *args: Any) -> tuple[Any, ...]:
        total = total_of(self._run(function, *args))
        self.row_min_sum = total[-1]
        return total[:-1]

    def n_beyond(self, limit: float) -> int:
        by = self.map_of(1.0, np.zeros((self.n_groups, self.n_clusters)))
        return int(self._sum(rows_beyond, by, limit)[0])

    def soft(self, scale: float, offset: np.ndarray, curved: bool = False) -> SoftSums:
        return self._sum(soft_sums, self.map_of(scale, offset), curved)

    def hard(self, scale: float, offset: np.ndarray) -> tuple[ChunkLabels, np.ndarray, float]:
        return self._hard(self.map_of(scale, offset))

    def priced(self, prices: np.ndarray) -> tuple[ChunkLabels, np.ndarray, float, float]:
        key = prices.tobytes()
        if self._priced is None or self._priced[0] != key:
            labels, counts, cost = self._hard(self.map_of(1.0, prices, precise=True))
            self._priced = key, (labels, counts, cost, cost + float((counts * prices).sum()))
        return self._priced[1]

    def _hard(self, by: Map) -> tuple[ChunkLabels, np.ndarray, float]:
        counts, cost, sizes, sums, (n_short, reach, n_reached) = self._sum(hard_sums, by)
        self._n_short, self.reach = int(n_short), reach / n_reached if n_reached else np.inf
        self.listed_prices, self.fit_centers = by.offset / by.scale, True
        if by.lists is not None:
            # A later pass with this map makes its own lists, so it needs none to begin with.
            by = by._replace(lists=by.lists._replace(prices=None))
        return ChunkLabels(by, sizes, sums), counts, cost

    def sums(self, labels: ChunkLabels) -> tuple[np.ndarray, np.ndarray]:
        """Cluster sizes and sums of the points, from the pass that made the labels. Moved rows do not change them."""
        return labels.sizes, labels.sums

    def movable(self, prices: np.ndarray, labels: ChunkLabels, units: np.ndarray) -> tuple[np.ndarray, ...]:
        """As `Points.movable`, but with a few more rows than are needed."""
        by, sample = self.map_of(1.0, prices, precise=True), self.sample
        most = np.ceil(_MORE * units * sample.group_sizes / self.group_sizes).astype(int) + _SPARE_ROWS
        reach = sample.reach_of(prices, sample.priced(prices)[0], most)
        # A few rows too little would leave a few points off the bounds, so one pass is enough.
        parts: list[tuple[np.ndarray, ...]] = []
        for span, blocks in zip(slices_of(self.chunks), self._run(close_to, by, reach), strict=True):
            parts += [(rows + span.start, *more) for rows, *more in blocks]
        rows, groups, excess, *listed = close = tuple(map(np.concatenate, zip(*parts, strict=True)))
        clusters = listed[0] if listed else np.broadcast_to(np.arange(self.n_clusters), excess.shape)
        reduced = excess + prices[groups[:, None], clusters]
        # Ties go to the cluster with the smallest number, as in `priced`.
        cheapest = reduced == reduced.min(axis=1, keepdims=True)
        nearest = np.where(cheapest, clusters, self.n_clusters).min(axis=1)
        labels.near.update(zip(rows.tolist(), nearest.tolist(), strict=True))
        return close

    def written(self, labels: ChunkLabels) -> Iterator[np.ndarray]:
        """Yield the final labels, moved rows included, chunk by chunk."""
        rows = np.array(sorted(labels.moved), np.int64)
        new = np.array([labels.moved[row] for row in rows.tolist()], np.int64)
        for span, part in zip(slices_of(self.chunks), self._run(labels_of, labels.by), strict=True):
            of_chunk = slice(*np.searchsorted(rows, (span.start, span.stop)))
            part = np.array(part)  # Results of Dask workers are read-only.
            part[rows[of_chunk] - span.start] = new[of_chunk]
            yield part


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
