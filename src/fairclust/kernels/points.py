"""The interface between solvers and points, and points packed in tiles with their distances to the current centres.

Points may be in memory, in a file that is read in every pass, or on several machines. Solvers only get sums that can be
added up from chunk to chunk, whose sizes depend on J groups, K clusters and d features. Labels are an array in the
order of the points, or `ChunkLabels`, which stand for one. Solvers only pass labels back to the points and read or
change those of a few rows.

The rows of a fit in memory have arrays of their own, and blocks of rows in chunks take turns in the same arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import (
    _LEAST_TILES,
    _PRODUCT_BYTES,
    Potentials,
    SoftSums,
    _argmin,
    _distances,
    cluster_moments,
)
from fairclust.kernels.tiles import (
    TILE,
    blocks,
    distinct_rows,
    make_layout,
    pack_points,
    run_over_tiles,
    sum_by_group,
    zero_tiles,
)

# Equal rows are joined if there are at least _MANY_EQUAL of a kind, in the mean. All rows are sorted for this only if a
# part of at least _FEW_EQUAL of _SOME_ROWS of them are equal to others.
_MANY_EQUAL, _FEW_EQUAL, _SOME_ROWS = 2.0, 0.01, 1 << 14
# The search splits clusters, for which there must be more points than clusters.
_LEAST_POINTS = 4
# With fewer clusters, fits with a table are as fast. With fewer points for each cell of the table of groups and
# clusters, temperatures are so high that points have shares of more clusters than a list holds.
_MANY_CLUSTERS, _PER_CELL = 200, 50
DTYPES = {"single": np.float32, "double": np.float64}


def worth_listing(n_samples: int, n_groups: int, n_clusters: int) -> bool:
    """Whether lists of clusters are faster than a table of the distances of so many rows, and long enough."""
    return n_clusters >= _MANY_CLUSTERS and n_samples >= _PER_CELL * n_groups * n_clusters


class Lists(Protocol):
    """Lists of the clusters that are cheapest for each point at some prices."""

    listed_prices: np.ndarray
    """The prices, shape (n_groups, n_clusters)."""
    reach: float
    """How far a price may be from these before many lists are too short."""

    @property
    def fit_centers(self) -> bool:
        """Whether the centres are near those for which the lists were made."""

    def outgrown(self, prices: np.ndarray) -> bool:
        """List the clusters that are cheapest at these prices; whether many points had not listed the cheapest one."""


class Points(Protocol):
    """N points in J groups at fixed potentials ``a[p, k]``, the cost of point p in cluster k, for K clusters.

    All sums are about ``scale * a[p, k] + offset[group of p, k]``; offsets, prices and tables have the shape (J, K).
    """

    n_groups: int  # J
    row_min_sum: float
    """Sum over points of the least potential."""

    @property
    def lists(self) -> Lists | None:
        """If given, sums of softmax rows are about listed clusters only."""

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the points with mean 1, shape (N,); None if every point counts once."""

    @property
    def n_samples(self) -> int:
        """N."""

    @property
    def n_clusters(self) -> int:
        """K."""

    @property
    def group_sizes(self) -> np.ndarray:
        """The number of points of each group, or the sum of their weights, shape (J,)."""

    @property
    def late_moments(self) -> bool:
        """Whether second moments take so long that only those that are used should be computed, in a further pass."""

    @property
    def rounding(self) -> float:
        """Relative rounding error of sums of softmax rows. The errors of single terms partly cancel."""

    def mean_gap(self) -> float:
        """The mean difference between the least and the second least potential of a point."""

    def mean_excess(self) -> float:
        """The mean over points and clusters of a potential minus the least one of the point."""

    def n_beyond(self, limit: float) -> int:
        """The number of points all of whose potentials are above a limit."""

    def soft(self, scale: float, offset: np.ndarray, curved: bool = False) -> SoftSums:
        """Sums of the softmax rows ``s_p = softmax(-(scale * a_p + offset[group of p]))``.

        These are the table of their sums (J, K), the sum of ``s_pk a_pk``, the sum over points of
        ``log sum_k exp(-(scale * a_pk + offset[group of p, k]))``, and the second moments, which are empty unless
        `curved`: the sums of ``s_p s_p'`` of each group, shape (J, K, K), for Newton's method.
        """

    def hard(self, scale: float, offset: np.ndarray) -> tuple[Any, np.ndarray, float]:
        """Labels of the cheapest clusters, shape (N,), their table (J, K), and the sum of their potentials.

        Ties go to the smallest k.
        """

    def priced(self, prices: np.ndarray) -> tuple[Any, np.ndarray, float, float]:
        """As `hard` with scale 1, in double precision, followed by the sum of the least potentials plus prices."""

    def movable(self, prices: np.ndarray, labels: Any, units: np.ndarray) -> tuple[np.ndarray, ...]:
        """The points that cost least to move: of each group j, ``units[j]`` > 0 or more for each pair of clusters.

        These are the points, their groups, and their potentials minus the least one, shape (n_points, m). The m
        clusters of each point, of the same shape, follow unless they are all K in order.
        """


