"""One assignment map for every prototype method: argmin_k (scale * a[p, k] + offset[group, k]).

K-means, the variational method (whose inner loop needs only a counter and a group-by-cluster table), group prices and
isotropic mixtures differ only in `scale`, `offset` and in whether an assignment is hard (argmin) or soft (softmax). The
potentials `a` are stored in tiles, in float32 by default, after the minimum of each row has been subtracted. This
minimum cancels in every softmax and argmin, and with it the rounding errors would be large if `scale` is in the
thousands. Tables and sums over points are always float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numba import njit
from numpy.typing import DTypeLike

from fairclust.kernels.fast import FAST, exp, larger, larger_int, log, quotient, smaller, where_less
from fairclust.kernels.tiles import (
    TILE,
    VECTOR,
    TileLayout,
    add_by_group,
    blocks,
    padded,
    run_over_tiles,
    sum_by_group,
    zero_tiles,
)

# The scale of temperatures is at most _MOST_MEDIANS times the median gap, taken over at most _MEDIAN_POINTS points.
_MOST_MEDIANS, _MEDIAN_POINTS = 30.0, 1 << 15
# From so many clusters on, second moments leave out shares below _SMALL, which do not change the curvature noticeably.
# Most points have larger ones in few clusters. Shares are read _WIDE at a time.
_MANY_CLUSTERS, _SMALL, _WIDE = 96, 1e-6, 32
# Points near boundaries are looked for in blocks of this many rows.
_BLOCK_ROWS = 1 << 14
# Second moments and sums are first computed for every tile of a block, and then added. A block has as many tiles as fit
# into this many bytes, but at least _LEAST_TILES.
_PRODUCT_BYTES, _LEAST_TILES = 1 << 24, 128
# The results of `Points.soft`.
SoftSums = tuple[np.ndarray, float, float, np.ndarray]


# Without the flag "reassoc" sums keep their order, so distances do not depend on the number of features in a sweep.
@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _squares(points, c, n, row):  # type: ignore[no-untyped-def]
    """Add four features per sweep over a tile, because loading and storing the sums takes most of a sweep's time."""
    n_features = len(c)
    zero = row.dtype.type(0)
    for i in range(n):
        row[i] = zero
    f = 0
    while f + 3 < n_features:
        x0, x1, x2, x3 = points[f], points[f + 1], points[f + 2], points[f + 3]
        c0, c1, c2, c3 = c[f], c[f + 1], c[f + 2], c[f + 3]
        for i in range(n):
            d0 = x0[i] - c0
            d1 = x1[i] - c1
            d2 = x2[i] - c2
            d3 = x3[i] - c3
            acc = row[i] + d0 * d0
            acc = acc + d1 * d1
            acc = acc + d2 * d2
            row[i] = acc + d3 * d3
        f += 4
    while f < n_features:
        x = points[f]
        cf = c[f]
        for i in range(n):
            diff = x[i] - cf
            row[i] += diff * diff
        f += 1


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _sum(values, n):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(n):
        total += np.float64(values[i])
    return total


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _distances(lo, hi, points, centers, root, layout, a, row_min, total):  # type: ignore[no-untyped-def]
    """(Squared) distances minus the least of each point, the least ones, and their sum over each tile."""
    for t in range(lo, hi):
        n = padded(layout.count[t])
        low = row_min[t]
        low[:n] = np.inf
        for k in range(len(centers)):
            row = a[t, k]
            _squares(points[t], centers[k], n, row)
            if root:
                for i in range(n):
                    row[i] = np.sqrt(row[i])
            for i in range(n):
                low[i] = smaller(low[i], row[i])
        for k in range(len(centers)):
            row = a[t, k]
            for i in range(n):
                row[i] -= low[i]
        total[t] = _sum(low, layout.count[t])


