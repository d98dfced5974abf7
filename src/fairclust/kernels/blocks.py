"""Distances of blocks of rows. Each block is packed into tiles in the same arrays, which overwrite the last block."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import Potentials, _squared_distances
from fairclust.kernels.tiles import TILE, TileLayout

BLOCK_ROWS = 1 << 16
"""Number of rows packed at a time. Their distances to ten centres fit in the processor's cache."""


@njit(cache=True, nogil=True)
def _pack_block(X, codes, n_groups, shift, order, group, start, count, packed):  # type: ignore[no-untyped-def]
    """Sort rows by group into tiles and return the number of tiles."""
    sizes = np.zeros(n_groups, np.int64)
    for p in range(len(codes)):
        sizes[codes[p]] += 1
    first_tile = np.zeros(n_groups, np.int64)
    begin = np.zeros(n_groups, np.int64)
    n_tiles = 0
    at = 0
    for j in range(n_groups):
        first_tile[j] = n_tiles
        begin[j] = at
        for done in range(0, sizes[j], TILE):
            group[n_tiles] = j
            start[n_tiles] = at + done
            count[n_tiles] = min(TILE, sizes[j] - done)
            n_tiles += 1
        at += sizes[j]
        sizes[j] = 0
    for p in range(len(codes)):
        j = codes[p]
        s = sizes[j]
        sizes[j] = s + 1
        order[begin[j] + s] = p
        tile = packed[first_tile[j] + s // TILE]
        for f in range(X.shape[1]):
            tile[f, s % TILE] = X[p, f] - shift[f]
    return n_tiles


@njit(cache=True, nogil=True)
def _close(a, prices, group, start, count, order, labels, reach, rows, groups, excess):  # type: ignore[no-untyped-def]
    """Store the rows that pay at most `reach[group, label, other]` to change to some other cluster; return how many."""
    n_clusters = a.shape[1]
    found = 0
    for t in range(len(group)):
        j = group[t]
        for i in range(count[t]):
            p = order[start[t] + i]
            k = labels[p]
            own = np.float64(a[t, k, i]) + prices[j, k]
            for other in range(n_clusters):
                if other != k and np.float64(a[t, other, i]) + prices[j, other] - own <= reach[j, k, other]:
                    rows[found] = p
                    groups[found] = j
                    for c in range(n_clusters):
                        excess[found, c] = a[t, c, i]
                    found += 1
                    break
    return found


@njit(cache=True, nogil=True)
def _cluster_sums(X, labels, centers, sizes, sums):  # type: ignore[no-untyped-def]
    cost = 0.0
    for p in range(X.shape[0]):
        k = labels[p]
        sizes[k] += 1
        for f in range(X.shape[1]):
            x = np.float64(X[p, f])
            sums[k, f] += x
            apart = x - centers[k, f]
            cost += apart * apart
    return cost


def cluster_sums(
    X: np.ndarray, labels: np.ndarray, centers: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Cluster sizes, float64 sums of the points, shape (n_clusters, n_features), and squared distances to the centres.

    All sums are in double precision.
    """
    sizes, sums = np.zeros(len(centers), np.int64), np.zeros(centers.shape)
    return sizes, sums, _cluster_sums(X, labels, centers, sizes, sums)


class BlockRoom:
    """Arrays for the tiles of at most `BLOCK_ROWS` rows, in `dtype`, and for their distances."""

    def __init__(
        self, n_groups: int, n_features: int, n_clusters: int, dtype: DTypeLike, row_dtype: DTypeLike
    ) -> None:
        # The last tile of every group may be partly empty, so each group adds at most one tile.
        n_tiles = BLOCK_ROWS // TILE + n_groups
        self.n_groups = n_groups
        self._X = np.empty((BLOCK_ROWS, n_features), row_dtype)
        self._order = np.empty(BLOCK_ROWS, np.int64)
        self._group, self._start, self._count = np.zeros((3, n_tiles), np.int64)
        self._packed = np.zeros((n_tiles, n_features, TILE), dtype)
        self._a = np.zeros((n_tiles, n_clusters, TILE), dtype)
        self._row_min = np.zeros((n_tiles, TILE), dtype)

    def measure(
        self, X: np.ndarray, codes: np.ndarray, shift: np.ndarray, centers: np.ndarray
    ) -> tuple[np.ndarray, Potentials]:
        """Compute the squared distances of a block of at most `BLOCK_ROWS` rows to some centres.

        `shift` is subtracted from the rows and has been subtracted from the centres. Returns a copy of the rows and
        the potentials. The next call overwrites both.
        """
        room = self._X[: len(X)]
        room[:] = X
        n_tiles = _pack_block(
            room,
            codes,
            self.n_groups,
            shift,
            self._order,
            self._group,
            self._start,
            self._count,
            self._packed,
        )
        count, row_min, a = self._count[:n_tiles], self._row_min[:n_tiles], self._a[:n_tiles]
        centers = centers.astype(a.dtype)
        total = np.empty(n_tiles)
        _squared_distances(0, n_tiles, self._packed[:n_tiles], centers, False, count, a, row_min, total)
        layout = TileLayout(self._order[: len(X)], self._group[:n_tiles], self._start[:n_tiles], count)
        return room, Potentials(layout, self.n_groups, a, row_min, float(total.sum()))


def close_rows(
    points: Potentials, prices: np.ndarray, labels: np.ndarray, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of a block whose reduced costs in two clusters are (nearly) equal, as `Potentials.movable` yields them.

    `labels` are those that `Potentials.priced` returns for these prices. ``reach[g, k, l]`` is the most that a row of
    group g may pay to change from k to l. A row is returned if it can change to some cluster at that cost.
    """
    layout = points.layout
    rows, groups = np.empty((2, points.n_samples), np.int64)
    excess = np.empty((points.n_samples, points.n_clusters))
    n_found = _close(
        points.a,
        prices,
        layout.group,
        layout.start,
        layout.count,
        layout.order,
        labels,
        reach,
        rows,
        groups,
        excess,
    )
    return rows[:n_found].copy(), groups[:n_found].copy(), excess[:n_found].copy()
