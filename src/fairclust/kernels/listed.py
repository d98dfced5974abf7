"""Points with many clusters: each keeps a short list of the clusters that are cheapest for it at the last prices.

A pass over all clusters computes products of the points with the centres in blocks and keeps the cheapest clusters of
each point. At the same centres or at ones nearby, the sums of softmax rows are taken over the lists, in a small part of
the time and memory that a table of all distances takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import Potentials, SoftSums, cluster_moments
from fairclust.kernels.fast import FAST, exp, where_less
from fairclust.kernels.tiles import (
    TILE,
    TileLayout,
    make_layout,
    one_thread,
    run_over_tiles,
    sum_by_group,
)

# The number of clusters in a list.
_LISTED = 24
# A pass over all clusters skips this many of them at once if none belongs in the list.
_CHUNK = 64
# Bounds on what belongs in a list are raised by this part, and by a tiny number because they may be zero, so that the
# dearest cluster of the last list is within them.
_ROOM, _TINY = np.float32(1e-6), np.finfo(np.float32).tiny
# Bytes of the products of points and centres that are computed at once. They stay in the cache of a core.
_BLOCK_BYTES = 1 << 19
# Products of smaller shares do not change the curvature noticeably.
_SMALL = 1e-4
# Lists are good enough if at most this part of the points had not listed their cheapest cluster.
_FEW_SHORT = 1e-5
# Lists are made anew if the mean square of what the centres have moved is more than this part of `reach`.
_MOVED = 0.1
# So many of a point's cheapest clusters are those that it may enter when rounding moves it.
_ENTERED = 8


@njit(cache=True, nogil=True, fastmath=FAST)
def _cheapest(lo, hi, rows, turned, shifted, n_clusters, layout, known, clusters, values, short):  # type: ignore[no-untyped-def]
    """The clusters with the least ``shifted[group, k] - rows @ turned[:, k]`` of each row, the least first.

    `turned` are the centres, transposed and with as many columns as `shifted`, a multiple of `_CHUNK`. If the lists are
    `known`, those of the last pass bound how dear a cluster in the new list can be, and `short` gets the number of rows
    of each tile for which a cluster outside of them is cheapest.
    """
    n_columns, n_listed = shifted.shape[1], clusters.shape[1]
    real = rows.dtype.type
    zero, one = real(0), real(1)
    size = max(1, min(TILE, _BLOCK_BYTES // (n_columns * rows.itemsize)))
    products = np.empty((size, n_columns), rows.dtype)
    for t in range(lo, hi):
        off = shifted[layout.group[t]]
        n_short, end = 0, layout.start[t] + layout.count[t]
        for begin in range(layout.start[t], end, size):
            n = min(size, end - begin)
            np.dot(rows[begin : begin + n], turned, products[:n])
            for i in range(n):
                product, cluster, value = products[i], clusters[begin + i], values[begin + i]
                most, before = real(np.inf), real(np.inf)
                if known:
                    most = -most
                    for r in range(n_listed):
                        listed = off[cluster[r]] - product[cluster[r]]
                        most = max(most, listed)
                        before = min(before, listed)
                    # Clusters as dear as the dearest one belong in the list as long as it has room.
                    most += _ROOM * abs(most) + _TINY
                filled = 0
                for first in range(0, n_columns, _CHUNK):
                    # Slices of a constant length, because a loop up to a variable number takes ten times as long.
                    of_chunk, priced = product[first : first + _CHUNK], off[first : first + _CHUNK]
                    n_cheap = zero
                    for k in range(_CHUNK):
                        n_cheap += where_less(priced[k] - of_chunk[k], most, one, zero)
                    if n_cheap == zero:
                        continue
                    for k in range(first, min(first + _CHUNK, n_clusters)):
                        new = off[k] - product[k]
                        if new >= most:
                            continue
                        r = filled if filled < n_listed else n_listed - 1
                        while r > 0 and value[r - 1] > new:
                            value[r], cluster[r] = value[r - 1], cluster[r - 1]
                            r -= 1
                        value[r], cluster[r] = new, k
                        filled = min(filled + 1, n_listed)
                        if filled == n_listed:
                            most = value[n_listed - 1]
                if known and value[0] < before:
                    n_short += 1
        short[t] = n_short


@njit(cache=True, nogil=True, fastmath=FAST)
def _squares_of_listed(lo, hi, rows, centers, layout, clusters, values, least, total):  # type: ignore[no-untyped-def]
    """Squared distances to the listed centres minus the least of them, the least ones, and their sum over each tile."""
    n_listed = clusters.shape[1]
    for t in range(lo, hi):
        paid = 0.0
        for p in range(layout.start[t], layout.start[t] + layout.count[t]):
            row, value = rows[p], values[p]
            low = rows.dtype.type(np.inf)
            for r in range(n_listed):
                square, center = rows.dtype.type(0), centers[clusters[p, r]]
                for f in range(len(row)):
                    apart = row[f] - center[f]
                    square += apart * apart
                value[r] = square
                low = min(low, value[r])
            for r in range(n_listed):
                value[r] -= low
            least[p] = low
            paid += np.float64(low)
        total[t] = paid


@njit(cache=True, nogil=True, fastmath=FAST)
def _soft_listed(lo, hi, values, clusters, scale, offset, layout, shares, mass, cost, logsum):  # type: ignore[no-untyped-def]
    n_listed = clusters.shape[1]
    zero = values.dtype.type(0)
    for t in range(lo, hi):
        off = offset[layout.group[t]]
        paid = lse = 0.0
        mass[t] = 0.0
        for p in range(layout.start[t], layout.start[t] + layout.count[t]):
            share, value = shares[p], values[p]
            for r in range(n_listed):
                share[r] = -(scale * value[r]) - off[clusters[p, r]]
            top = share[0]
            for r in range(1, n_listed):
                top = max(top, share[r])
            total = spent = zero
            for r in range(n_listed):
                share[r] = exp(share[r] - top)
                total += share[r]
                spent += share[r] * value[r]
            for r in range(n_listed):
                share[r] /= total
                mass[t, clusters[p, r]] += share[r]
            paid += np.float64(spent / total)
            lse += np.float64(top) + np.log(np.float64(total))
        cost[t] = paid
        logsum[t] = lse


@njit(cache=True, nogil=True, fastmath=FAST)
def _products_listed(shares, clusters, layout, products):  # type: ignore[no-untyped-def]
    """Add the products of the shares of each point to those of its group. It runs in one thread, in a fixed order."""
    n_listed = clusters.shape[1]
    which = np.empty(n_listed, np.int64)
    for t in range(len(layout.group)):
        out = products[layout.group[t]]
        for p in range(layout.start[t], layout.start[t] + layout.count[t]):
            share, cluster = shares[p], clusters[p]
            n_kept = 0
            for r in range(n_listed):
                which[n_kept] = r
                n_kept += int(share[r] >= _SMALL)
            for one in which[:n_kept]:
                for other in which[:n_kept]:
                    out[cluster[one], cluster[other]] += share[one] * share[other]


@njit(cache=True, nogil=True)
def _argmin_listed(lo, hi, values, clusters, prices, layout, labels, mass, cost):  # type: ignore[no-untyped-def]
    """Labels, counts and costs in double precision. Ties go to the cluster with the smallest number."""
    for t in range(lo, hi):
        off = prices[layout.group[t]]
        mass[t] = 0.0
        paid = 0.0
        for p in range(layout.start[t], layout.start[t] + layout.count[t]):
            best, position = np.inf, 0
            for r in range(clusters.shape[1]):
                value = np.float64(values[p, r]) + off[clusters[p, r]]
                if value < best or (value == best and clusters[p, r] < clusters[p, position]):
                    best, position = value, r
            labels[layout.order[p]] = clusters[p, position]
            mass[t, clusters[p, position]] += 1.0
            paid += np.float64(values[p, position])
        cost[t] = paid


def many_short(n_short: int, n_samples: int) -> bool:
    """Whether the lists of too many points were without their cheapest cluster."""
    return n_short > _FEW_SHORT * n_samples


def _least_of_each(cost: np.ndarray, cluster: np.ndarray, most: int, out: np.ndarray) -> None:
    """Set `out` to the largest of the `most` least costs in each cluster that has so many."""
    order = np.lexsort((cost, cluster))
    ends = np.searchsorted(cluster[order], np.arange(len(out) + 1))
    enough = np.diff(ends) >= most
    out[enough] = cost[order][ends[:-1][enough] + most - 1]


class ListedPoints(Potentials):
    """Points in memory, as `TiledPoints` without weights and with squared distances, for many clusters.

    The lists hold the clusters that were cheapest at the prices of the last pass over all clusters, which is made by
    `hard` and `priced`. The other functions use the lists only, so `row_min_sum` is about listed clusters. `a`, shape
    (n_samples, n_listed), has the potentials of the listed clusters, in the order of the layout.
    """

    squared, weights = True, None

    def __init__(
        self,
        X: np.ndarray,
        layout: TileLayout,
        n_groups: int,
        n_clusters: int,
        rows: np.ndarray,
        shift: np.ndarray,
        n_listed: int,
    ) -> None:
        self.X, self.layout, self.n_groups, self._n_clusters = X, layout, n_groups, n_clusters
        self.shift, self._rows = shift, rows
        self._clusters = np.zeros((len(rows), min(n_listed, n_clusters)), np.int32)
        self.a = np.empty(self._clusters.shape, rows.dtype)
        self.row_min = np.empty(len(rows), rows.dtype)
        self._listed_for = np.zeros((n_clusters, rows.shape[1]), rows.dtype)
        self._known = self._measured = False
        self._row_min_sum = 0.0
        self.listed_prices, self.reach, self.n_short = np.zeros((n_groups, n_clusters)), np.inf, 0
        self._priced: tuple[bytes, Any] | None = None

    @property
    def lists(self) -> ListedPoints:
        return self

    @property
    def n_clusters(self) -> int:
        return self._n_clusters

    @classmethod
    def pack(
        cls,
        X: np.ndarray,
        codes: np.ndarray,
        n_groups: int,
        n_clusters: int,
        *,
        shift: np.ndarray | None = None,
        dtype: DTypeLike = np.float32,
    ) -> ListedPoints:
        layout = make_layout(codes, n_groups)
        shift = X.mean(axis=0, dtype=np.float64) if shift is None else shift
        rows = np.empty(X.shape, dtype)
        for start, count in zip(layout.start, layout.count, strict=True):
            # The difference is in double precision.
            rows[start : start + count] = X[layout.order[start : start + count]] - shift
        return cls(X, layout, n_groups, n_clusters, rows, shift, _LISTED)

    def with_clusters(self, n_clusters: int, n_listed: int = _LISTED) -> ListedPoints:
        """The same points for another number of clusters, with lists of their own."""
        return ListedPoints(self.X, self.layout, self.n_groups, n_clusters, self._rows, self.shift, n_listed)

    def for_plain_steps(self) -> ListedPoints:
        """The same points with lists of one cluster."""
        return self.with_clusters(self.n_clusters, 1)

    @property
    def row_min_sum(self) -> float:  # type: ignore[override]
        self._measure()
        return self._row_min_sum

    def measure(self, centers: np.ndarray) -> None:
        """Take these centres, shape (n_clusters, n_features). Distances to them are computed when they are needed."""
        self._centers = np.ascontiguousarray(centers - self.shift, self._rows.dtype)
        self._measured, self._priced = False, None

    @property
    def fit_centers(self) -> bool:
        moved = ((self._centers - self._listed_for) ** 2).sum(axis=1).mean()
        return bool(self._known and moved <= _MOVED * self.reach)

    def _measure(self) -> None:
        """Compute the distances of the listed clusters, if the centres are new."""
        if not self._known:
            self._list(np.zeros((self.n_groups, self.n_clusters)))
        elif not self._measured:
            self._square()

    def _square(self) -> None:
        layout, total = self.layout, np.empty(self.layout.n_tiles)
        out = self._clusters, self.a, self.row_min, total
        run_over_tiles(
            _squares_of_listed, layout.n_tiles, self.a.size, self._rows, self._centers, layout, *out
        )
        self._row_min_sum, self._measured = float(total.sum()), True

    def _list(self, prices: np.ndarray) -> None:
        """List the clusters that are cheapest at these prices; count the points that had not listed the cheapest."""
        layout, dtype, K = self.layout, self._rows.dtype, self.n_clusters
        n_columns = -(-K // _CHUNK) * _CHUNK
        turned = np.zeros((self._rows.shape[1], n_columns), dtype)
        turned[:, :K] = self._centers.T
        # Half of the price and of the squared length, so that the products need no factor. Columns without a cluster
        # are too dear for every list.
        shifted = np.full((self.n_groups, n_columns), np.finfo(dtype).max, dtype)
        squares = (self._centers.astype(np.float64) ** 2).sum(axis=1)
        shifted[:, :K] = (squares + prices - prices.min(axis=1, keepdims=True)) / 2
        short = np.zeros(layout.n_tiles, np.int64)
        given, out = (self._rows, turned, shifted, K), (self._known, self._clusters, self.a, short)
        with one_thread():
            run_over_tiles(_cheapest, layout.n_tiles, self.n_samples * K, *given, layout, *out)
        self._known, self.listed_prices, self.n_short = True, prices, int(short.sum())
        self._listed_for = self._centers
        # The values are half of the reduced costs without the square of the point. If all are alike, steps are free.
        width = float(np.median(self.a[:, -1] - self.a[:, 0]))
        self.reach = width if width > 0 and self._clusters.shape[1] < K else np.inf
        self._square()

    def outgrown(self, prices: np.ndarray) -> bool:
        self.priced(prices)
        return many_short(self.n_short, self.n_samples)

    def kept_lists(self) -> np.ndarray:
        """The lists in the smallest integer type, for `take_lists` of other points of these rows."""
        return self._clusters.astype(np.min_scalar_type(self.n_clusters))

    def take_lists(self, kept: np.ndarray) -> None:
        """Go on with lists that points of the same rows have made, for the same centres or others."""
        self._clusters[:], self._known, self._measured = kept, True, False

    def soft(self, scale: float, offset: np.ndarray, curved: bool = False) -> SoftSums:
        self._measure()
        layout, dtype = self.layout, self.a.dtype
        self._shares, mass = np.empty_like(self.a), np.empty((layout.n_tiles, self.n_clusters))
        potential, logsum = np.empty((2, layout.n_tiles))
        base = offset.min(axis=1, keepdims=True)
        map_of = self.a, self._clusters, dtype.type(scale), (offset - base).astype(dtype)
        out = self._shares, mass, potential, logsum
        run_over_tiles(_soft_listed, layout.n_tiles, self.a.size, *map_of, layout, *out)
        moments = np.zeros((self.n_groups if curved else 0, self.n_clusters, self.n_clusters))
        if curved:
            _products_listed(self._shares, self._clusters, self.layout, moments)
        return *self._summed(scale, base, mass, potential, logsum), moments

    def hard(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        return self.priced(offset / scale)[:3]

    def priced(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        """As `Points.priced`, from a pass over all clusters that lists the cheapest."""
        # Solvers compute a bound and then labels at the same prices. The second call reuses the results of the first.
        if self._priced is not None and self._priced[0] == prices.tobytes():
            labels, *sums = self._priced[1]
            return labels.copy(), *sums
        self._list(prices)
        layout = self.layout
        labels, mass = np.empty(self.n_samples, np.int32), np.empty((layout.n_tiles, self.n_clusters))
        cost = np.empty(layout.n_tiles)
        map_of, out = (self.a, self._clusters, prices), (labels, mass, cost)
        run_over_tiles(_argmin_listed, layout.n_tiles, self.a.size, *map_of, layout, *out)
        counts = sum_by_group(mass, layout, self.n_groups)
        paid = float(cost.sum()) + self._row_min_sum
        results = counts, paid, paid + float((counts * prices).sum())
        self._priced = prices.tobytes(), (labels.copy(), *results)
        return labels, *results

    @property
    def _group(self) -> np.ndarray:
        return np.repeat(self.layout.group, self.layout.count)

    def _regrets(self, prices: np.ndarray, label: np.ndarray) -> np.ndarray:
        """How much dearer each listed cluster is than that of the label; infinite for the latter."""
        reduced, mine = (
            self.a + prices[self._group[:, None], self._clusters],
            self._clusters == label[:, None],
        )
        return np.where(mine, np.inf, reduced - reduced[mine][:, None])

    def close(self, prices: np.ndarray, labels: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
        """Points that pay at most ``reach[group, 0, k]`` to leave cluster k, or ``reach[group, 1, k]`` to enter it.

        `labels` are those of `priced` at these prices. Returns the points, their groups, and the potentials and
        numbers of the listed clusters.
        """
        order, group, clusters = self.layout.order, self._group, self._clusters
        label = labels[order]
        within = np.maximum(reach[group, 0, label][:, None], reach[group[:, None], 1, clusters])
        regret = self._regrets(prices, label)
        # The regret of the own cluster is infinite.
        chosen = ((regret <= within) & (regret < np.inf)).any(axis=1)
        return order[chosen], group[chosen], self.a[chosen].astype(np.float64), clusters[chosen]

    def reach_of(self, prices: np.ndarray, labels: np.ndarray, most: np.ndarray) -> np.ndarray:
        """What `close` needs to find about `most` points of each group that leave each cluster, and as many that enter.

        The shape is (n_groups, 2, n_clusters). Where there are fewer points it is infinite.
        """
        group, label, entered = self._group, labels[self.layout.order], self._clusters[:, :_ENTERED]
        regret = self._regrets(prices, label)
        out = np.full((self.n_groups, 2, self.n_clusters), np.inf)
        for j in range(self.n_groups):
            mine = group == j
            one = regret[mine]
            _least_of_each(one.min(axis=1), label[mine], most[j], out[j, 0])
            _least_of_each(one[:, :_ENTERED].ravel(), entered[mine].ravel(), most[j], out[j, 1])
        return out

    def _two_cheapest(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._measure()
        reduced = self.a + prices[self._group[:, None], self._clusters]
        labels = np.take_along_axis(self._clusters, reduced.argmin(axis=1)[:, None], axis=1)[:, 0]
        low, second = np.partition(reduced, 1, axis=1)[:, :2].T
        return labels, self.row_min + low, second - low

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return cluster_moments(self.X, labels, self.n_clusters)