@njit(cache=True, nogil=True, fastmath=FAST)
def _two_cheapest(lo, hi, a, offset, layout, labels, low, second):  # type: ignore[no-untyped-def]
    """The cluster with the least ``a + offset`` of each point, this number, and the second least one."""
    none = np.int32(0)
    for t in range(lo, hi):
        n, off, arg, one, two = padded(layout.count[t]), offset[layout.group[t]], labels[t], low[t], second[t]
        arg[:n] = 0
        one[:n] = np.inf
        two[:n] = np.inf
        for k in range(a.shape[1]):
            row, number, price = a[t, k], np.int32(k), off[k]
            for i in range(n):
                value = row[i] + price
                arg[i] = larger_int(arg[i], where_less(value, one[i], number, none))
                two[i] = smaller(two[i], larger(one[i], value))
                one[i] = smaller(one[i], value)


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _few_products(s, n, which, out):  # type: ignore[no-untyped-def]
    """As `_outer_products`, of large shares only; False if a point has too many, for which `which` has no place."""
    n_large = np.zeros(n, np.int32)
    zero = s.dtype.type(0)
    for k in range(len(s)):
        row = s[k]
        for first in range(0, n, _WIDE):
            total = zero
            for i in range(first, first + _WIDE):
                total += row[i]
            if total < _SMALL:
                continue
            for i in range(first, first + _WIDE):
                if row[i] >= _SMALL:
                    if n_large[i] == which.shape[1]:
                        return False
                    which[i, n_large[i]] = k
                    n_large[i] += 1
    for i in range(n):
        for k in which[i, : n_large[i]]:
            for m in which[i, : n_large[i]]:
                out[k, m] += s[k, i] * s[m, i]
    return True


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _outer_products(s, n, out):  # type: ignore[no-untyped-def]
    """Add sum_i s[k, i] s[l, i] to out[k, l], in blocks of 2 x 4 sums, so that a load is used in several products."""
    n_clusters = s.shape[0]
    zero = s.dtype.type(0)
    for k in range(0, n_clusters, 2):
        x0, x1 = s[k], s[min(k + 1, n_clusters - 1)]
        for m in range(0, k + 2, 4):
            y0, y1 = s[m], s[min(m + 1, n_clusters - 1)]
            y2, y3 = s[min(m + 2, n_clusters - 1)], s[min(m + 3, n_clusters - 1)]
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = zero
            for i in range(n):
                a0 += x0[i] * y0[i]
                a1 += x0[i] * y1[i]
                a2 += x0[i] * y2[i]
                a3 += x0[i] * y3[i]
                b0 += x1[i] * y0[i]
                b1 += x1[i] * y1[i]
                b2 += x1[i] * y2[i]
                b3 += x1[i] * y3[i]
            for r, row in enumerate(((a0, a1, a2, a3), (b0, b1, b2, b3))):
                for c, value in enumerate(row):
                    if k + r < n_clusters and m + c <= k + r:
                        out[k + r, m + c] += value
                        out[m + c, k + r] = out[k + r, m + c]


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _soft(lo, hi, a, scale, offset, layout, weight, mass, potential, logsum, products):  # type: ignore[no-untyped-def]
    """Sums over the softmax rows of every tile, each row times its weight, unless `weight` is None.

    Numba compiles one version for points without weights and one for points with weights.
    """
    n_clusters = a.shape[1]
    zero = a.dtype.type(0)
    one = a.dtype.type(1)
    curved = len(products) > 0
    # Products of two smaller shares would be subnormal numbers, with which a pass takes ten times as long.
    least = np.sqrt(np.finfo(a.dtype).tiny)
    s = np.empty((n_clusters, TILE), a.dtype)
    top = np.empty(TILE, a.dtype)
    total = np.empty(TILE, a.dtype)
    weighted = np.empty(TILE, a.dtype)
    product = np.empty(VECTOR)
    # With more large shares for each point, products of all shares take less time.
    which = np.empty((TILE, n_clusters // 8), np.int32)
    if curved:
        products[lo:hi] = zero
    for t in range(lo, hi):
        n, width = layout.count[t], padded(layout.count[t])
        g = layout.group[t]
        top[:width] = -np.inf
        for k in range(n_clusters):
            row = a[t, k]
            z = s[k]
            off = offset[g, k]
            for i in range(width):
                z[i] = -(scale * row[i]) - off
                top[i] = larger(top[i], z[i])
        total[:width] = zero
        weighted[:width] = zero
        for k in range(n_clusters):
            row = a[t, k]
            z = s[k]
            for i in range(width):
                e = exp(z[i] - top[i])
                z[i] = e
                total[i] += e
                weighted[i] += e * row[i]
        lse = 0.0
        if weight is None:
            for i in range(n):
                lse += np.float64(top[i])
            # One logarithm of the product of up to 8 totals, because logarithms would take much of the pass. Totals are
            # in [1, K], so the products do not overflow.
            total[n:width] = one
            product[:] = 1.0
            for i in range(0, width, VECTOR):
                for m in range(VECTOR):
                    product[m] *= np.float64(total[i + m])
            for m in range(VECTOR):
                lse += log(product[m])
        else:
            for i in range(n):
                lse += np.float64(weight[t, i]) * (np.float64(top[i]) + log(np.float64(total[i])))
        for i in range(width):
            total[i] = quotient(one if weight is None else weight[t, i], total[i])
        total[n:width] = zero
        sa = zero
        for i in range(width):
            sa += weighted[i] * total[i]
        potential[t] = sa
        logsum[t] = lse
        for k in range(n_clusters):
            z = s[k]
            acc = zero
            if curved:
                for i in range(width):
                    share = z[i] * total[i]
                    acc += share
                    z[i] = where_less(share, least, zero, share)
            else:
                for i in range(width):
                    z[i] *= total[i]
                    acc += z[i]
            mass[t, k] = acc
        if curved and weight is not None:
            # The products of the rows times the square roots of their weights are those of the rows, weighted.
            for i in range(n):
                weighted[i] = one / np.sqrt(weight[t, i])
            for k in range(n_clusters):
                z = s[k]
                for i in range(n):
                    z[i] *= weighted[i]
        if curved and not (n_clusters >= _MANY_CLUSTERS and _few_products(s, width, which, products[t])):
            _outer_products(s, width, products[t])


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"}, forceinline=True)
def _take_cheaper(k, row, scale, off, n, best, arg):  # type: ignore[no-untyped-def]
    """Put cluster k into `arg` for the points of a tile for which it is the first or costs less than those before."""
    real, number, none = best.dtype.type, np.int32(k), np.int32(0)
    if k == 0:
        best[:n] = np.inf
        arg[:n] = 0
    for i in range(n):
        v = row[i] if scale is None else scale * real(row[i]) + off
        arg[i] = larger_int(arg[i], where_less(v, best[i], number, none))
        best[i] = smaller(best[i], v)


@njit(cache=True, nogil=True, fastmath={"contract", "nsz"})
def _argmin(  # type: ignore[no-untyped-def]
    lo, hi, a, points, centers, scale, offset, layout, labels, mass, potential, sums
):
    """Labels, counts and costs of every tile in the precision of `scale` and `offset`.

    If `a` is None, the potentials are the squared distances of `points` to `centers`, and `sums` gets the sums of the
    points of each cluster. Numba compiles a version for each precision, with and without `a`.
    """
    n_clusters = mass.shape[1]
    squares = np.empty(TILE, offset.dtype)
    best = np.empty(TILE, offset.dtype)
    arg = np.empty(TILE, np.int32)
    for t in range(lo, hi):
        n = padded(layout.count[t])
        g = layout.group[t]
        for k in range(n_clusters):
            if a is not None:
                _take_cheaper(k, a[t, k], scale, offset[g, k], n, best, arg)
            if points is not None:
                _squares(points[t], centers[k], n, squares)
                _take_cheaper(k, squares, None, None, n, best, arg)
        mass[t] = 0.0
        if sums is not None:
            sums[t] = 0.0
        paid = 0.0
        for i in range(layout.count[t]):
            k = arg[i]
            labels[layout.order[layout.start[t] + i]] = k
            mass[t, k] += 1.0
            if a is not None:
                paid += np.float64(a[t, k, i])
            if points is not None:
                paid += best[i]
                for f in range(points.shape[1]):
                    sums[t, k, f] += points[t, f, i]
        potential[t] = paid


@njit(cache=True, nogil=True)
def add_moments(X, labels, centers, sizes, sums):  # type: ignore[no-untyped-def]
    """Add up the points of each cluster; returns the sum of squared distances to the centres, 0 if these are None."""
    cost = 0.0
    for p in range(X.shape[0]):
        k = labels[p]
        sizes[k] += 1
        for f in range(X.shape[1]):
            x = np.float64(X[p, f])
            sums[k, f] += x
            if centers is not None:
                apart = x - centers[k, f]
                cost += apart * apart
    return cost


@dataclass
class Potentials:
    """Potentials of all points in tiles: `a` holds ``a[p, k] - min_k a[p, k]``, shape (n_tiles, n_clusters, TILE).

    These are at least zero, and their padding must be finite. `row_min`, shape (n_tiles, TILE), holds the minima, and
    `row_min_sum` is their sum over all real points. `weights`, shape (n_samples,), are positive and have mean 1. They
    are None if every point counts once. The other methods are those of `fairclust.kernels.points.Points`.
    """

    layout: TileLayout
    n_groups: int
    a: np.ndarray
    row_min: np.ndarray
    row_min_sum: float = 0.0
    weights: np.ndarray | None = None
    lists: ClassVar[Any] = None

    @classmethod
    def empty(
        cls,
        layout: TileLayout,
        n_groups: int,
        n_clusters: int,
        dtype: DTypeLike = np.float32,
        weights: np.ndarray | None = None,
    ) -> Self:
        a = zero_tiles(layout.n_tiles, n_clusters, dtype)
        return cls(layout, n_groups, a, np.zeros((layout.n_tiles, TILE), dtype), weights=weights)

    @cached_property
    def weight(self) -> np.ndarray | None:
        """The weights in tiles."""
        if self.weights is None:
            return None
        weight = np.zeros_like(self.row_min)
        # Shares are divided by the roots of weights, of which none may become 0 in single precision.
        weight[self._places] = np.maximum(self.weights[self.layout.order], np.finfo(weight.dtype).tiny)
        return weight

    @cached_property
    def _places(self) -> tuple[np.ndarray, np.ndarray]:
        """The tile of each point and its place in the tile, in the order of the layout."""
        tile = np.repeat(np.arange(self.layout.n_tiles), self.layout.count)
        return tile, np.arange(len(tile)) - self.layout.start[tile]

    @property
    def n_samples(self) -> int:
        return len(self.layout.order)

    @property
    def n_clusters(self) -> int:
        return self.a.shape[1]

    @cached_property
    def group_sizes(self) -> np.ndarray:
        layout = self.layout
        if self.weights is not None:
            return np.bincount(layout.group[self._places[0]], self.weights[layout.order], self.n_groups)
        return np.bincount(layout.group, layout.count, self.n_groups)

    @property
    def late_moments(self) -> bool:
        return self.lists is None and self.n_clusters >= _MANY_CLUSTERS

    @property
    def rounding(self) -> float:
        return 1e-14 if self.a.dtype == np.float64 else 1e-7

    def set_costs(self, costs: np.ndarray) -> None:
        """Fill in potentials of any kind, shape (n_samples, n_clusters), in the order of the points.

        They are read tile by tile and never copied as a whole, so the array may be mapped from a file.
        """
        layout = self.layout
        for t, (start, count) in enumerate(zip(layout.start, layout.count, strict=True)):
            rows = np.asarray(costs[layout.order[start : start + count]], np.float64)
            least = rows.min(axis=1)
            self.row_min[t, :count] = least
            self.a[t, :, :count] = (rows - least[:, None]).T
        total = float(self.row_min.sum(dtype=np.float64))
        self.row_min_sum = total if self.weights is None else self._weighed_minima()

    def _weighed_minima(self) -> float:
        least = self.row_min[self._places].astype(np.float64)
        return float(least @ self.weights[self.layout.order])  # type: ignore[index]

    def mean_excess(self) -> float:
        """Mean of ``a[p, k] - min_k a[p, k]``, padding included. It is needed if `mean_gap` is zero."""
        return float(self.a.mean(dtype=np.float64))

    def n_beyond(self, limit: float) -> int:
        real = np.arange(TILE) < self.layout.count[:, None]
        return int((real & (self.row_min > limit)).sum())

    def movable(self, prices: np.ndarray, labels: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, ...]:
        """As `Points.movable`; the points are positions in `labels`."""
        return self.close(prices, labels, self.reach_of(prices, labels, units))

    def reach_of(self, prices: np.ndarray, labels: np.ndarray, most: np.ndarray) -> np.ndarray:
        """What `close` needs to find the `most` points of each group that change at the least cost.

        The shape is (n_groups, n_clusters, n_clusters), for each change from a cluster to another. Where there are
        fewer points it is infinite.
        """
        K = self.n_clusters
        reach = np.full((self.n_groups, K, K), np.inf)
        tile, slot = self._places
        label, of_group = labels[self.layout.order], self.layout.group[tile]
        for j in range(self.n_groups):
            begin, end = np.searchsorted(of_group, (j, j + 1))
            for k in range(K):
                mine = begin + np.flatnonzero(label[begin:end] == k)
                if len(mine) > most[j]:
                    reduced = self.a[tile[mine], :, slot[mine]] + prices[j]
                    regret = reduced - reduced[:, k : k + 1]
                    reach[j, k] = np.partition(regret, most[j] - 1, axis=0)[most[j] - 1]
        reach[:, range(K), range(K)] = -np.inf
        return reach

    def close(self, prices: np.ndarray, labels: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, ...]:
        """The points whose reduced costs in two clusters are (nearly) equal, their groups, and their potentials.

        `labels` are those of `priced` at these prices. ``reach[g, k, l]`` is the most that a point of group g may pay
        to change from k to l. A point is returned if it can change to some cluster at that cost.
        """
        parts = []
        tile, slot = self._places
        for block in blocks(self.n_samples, _BLOCK_ROWS):
            rows, group = self.layout.order[block], self.layout.group[tile[block]]
            excess = self.a[tile[block], :, slot[block]].astype(np.float64)
            reduced, label = excess + prices[group], labels[rows]
            paid = reduced[np.arange(len(rows)), label]
            near = (reduced - paid[:, None] <= reach[group, label]).any(axis=1)
            parts.append((rows[near], group[near], excess[near]))
        return tuple(map(np.concatenate, zip(*parts, strict=True)))

    def _two_cheapest(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The cheapest cluster of each point, its potential plus price, and how much more the second cheapest costs.

        All have shape (n_samples,), in the order of the layout. The least price of each group is zero, and there are at
        least two clusters.
        """
        layout, shape, dtype = self.layout, self.row_min.shape, self.a.dtype
        labels, low, second = np.empty(shape, np.int32), np.empty(shape, dtype), np.empty(shape, dtype)
        given = self.a, prices.astype(dtype), layout
        run_over_tiles(_two_cheapest, layout.n_tiles, self.a.size, *given, labels, low, second)
        real = np.arange(TILE) < layout.count[:, None]
        least = low[real]
        return labels[real], self.row_min[real] + least, second[real] - least

    def mean_gap(self) -> float:
        """Mean over points of the second smallest minus the smallest potential, which is the scale of temperatures.

        Zero for a single cluster. If the median is positive, the result is at most thirty times the median, so that a
        few points far from all others do not determine it.
        """
        if self.n_clusters == 1:
            return 0.0
        gaps = self._two_cheapest(np.zeros((self.n_groups, self.n_clusters)))[2]
        mean = float(gaps.mean(dtype=np.float64))
        # The median is rarely needed, and over all points it would take longer than a pass.
        sample = gaps[:: -(-len(gaps) // _MEDIAN_POINTS)]
        if 2 * np.count_nonzero(_MOST_MEDIANS * sample < mean) < len(sample):
            return mean
        median = float(np.median(sample))
        return min(mean, _MOST_MEDIANS * median) if median > 0 else mean

    def losses(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What each cluster costs its points at the prices, and how much more they would pay without it.

        Both have shape (n_clusters,). There are at least two clusters.
        """
        layout, prices = self.layout, prices - prices.min(axis=1, keepdims=True)
        labels, paid, lost = self._two_cheapest(prices)
        # What is paid has the rounding errors of single precision, and no cost is negative.
        paid = np.maximum(paid - prices[np.repeat(layout.group, layout.count), labels], 0.0)
        if self.weights is not None:
            weights = self.weights[layout.order]
            paid, lost = weights * paid, weights * lost
        return np.bincount(labels, paid, self.n_clusters), np.bincount(labels, lost, self.n_clusters)

    def soft(self, scale: float, offset: np.ndarray, curved: bool = False) -> SoftSums:
        layout, dtype, n_clusters = self.layout, self.a.dtype, self.n_clusters
        moments = np.zeros((self.n_groups if curved else 0, n_clusters, n_clusters))
        mass = np.empty((layout.n_tiles, n_clusters))
        potential = np.empty(layout.n_tiles)
        logsum = np.empty(layout.n_tiles)
        # A constant for each group cancels in the softmax. Subtracting it makes the rounding errors smaller.
        base = offset.min(axis=1, keepdims=True)
        shifted = (offset - base).astype(dtype)
        # Every tile has its own products, which are added in the order of the tiles. Each block of tiles overwrites the
        # products of the block before.
        most = layout.n_tiles
        if curved:
            most = min(most, max(_LEAST_TILES, _PRODUCT_BYTES // (dtype.itemsize * n_clusters**2)))
        products = np.empty((most if curved else 0, n_clusters, n_clusters), dtype)
        for tiles in blocks(layout.n_tiles, max(1, most)):
            a, part = self.a[tiles], layout.part(tiles)
            weight = None if self.weight is None else self.weight[tiles]
            out = mass[tiles], potential[tiles], logsum[tiles], products
            run_over_tiles(_soft, part.n_tiles, a.size, a, dtype.type(scale), shifted, part, weight, *out)
            if curved:
                add_by_group(products[: part.n_tiles], part.group, moments)
        return *self._summed(scale, base, mass, potential, logsum), moments

    def _summed(
        self, scale: float, base: np.ndarray, mass: np.ndarray, potential: np.ndarray, logsum: np.ndarray
    ) -> tuple[np.ndarray, float, float]:
        """`soft` from the sums over each tile, which are without the least potentials and the groups' `base`."""
        taken_out = scale * self.row_min_sum + float(self.group_sizes @ base[:, 0])
        return (
            sum_by_group(mass, self.layout, self.n_groups),
            float(potential.sum()) + self.row_min_sum,
            float(logsum.sum()) - taken_out,
        )

    def hard(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        base = offset.min(axis=1, keepdims=True)
        dtype = self.a.dtype
        return self._assigned(dtype.type(scale), (offset - base).astype(dtype))

    def priced(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        labels, counts, cost = self._assigned(1.0, prices)
        return labels, counts, cost, cost + float((counts * prices).sum())

    def _assigned(self, scale: Any, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        layout = self.layout
        labels = np.empty(len(layout.order), np.int32)
        mass = np.empty((layout.n_tiles, self.n_clusters))
        potential = np.empty(layout.n_tiles)
        given, out = (self.a, None, None, scale, offset), (labels, mass, potential, None)
        run_over_tiles(_argmin, layout.n_tiles, self.a.size, *given, layout, *out)
        if self.weights is not None:
            label, weights = labels[layout.order], self.weights[layout.order]
            tile, slot = self._places
            cell = layout.group[tile] * self.n_clusters + label
            counts = np.bincount(cell, weights, self.n_groups * self.n_clusters)
            paid = self.a[tile, label, slot].astype(np.float64)
            return labels, counts.reshape(self.n_groups, -1), float(paid @ weights) + self.row_min_sum
        counts = sum_by_group(mass, layout, self.n_groups)
        return labels, counts, float(potential.sum()) + self.row_min_sum


def cluster_moments(X: np.ndarray, labels: np.ndarray, n_clusters: int) -> tuple[np.ndarray, np.ndarray]:
    """Cluster sizes, shape (n_clusters,), and float64 sums of the points, shape (n_clusters, n_features)."""
    sizes, sums = np.zeros(n_clusters, np.int64), np.zeros((n_clusters, X.shape[1]))
    add_moments(X, labels, None, sizes, sums)
    return sizes, sums