class MeasuredPoints(Points, Protocol):
    """Points of d features whose potentials are distances to centres that move."""

    @property
    def shift(self) -> np.ndarray:
        """Subtracted from points and centres before distances are computed, shape (d,)."""

    def measure(self, centers: np.ndarray) -> None:
        """Take centres of shape (K, d); the potentials are the distances to them."""

    def sums(self, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """The sizes of the clusters, shape (K,), and the sums of their points, shape (K, d)."""


def tile_room(
    n_points: int, n_groups: int, n_features: int, n_clusters: int, dtype: DTypeLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arrays for the tiles, the distances and the least distances of at most `n_points` points."""
    # The last tile of every group may be partly empty.
    n_tiles = n_points // TILE + n_groups
    packed, a = (zero_tiles(n_tiles, n_rows, dtype) for n_rows in (n_features, n_clusters))
    return packed, a, np.zeros((n_tiles, TILE), dtype)


@dataclass(kw_only=True)
class TiledPoints(Potentials):
    """Points whose potentials are their (squared) distances to the centres of the last `measure`.

    `packed`, shape (n_tiles, n_features, TILE), holds the points minus `shift`, so that rounding errors are small for
    data far from the origin.
    """

    X: np.ndarray
    shift: np.ndarray
    packed: np.ndarray
    squared: bool

    @classmethod
    def pack(
        cls,
        X: np.ndarray,
        codes: np.ndarray,
        n_groups: int,
        n_clusters: int,
        *,
        shift: np.ndarray | None = None,
        squared: bool = True,
        dtype: DTypeLike = np.float32,
        weights: np.ndarray | None = None,
        room: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
    ) -> Self:
        """Sort rows by group and copy them into tiles. The default shift is the mean of the rows.

        The next points that are packed into the same `room` overwrite these.
        """
        room = room or tile_room(len(codes), n_groups, X.shape[1], n_clusters, dtype)
        layout = make_layout(codes, n_groups)
        packed, a, row_min = (part[: layout.n_tiles] for part in room)
        shift = X.mean(axis=0, dtype=np.float64) if shift is None else shift
        pack_points(X, layout, shift, out=packed)
        return cls(
            layout, n_groups, a, row_min, weights=weights, X=X, shift=shift, packed=packed, squared=squared
        )

    def with_clusters(self, n_clusters: int) -> Self:
        """The same points for another number of clusters, with distances of their own."""
        a = zero_tiles(self.layout.n_tiles, n_clusters, self.a.dtype)
        return replace(self, a=a, row_min=np.zeros_like(self.row_min))

    @cached_property
    def of_distinct_rows(self) -> tuple[Self, float] | None:
        """One point for all equal rows of a group, and the mean number of rows of a point; None if that is too small.

        A point's weight is its number of rows, divided by the mean.
        """
        if self.weights is not None:
            return None
        groups = np.empty(self.n_samples, np.int32)
        groups[self.layout.order] = np.repeat(self.layout.group, self.layout.count)
        some = slice(None, None, -(-self.n_samples // _SOME_ROWS))
        if len(distinct_rows(self.X[some], groups[some])[0]) > (1 - _FEW_EQUAL) * len(groups[some]):
            return None
        first, _, counts = distinct_rows(self.X, groups)
        mean = self.n_samples / len(first)
        if mean < _MANY_EQUAL or len(first) < _LEAST_POINTS * self.n_clusters:
            return None
        points = type(self).pack(
            self.X[first],
            groups[first],
            self.n_groups,
            self.n_clusters,
            shift=self.shift,
            squared=self.squared,
            dtype=self.a.dtype,
            weights=counts / mean,
        )
        return points, mean

    def measure(self, centers: np.ndarray) -> None:
        layout, total = self.layout, np.empty(self.layout.n_tiles)
        shifted = np.ascontiguousarray(centers - self.shift, self.a.dtype)
        given, out = (self.packed, shifted, not self.squared), (self.a, self.row_min, total)
        run_over_tiles(_distances, layout.n_tiles, self.a.size, *given, layout, *out)
        self.row_min_sum = float(total.sum()) if self.weights is None else self._weighed_minima()

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.weights is not None:
            sizes = np.bincount(labels, self.weights, self.n_clusters)
            sums = [np.bincount(labels, self.weights * column, self.n_clusters) for column in self.X.T]
            return sizes, np.column_stack(sums)
        return cluster_moments(self.X, labels, self.n_clusters)

    def for_plain_steps(self) -> Any:
        """These points or, for rows without weights whose centres are means, `NearestPoints` of them."""
        return NearestPoints(self) if self.weights is None and self.squared else self


class NearestPoints:
    """Points for plain k-means: one pass finds the nearest centres and adds up the clusters. It stores no distances.

    The `TiledPoints` given must have no weights, and squared distances.
    """

    def __init__(self, points: TiledPoints) -> None:
        self.points, self.n_groups, self.n_clusters = points, points.n_groups, points.n_clusters

    def measure(self, centers: np.ndarray) -> None:
        """Assign every point to the nearest of these centres, shape (n_clusters, n_features); ties go to the first."""
        points, layout = self.points, self.points.layout
        shifted = (centers - points.shift).astype(points.a.dtype)
        labels = np.empty(len(layout.order), np.int32)
        counts, cost = np.empty((layout.n_tiles, self.n_clusters)), np.empty(layout.n_tiles)
        nothing = np.zeros((self.n_groups, self.n_clusters), shifted.dtype)
        most = max(_LEAST_TILES, _PRODUCT_BYTES // (8 * shifted.size))
        sums, of_tiles = np.zeros(shifted.shape), np.empty((min(most, layout.n_tiles), *shifted.shape))
        for tiles in blocks(layout.n_tiles, most):
            part = layout.part(tiles)
            given = None, points.packed[tiles], shifted, None, nothing
            out = labels, counts[tiles], cost[tiles], of_tiles
            entries = part.n_tiles * self.n_clusters * TILE
            run_over_tiles(_argmin, part.n_tiles, entries, *given, part, *out)
            sums += of_tiles[: part.n_tiles].sum(axis=0)
        self._labels, self._cost = labels, float(cost.sum())
        self._counts = sum_by_group(counts, layout, self.n_groups)
        self._sums = sums + self._counts.sum(axis=0)[:, None] * points.shift

    def hard(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """As `Points.hard` at scale 1 and without offsets."""
        return self._labels, self._counts, self._cost

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `TiledPoints.sums`, for the labels of the last `hard`."""
        return self._counts.sum(axis=0), self._sums
