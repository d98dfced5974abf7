"""Distances of blocks of rows. Each block is packed into tiles in the same arrays, which overwrite the last block."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import TILE, LayoutRoom, pack_points, zero_tiles

BLOCK_ROWS = 1 << 16
"""Number of rows packed at a time. Their distances to ten centres fit in the processor's cache."""


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


class BlockRoom:
    """Arrays for the tiles of at most `BLOCK_ROWS` rows, in `dtype`, and for their distances."""

    def __init__(
        self, n_groups: int, n_features: int, n_clusters: int, dtype: DTypeLike, row_dtype: DTypeLike
    ) -> None:
        self._layouts = LayoutRoom(BLOCK_ROWS, n_groups)
        n_tiles = self._layouts.n_tiles
        self._X = np.empty((BLOCK_ROWS, n_features), row_dtype)
        self._packed = zero_tiles(n_tiles, n_features, dtype)
        self._a = zero_tiles(n_tiles, n_clusters, dtype)
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
        layout = self._layouts.lay_out(codes)
        n_tiles, n_groups = layout.n_tiles, self._layouts.n_groups
        packed = pack_points(room, layout, shift, out=self._packed[:n_tiles])
        points = Potentials(layout, n_groups, self._a[:n_tiles], self._row_min[:n_tiles])
        points.set_distances(packed, centers)
        return room, points


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
