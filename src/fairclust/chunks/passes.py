"""One pass over one chunk: a function of the chunk and of tables alone, so that it can run anywhere."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from fairclust.chunks.sources import Chunk, ChunkError, Values
from fairclust.kernels.assignment import Potentials, cluster_moments
from fairclust.kernels.blocks import BLOCK_ROWS, BlockRoom, close_rows

_UNKNOWN = np.iinfo(np.uint16).max
MOST_GROUPS = int(_UNKNOWN)
_rooms = threading.local()


class Map(NamedTuple):
    """An assignment ``argmin_k (scale * ||x - c_k||^2 + offset[group, k])``.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
        The groups, sorted.
    shift : ndarray of shape (n_features,)
        Taken out of the points, and already out of the centres.
    centers : ndarray of shape (n_clusters, n_features)
    scale, offset : float, ndarray of shape (n_groups, n_clusters)
    precise : bool
        Compare in double precision, as `Potentials.priced` does.
    dtype : float32 or float64
        Of the distances.
    """

    names: np.ndarray
    shift: np.ndarray
    centers: np.ndarray
    scale: float
    offset: np.ndarray
    precise: bool
    dtype: DTypeLike


def soft_sums(chunk: Chunk, by: Map) -> tuple[Any, ...]:
    """What `Potentials.soft` returns, and the sum of the least potentials."""
    blocks = _blocks(chunk, by)
    return total_of((*points.soft(by.scale, by.offset), points.row_min_sum) for _, _, points in blocks)


def moment_sums(chunk: Chunk, by: Map) -> tuple[Any, ...]:
    """What `Potentials.soft_moments` returns, and the sum of the least potentials."""
    blocks = _blocks(chunk, by)
    return total_of(
        (*points.soft_moments(by.scale, by.offset), points.row_min_sum) for _, _, points in blocks
    )


def hard_sums(chunk: Chunk, by: Map) -> tuple[Any, ...]:
    """Counts, potential, least reduced costs, cluster sizes, sums of points, sum of the least potentials."""

    def sums(X: np.ndarray, points: Potentials) -> tuple[Any, ...]:
        labels, counts, potential, least = _assign(points, by)
        return counts, potential, least, *cluster_moments(X, labels, len(by.centers)), points.row_min_sum

    return total_of(sums(X, points) for _, X, points in _blocks(chunk, by))


def labels_of(chunk: Chunk, moved: np.ndarray, moved_labels: np.ndarray, by: Map) -> np.ndarray:
    """The labels of the rows, as the smallest integers that hold them; a few of them are given."""
    found = np.empty(chunk.n_rows, np.min_scalar_type(len(by.centers) - 1))
    for first, X, points in _blocks(chunk, by):
        found[first : first + len(X)] = _assign(points, by)[0]
    found[moved] = moved_labels
    return found


def close_to(chunk: Chunk, by: Map, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that can change their label for at most `reach`, their groups and excess, see `close_rows`."""
    rows, groups, excess = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty((0, len(by.centers)))]
    for first, _, points in _blocks(chunk, by):
        found, own_groups, own_excess = close_rows(points, by.offset, _assign(points, by)[0], reach)
        rows.append(found + first)
        groups.append(own_groups)
        excess.append(own_excess)
    return np.concatenate(rows), np.concatenate(groups), np.concatenate(excess)


def add(total: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
    """Sums, entry by entry; an empty tuple is nothing."""
    if not total or not part:
        return total or part
    return tuple(one + other for one, other in zip(total, part, strict=True))


def total_of(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums in the order of the parts; of none, the empty tuple."""
    total: tuple[Any, ...] = ()
    for part in parts:
        total = add(total, part)
    return total


def _assign(points: Potentials, by: Map) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Labels, counts, potential and, if the map is precise, least reduced costs."""
    if by.precise:
        return points.priced(by.offset)
    return *points.hard(by.scale, by.offset), 0.0


def _blocks(chunk: Chunk, by: Map) -> Iterator[tuple[int, np.ndarray, Potentials]]:
    """First row, rows and potentials of block after block; both last until the next one."""
    X, values = chunk.read()
    codes = group_codes(values, by.names, chunk)
    shape = len(by.names), X.shape[1], len(by.centers), np.dtype(by.dtype), X.dtype
    # Each thread has a room of its own, and keeps it for the next chunk.
    if getattr(_rooms, "shape", None) != shape:
        _rooms.room, _rooms.shape = BlockRoom(*shape), shape
    for first in range(0, len(X), BLOCK_ROWS):
        part = slice(first, first + BLOCK_ROWS)
        yield first, *_rooms.room.measure(X[part], codes[part], by.shift, by.centers)


def group_codes(values: Values, names: np.ndarray, chunk: Chunk) -> np.ndarray:
    """Positions in `names`, as uint16.

    Raises
    ------
    ChunkError
        A value is not among the names.
    """
    entries, own = values
    if own is not None:
        codes = _positions(own, names)[entries]
    elif entries.dtype == np.uint8:
        # Every value of a byte is looked up at once.
        codes = _positions(np.arange(256), names)[entries]
    elif entries.dtype.kind in "iub" and names.dtype.kind in "iub" and _is_narrow(entries, names):
        low = int(names[0])
        codes = _positions(np.arange(low, int(names[-1]) + 1), names)[entries.astype(np.intp) - low]
    else:
        codes = _positions(entries, names)
    strange = codes == _UNKNOWN
    if strange.any():
        row = int(strange.argmax())
        value = entries[row] if own is None else own[entries[row]]
        raise ChunkError(f"{chunk.place(row)}: the group {value} was not there when the fit began")
    return codes


def _is_narrow(entries: np.ndarray, names: np.ndarray) -> bool:
    """Whether all values can be looked up in a table between the least and the largest name."""
    low, high = int(names[0]), int(names[-1])
    return bool(len(entries)) and high - low < MOST_GROUPS and low <= entries.min() and entries.max() <= high


def _positions(values: np.ndarray, names: np.ndarray) -> np.ndarray:
    """Positions of values in sorted names; `_UNKNOWN` for what is not there."""
    if names.dtype.kind == "U" and values.dtype.kind != "U":
        values = values.astype(str)
    codes = np.minimum(np.searchsorted(names, values), len(names) - 1)
    return np.where(names[codes] == values, codes, _UNKNOWN).astype(np.uint16)
