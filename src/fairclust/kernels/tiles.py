"""Points in tiles: the memory layout that every assignment kernel reads.

Points are sorted by group and cut into tiles of `TILE` points. All points of a tile are of one group, so the group's
prices are constants in the inner loops. The points are the last axis of a tile, which lets the compiler work on many
points at once. The last tile of a group is padded, and `count` is its number of real points.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import DTypeLike
from threadpoolctl import ThreadpoolController

TILE = 512
# Loops run over whole vectors, so the number of points in a tile is rounded up to a multiple of this.
VECTOR = 64
# NumPy's arrays begin at multiples of 16 bytes. If that is no multiple of 32, a pass of distances takes a third longer.
_ALIGNED = 64
# Largest number of distances between rows that are computed at once.
_PAIRS = 2**22

# Starting a pass in a second thread takes about 50 microseconds, which is not worth it below this many table entries.
_MIN_ENTRIES_PER_THREAD = 150_000


class TileLayout(NamedTuple):
    """The place of each point in the tiles, which kernels take as one argument.

    `order` holds the points sorted by group, stable. Each tile has its group, its first position in `order` (`start`)
    and its number of real points (`count`).
    """

    order: np.ndarray
    group: np.ndarray
    start: np.ndarray
    count: np.ndarray  # type: ignore[assignment]  # a tuple has a method of this name, which nobody needs

    @property
    def n_tiles(self) -> int:
        return len(self.group)

    def part(self, tiles: slice) -> TileLayout:
        """The layout of some of the tiles."""
        return TileLayout(self.order, self.group[tiles], self.start[tiles], self.count[tiles])


def make_layout(groups: np.ndarray, n_groups: int) -> TileLayout:
    """Sort points by their group code and cut each group, which may be empty, into tiles."""
    sizes = np.bincount(groups, minlength=n_groups)
    n_tiles = -(-sizes // TILE)
    group = np.repeat(np.arange(n_groups), n_tiles)
    place = np.cumsum(sizes) - sizes
    done = TILE * (np.arange(len(group)) - (np.cumsum(n_tiles) - n_tiles)[group])
    start, count = place[group] + done, np.minimum(TILE, sizes[group] - done)
    # For codes of one or two bytes this is a radix sort, which takes linear time.
    order = np.argsort(groups.astype(np.min_scalar_type(n_groups)), kind="stable")
    return TileLayout(order, group, start, count)


@numba.njit(cache=True, nogil=True)
def padded(count):  # type: ignore[no-untyped-def]
    """Number of entries of a tile that the loops run over: `count` rounded up to whole vectors."""
    return min(TILE, (count + VECTOR - 1) // VECTOR * VECTOR)


def blocks(n: int, size: int) -> list[slice]:
    """Cut the range of `n` rows or tiles into slices of `size`; the last one may be shorter."""
    return [slice(begin, min(n, begin + size)) for begin in range(0, n, size)]


def pairwise_blocks(n_rows: int, n_others: int) -> list[slice]:
    """Slices of rows whose distances to `n_others` points fit into one block of memory."""
    return blocks(n_rows, max(1, _PAIRS // n_others))


def distinct_rows(rows: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The first row of each kind, the kind of each row, and the number of rows of each kind.

    Rows of a kind are equal and of one group. Numbers of an integer type must not be negative.
    """
    key = groups.astype(np.int64)
    for column in rows.T:
        codes = column if column.dtype.kind in "iu" else np.unique(column, return_inverse=True)[1]
        key = np.unique(key, return_inverse=True)[1] * (int(codes.max(initial=0)) + 1) + codes
    return np.unique(key, return_index=True, return_inverse=True, return_counts=True)[1:]


