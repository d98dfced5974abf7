"""A pass over all chunks: the engine that runs it, and the functions that it calls for each chunk.

Each function depends only on its arguments, a chunk and small tables, so it can run in any thread or process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.sources import Chunk, ChunkError
from fairclust.group_encoding import Values, factored, positions
from fairclust.kernels.assignment import add_moments
from fairclust.kernels.listed import ListedPoints
from fairclust.kernels.points import TiledPoints, tile_room
from fairclust.kernels.tiles import blocks

# Number of chunks that wait for each thread, so that no thread is idle while results are added up.
_AHEAD = 3
AnyPoints = TiledPoints | ListedPoints
# Number of rows packed at a time. Their distances to ten centres fit in the processor's cache.
BLOCK_ROWS = 1 << 16
# The lists of the blocks, by the identity of the chunk and the first row.
Kept = dict[tuple[int, int], np.ndarray]


def in_order(jobs: Iterable[Any], ahead: int) -> Iterator[Any]:
    """Yield the results of jobs in the order of the jobs. At most `ahead` started jobs await their turn.

    A job starts when it is taken from the iterable. If a job fails, or if the caller stops early, the jobs whose
    results have not been yielded are cancelled.
    """
    waiting: deque[Any] = deque()
    try:
        for job in jobs:
            waiting.append(job)
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for job in waiting:
            job.cancel()


class Engine:
    """Calls a function for every chunk in threads of this process, as many as `numba.get_num_threads` returns."""

    def run(
        self, function: Callable[..., Any], chunks: Sequence[Chunk], *more: Iterable[Any]
    ) -> Iterator[Any]:
        """As ``map(function, chunks, *more)``, whichever call ends first."""
        n_threads = min(numba.get_num_threads(), len(chunks))
        if n_threads <= 1:
            yield from map(function, chunks, *more)
            return
        # Each chunk is computed by one thread, so its kernels must not start more threads.
        with ThreadPoolExecutor(n_threads, "fairclust-chunks", numba.set_num_threads, (1,)) as pool:
            yield from in_order(map(pool.submit, repeat(function), chunks, *more), _AHEAD * n_threads)

    def close(self) -> None:
        """End workers that were started for this engine. Threads end with every pass."""


class Listing(NamedTuple):
    """The lists that a pass needs: those of an earlier pass over all clusters, if there is one with these centres."""

    kept: Kept | None  # None if every pass makes the lists anew
    prices: np.ndarray | None  # (n_groups, n_clusters), of that pass; None if there is none


class Map(NamedTuple):
    """An assignment ``argmin_k (scale * ||x - c_k||^2 + offset[group, k])``."""

    names: np.ndarray  # the groups, sorted
    shift: np.ndarray  # subtracted from the points and the centres before distances are computed
    centers: np.ndarray
    scale: float
    offset: np.ndarray  # (n_groups, n_clusters)
    # Whether to compare clusters in double precision, as `Points.priced` does. `scale` is then not used.
    precise: bool
    dtype: DTypeLike  # of the distances
    # If given, rows list their cheapest clusters instead of keeping all distances.
    lists: Listing | None = None


def soft_sums(chunk: Chunk, by: Map, curved: bool) -> tuple[Any, ...]:
    """The results of `Points.soft`, followed by the sum over rows of the least potential."""
    return total_of(
        (*points.soft(by.scale, by.offset, curved), points.row_min_sum) for _, _, points in _blocks(chunk, by)
    )


def rows_beyond(chunk: Chunk, by: Map, limit: float) -> tuple[Any, ...]:
    """The result of `Points.n_beyond`, followed by the sum over rows of the least potential."""
    return total_of((points.n_beyond(limit), points.row_min_sum) for _, _, points in _blocks(chunk, by))


def hard_sums(chunk: Chunk, by: Map) -> tuple[Any, ...]:
    """Sums of a hard assignment.

    These are the counts, the cost, the cluster sizes, the sums of the points, what `_reach_of_lists` returns, and the
    sum of the least potentials. The cost is computed from the rows in double precision, also if the distances that made
    the labels are in single.
    """

    def sums(X: np.ndarray, points: AnyPoints) -> tuple[Any, ...]:
        labels, counts = _assign(points, by)
        sizes, totals = np.zeros(len(by.centers), np.int64), np.zeros(by.centers.shape)
        cost = add_moments(X, labels, by.centers, sizes, totals)
        return counts, cost, sizes, totals, _reach_of_lists(points), points.row_min_sum

    return total_of(sums(X, points) for _, X, points in _blocks(chunk, by))


def _reach_of_lists(points: AnyPoints) -> np.ndarray:
    """The number of rows with lists that were too short, the number of other rows times `reach`, and this number."""
    if not isinstance(points, ListedPoints) or not np.isfinite(points.reach):
        return np.zeros(3)
    return np.array([points.n_short, points.n_samples * points.reach, points.n_samples])


def labels_of(chunk: Chunk, by: Map) -> np.ndarray:
    """The labels of the rows, in the smallest unsigned integer type that holds them."""
    dtype = np.min_scalar_type(len(by.centers) - 1)
    parts = [_assign(points, by)[0].astype(dtype) for _, _, points in _blocks(chunk, by)]
    return np.concatenate([*parts, np.empty(0, dtype)])


def close_to(chunk: Chunk, by: Map, reach: np.ndarray) -> list[tuple[np.ndarray, ...]]:
    """For each block, the rows whose label can change at a cost of at most `reach`.

    They come with their groups and their excess, see `TiledPoints.close`. Rows with lists also come with the clusters
    that the columns of the excess stand for.
    """
    parts = []
    for first, _, points in _blocks(chunk, by):
        labels = _assign(points, by)[0]
        rows, *more = points.close(by.offset, labels, reach)
        parts.append((rows + first, *more))
    return parts


def total_of(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add tuples entry by entry, in their order. An empty tuple counts as zero."""
    total: tuple[Any, ...] = ()
    for part in filter(None, parts):
        total = tuple(one + other for one, other in zip(total, part, strict=True)) if total else part
    return total


