"""The functions that a pass calls for each chunk.

Each depends only on its arguments, a chunk and small tables, so it can run in any thread or process.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.sources import Chunk, ChunkError
from fairclust.group_encoding import Values, factored, positions
from fairclust.kernels.assignment import Potentials, cluster_sums
from fairclust.kernels.blocks import BLOCK_ROWS, BlockRoom, close_rows

MOST_GROUPS = int(np.iinfo(np.uint16).max)
_rooms = threading.local()


class Map(NamedTuple):
    """An assignment ``argmin_k (scale * ||x - c_k||^2 + offset[group, k])``."""

    names: np.ndarray  # the groups, sorted
    shift: np.ndarray  # subtracted from the points and the centres before distances are computed
    centers: np.ndarray
    scale: float
    offset: np.ndarray  # (n_groups, n_clusters)
    # Whether to compare clusters in double precision, as `Potentials.priced` does. `scale` is then not used.
    precise: bool
    dtype: DTypeLike  # of the distances


def soft_sums(chunk: Chunk, by: Map, name: str) -> tuple[Any, ...]:
    """The results of `Potentials.soft` or `soft_moments`, followed by the sum over rows of the least potential."""
    sums = (
        (*getattr(points, name)(by.scale, by.offset), points.row_min_sum)
        for _, _, points in _blocks(chunk, by)
    )
    return total_of(sums)


def hard_sums(chunk: Chunk, by: Map) -> tuple[Any, ...]:
    """Sums of a hard assignment.

    These are the counts, the cost, the cluster sizes, the sums of the points, and the sum of the least potentials. The
    cost is computed from the rows in double precision, also if the distances that made the labels are in single.
    """

    def sums(X: np.ndarray, points: Potentials) -> tuple[Any, ...]:
        labels, counts = _assign(points, by)
        sizes, totals, cost = cluster_sums(X, labels, by.centers)
        return counts, cost, sizes, totals, points.row_min_sum

    return total_of(sums(X, points) for _, X, points in _blocks(chunk, by))


def labels_of(chunk: Chunk, moved: np.ndarray, moved_labels: np.ndarray, by: Map) -> np.ndarray:
    """The labels of the rows, in the smallest integer type. Rows in `moved` get the labels in `moved_labels`."""
    found = np.empty(chunk.n_rows, np.min_scalar_type(len(by.centers) - 1))
    for first, X, points in _blocks(chunk, by):
        found[first : first + len(X)] = _assign(points, by)[0]
    found[moved] = moved_labels
    return found


def close_to(chunk: Chunk, by: Map, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows whose label can change at a cost of at most `reach`, with their groups and excess, see `close_rows`."""
    rows, groups, excess = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((0, len(by.centers)))]
    for first, _, points in _blocks(chunk, by):
        found, own_groups, own_excess = close_rows(points, by.offset, _assign(points, by)[0], reach)
        rows.append(found + first)
        groups.append(own_groups)
        excess.append(own_excess)
    return np.concatenate(rows), np.concatenate(groups), np.concatenate(excess)


def add(total: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
    """Add two tuples entry by entry. An empty tuple counts as zero."""
    if not total or not part:
        return total or part
    return tuple(one + other for one, other in zip(total, part, strict=True))


def total_of(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add tuples in their order. Returns the empty tuple if there are none."""
    total: tuple[Any, ...] = ()
    for part in parts:
        total = add(total, part)
    return total


def _assign(points: Potentials, by: Map) -> tuple[np.ndarray, np.ndarray]:
    """Labels and counts."""
    found = points.priced(by.offset) if by.precise else points.hard(by.scale, by.offset)
    return found[0], found[1]


def _blocks(chunk: Chunk, by: Map) -> Iterator[tuple[int, np.ndarray, Potentials]]:
    """Yield first row, rows and potentials of each block. The next block overwrites the rows and potentials."""
    X, values = chunk.read()
    codes = group_codes(values, by.names, chunk)
    shape = len(by.names), X.shape[1], len(by.centers), np.dtype(by.dtype), X.dtype
    # Each thread allocates its own room and keeps it for the next chunk.
    if getattr(_rooms, "shape", None) != shape:
        _rooms.room, _rooms.shape = BlockRoom(*shape), shape
    for first in range(0, len(X), BLOCK_ROWS):
        part = slice(first, first + BLOCK_ROWS)
        yield first, *_rooms.room.measure(X[part], codes[part], by.shift, by.centers - by.shift)
    # A file that changed while the chunk was read has given rows of both its states.
    chunk.check()


def group_codes(values: Values, names: np.ndarray, chunk: Chunk) -> np.ndarray:
    """Codes of the values: their positions in `names`, as uint16. ChunkError if a value is not among the names."""
    values = factored(values)
    codes = positions(values, names)
    if codes.min(initial=0) < 0:
        row = int(codes.argmin())
        raise ChunkError(
            f"{chunk.place(row)}: the group {values.at(row)} was not there when the fit began: "
            "do not change the rows during a fit"
        )
    return codes.astype(np.uint16)