def zero_tiles(n_tiles: int, n_rows: int, dtype: DTypeLike) -> np.ndarray:
    """Zeros of shape (n_tiles, n_rows, TILE) that begin at a multiple of `_ALIGNED` bytes."""
    size = n_tiles * n_rows * TILE * np.dtype(dtype).itemsize
    room = np.zeros(size + _ALIGNED, np.uint8)
    begin = -room.ctypes.data % _ALIGNED
    return room[begin : begin + size].view(dtype).reshape(n_tiles, n_rows, TILE)


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of their own. Finding them takes as long as the distances of a few thousand points."""
    return ThreadpoolController()


@contextmanager
def one_thread(of: str | None = "blas") -> Iterator[None]:
    """Run BLAS, or with None also OpenMP, in one thread.

    On a busy machine, several threads mostly wait for each other if matrices are small, and last digits depend on
    their number.
    """
    with _libraries().limit(limits=1, user_api=of):
        yield


@lru_cache(maxsize=4)
def _pool(n_threads: int, pid: int) -> ThreadPoolExecutor:
    # The process id is part of the key, because a forked child process does not have its parent's threads.
    return ThreadPoolExecutor(n_threads, thread_name_prefix=f"fairclust-{pid}")


def run_over_tiles(kernel: Callable[..., None], n_tiles: int, entries: int, *args: object) -> None:
    """Call ``kernel(lo, hi, *args)`` over all tiles, in as many threads as `numba.get_num_threads` allows.

    Kernels are compiled with ``nogil=True`` and write results for each tile. The caller adds these in the order of the
    tiles, so that results do not depend on the number of threads. `entries` is the size of the work (points times
    clusters); small work is done in the calling thread.
    """
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    n_threads = int(min(n_tiles, max(1, entries // _MIN_ENTRIES_PER_THREAD), most))
    if n_threads > 1:  # numba takes longer to say the number of its threads than a small pass takes
        n_threads = min(numba.get_num_threads(), n_threads)
    if n_threads <= 1:
        kernel(0, n_tiles, *args)
        return
    # With more chunks than threads, one slow core delays the pass less.
    edges = np.linspace(0, n_tiles, min(4 * n_threads, n_tiles) + 1).astype(int)
    pool = _pool(n_threads, os.getpid())
    jobs = [pool.submit(kernel, int(lo), int(hi), *args) for lo, hi in pairwise(edges)]
    for job in jobs:
        job.result()


@numba.njit(cache=True, nogil=True)
def _pack(lo, hi, X, shift, unit, layout, out):  # type: ignore[no-untyped-def]
    for t in range(lo, hi):
        for i in range(layout.count[t]):
            p = layout.order[layout.start[t] + i]
            for f in range(X.shape[1]):
                x = X[p, f] - shift[f]
                out[t, f, i] = x if unit is None else x / unit


def pack_points(
    X: np.ndarray,
    layout: TileLayout,
    shift: np.ndarray,
    dtype: DTypeLike = np.float32,
    unit: float | None = None,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Copy ``(X - shift) / unit`` into tiles, shape (n_tiles, n_features, TILE), by default into a new array.

    The arithmetic is in float64, before the cast to `dtype`, so that data far from the origin keep their precision.
    """
    if out is None:
        out = zero_tiles(layout.n_tiles, X.shape[1], dtype)
    run_over_tiles(_pack, layout.n_tiles, X.size, X, shift, unit, layout, out)
    return out


@numba.njit(cache=True, nogil=True)
def add_by_group(per_tile, group, out):  # type: ignore[no-untyped-def]
    """Add per-tile rows, shape (n_tiles, ...), to rows per group, shape (n_groups, ...), in the order of the tiles."""
    rows, sums = per_tile.reshape(len(group), -1), out.reshape(len(out), -1)
    for t in range(len(group)):
        total = sums[group[t]]
        for i in range(rows.shape[1]):
            total[i] += rows[t, i]


def sum_by_group(per_tile: np.ndarray, layout: TileLayout, n_groups: int) -> np.ndarray:
    """Add up per-tile rows, shape (n_tiles, ...), into float64 rows per group, shape (n_groups, ...)."""
    out = np.zeros((n_groups, *per_tile.shape[1:]))
    add_by_group(per_tile, layout.group, out)
    return out