def _assign(points: AnyPoints, by: Map) -> tuple[np.ndarray, np.ndarray]:
    """Labels and counts."""
    labels, counts, *_ = points.priced(by.offset) if by.precise else points.hard(by.scale, by.offset)
    return labels, counts


def _blocks(chunk: Chunk, by: Map) -> Iterator[tuple[int, np.ndarray, AnyPoints]]:
    """Yield first row, rows and potentials of each block. The next block overwrites the rows and potentials."""
    X, values = chunk.read()
    codes = group_codes(values, by.names, chunk)
    shape, lists = (len(by.names), len(by.centers)), by.lists
    if lists is None:
        most = min(BLOCK_ROWS, len(X))
        held = np.empty((most, X.shape[1]), X.dtype)
        room = tile_room(most, shape[0], X.shape[1], shape[1], by.dtype)
    for block in blocks(len(X), BLOCK_ROWS):
        if lists is None:
            rows = held[: block.stop - block.start]
            rows[:] = X[block]
            points: AnyPoints = TiledPoints.pack(
                rows, codes[block], *shape, shift=by.shift, dtype=by.dtype, room=room
            )
            points.measure(by.centers)
            yield block.start, rows, points
            continue
        rows = X[block]
        points = ListedPoints.pack(rows, codes[block], *shape, shift=by.shift, dtype=by.dtype)
        points.measure(by.centers)
        place, kept = (id(chunk), block.start), lists.kept or {}
        if place in kept:
            points.take_lists(kept[place])
        elif lists.prices is not None:
            points.outgrown(lists.prices)
        yield block.start, rows, points
        if lists.kept is not None:
            lists.kept[place] = points.kept_lists()


def group_codes(values: np.ndarray | Values, names: np.ndarray, chunk: Chunk) -> np.ndarray:
    """Codes of the values: their positions in `names`. ChunkError if a value is not among the names."""
    values = factored(values)
    codes = positions(values, names)
    if codes.min(initial=0) < 0:
        row = int(codes.argmin())
        raise ChunkError(
            f"{chunk.place(row)}: the group {values.at(row)} was not there when the fit began: "
            "do not change the rows during a fit"
        )
    return codes
