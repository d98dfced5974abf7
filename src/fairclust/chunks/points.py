"""Points that lie in chunks. Every pass computes the distances again and keeps only sums over the points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from fairclust.base import Diverged
from fairclust.chunks.engines import Engine, Threads
from fairclust.chunks.passes import (
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
from fairclust.chunks.sources import Chunk, slices_of
from fairclust.chunks.survey import Survey
from fairclust.kernels.assignment import of_groups
from fairclust.kernels.listed import ListedPoints, many_short, worth_listing
from fairclust.kernels.points import TiledPoints

# The search for movable rows goes further from the boundaries than the sample suggests, so that one pass is nearly
# always enough. It aims at _MORE times the rows needed and _SPARE_ROWS more. If they are not enough, another pass goes
# _FURTHER times as far.
_MORE, _SPARE_ROWS, _FURTHER = 3, 8, 4.0
# Lists of more rows are made anew in every pass. For these they take up to a gigabyte.
_KEPT_ROWS = 20_000_000


@dataclass
class LazyLabels:
    """Labels described by a map and by the few rows that have moved. They are computed only when they are needed."""

    by: Map
    n_rows: int
    # Sizes of the map's clusters and sums of their points, as `ChunkedPoints.sums` returns.
    sizes: np.ndarray
    sums: np.ndarray
    # Rows whose label differs from the map's, and their labels.
    moved: dict[int, int] = field(default_factory=dict)
    _seen: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.n_rows

    def copy(self) -> LazyLabels:
        """The same labels, whose rows can be moved without moving those of the others."""
        return replace(self, moved=dict(self.moved), _seen=dict(self._seen))

    def see(self, rows: np.ndarray, labels: np.ndarray) -> None:
        """Store the map's labels of a few rows, so that these can be read and changed by indexing."""
        self._seen.update(zip(rows.tolist(), labels.tolist(), strict=True))

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        return np.array([self.moved.get(row, self._seen[row]) for row in rows.tolist()], np.int32)

    def __setitem__(self, rows: np.ndarray, labels: np.ndarray) -> None:
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            if label == self._seen[row]:
                self.moved.pop(row, None)
            else:
                self.moved[row] = label

    def moved_in(self, chunks: list[Chunk]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """For every chunk, yield the rows that moved, as positions in the chunk, and their labels."""
        rows = np.array(sorted(self.moved), np.int64)
        labels = np.array([self.moved[row] for row in rows.tolist()], np.int64)
        for of_chunk in slices_of(chunks):
            low, high = np.searchsorted(rows, (of_chunk.start, of_chunk.stop))
            yield rows[low:high] - of_chunk.start, labels[low:high]


class ChunkedPoints:
    """An implementation of `fairclust.solvers.points.MeasuredPoints` for rows in chunks.

    `mean_gap` and `mean_excess` are those of the sample. They set the scale of the temperatures, which need not be
    exact. `n_passes` counts the passes over all rows, the survey included.
    """

    weights = None

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
        self._listed = takes_lists and worth_listing(known.X, *shape)
        kind = ListedPoints if self._listed else TiledPoints
        self.sample = kind.pack(known.X, known.codes, *shape, shift=known.center, dtype=dtype)
        self.rounding, self.shift = self.sample.rounding, self.sample.shift
        self.mean_gap, self.mean_excess = self.sample.mean_gap, self.sample.mean_excess
        self.row_min_sum = 0.0
        self.n_passes = 1
        self._at: np.ndarray | None = None
        # Lists of clusters, and what the last pass over all clusters told of them (`fairclust.solvers.points.Lists`).
        keeps = self._listed and self.n_samples <= _KEPT_ROWS and isinstance(engine, Threads)
        self._kept: Kept | None = {} if keeps else None
        self.at, self.reach, self._n_short = np.zeros(shape), np.inf, 0
        self._n_listings, self.fit_centers = 0, False
        self._priced: tuple[bytes, tuple[LazyLabels, np.ndarray, float, float]] | None = None

    @property
    def lists(self) -> ChunkedPoints | None:
        return self if self._listed else None

    def outgrown(self, prices: np.ndarray) -> bool:
        """See `fairclust.solvers.points.Lists`."""
        self.priced(prices)
        return many_short(self._n_short, self.n_samples)

    def measure(self, centers: np.ndarray) -> None:
        """Set the centres, shape (n_clusters, n_features), to which later passes measure distances."""
        if self._at is not None and np.array_equal(centers, self._at):
            return
        self.sample.measure(centers)
        self._at = centers
        self._priced, self.fit_centers = None, False
        # This is an estimate from the sample. The next pass replaces it by the sum.
        self.row_min_sum = self.sample.row_min_sum * self.n_samples / self.sample.n_samples

    def map_of(
        self, scale: float, offset: np.ndarray, *, precise: bool = False, lists_anew: bool = False
    ) -> Map:
        assert self._at is not None
        found = Map(self.names, self.shift, self._at, scale, offset, precise, self._dtype)
        if not self._listed:
            return found
        made_by = self._n_listings
        self._n_listings += lists_anew
        prices = self.at if self.fit_centers else None
        return found._replace(lists=Listing(self._kept, made_by, prices, self._n_listings))

    def _sum(self, function: Any, *args: Any) -> tuple[Any, ...]:
        total = total_of(self.engine.run(function, self.chunks, *args))
        self.n_passes += 1
        self.row_min_sum = total[-1]
        if not all(np.isfinite(one).all() for one in total):
            raise Diverged(
                "the distances of the rows to the centres have no finite sum: divide the features, and `init` if it "
                "is given, by a power of ten"
            )
        return total[:-1]

    def n_beyond(self, limit: float) -> int:
        """As `Potentials.n_beyond`."""
        by = self.map_of(1.0, np.zeros((self.n_groups, self.n_clusters)))
        return int(self._sum(rows_beyond, by, limit)[0])

    def soft(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, float, float]:
        """As `Potentials.soft`."""
        return self._sum(soft_sums, self.map_of(scale, offset), "soft")

    def soft_moments(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """As `Potentials.soft_moments`."""
        return self._sum(soft_sums, self.map_of(scale, offset), "soft_moments")

    def hard(self, scale: float, offset: np.ndarray) -> tuple[LazyLabels, np.ndarray, float]:
        """As `Potentials.hard`, but the labels are `LazyLabels`."""
        return self._hard(self.map_of(scale, offset, lists_anew=True))

    def priced(self, prices: np.ndarray) -> tuple[LazyLabels, np.ndarray, float, float]:
        """As `Potentials.priced`, but the labels are `LazyLabels`."""
        # Solvers compute a bound and then labels at the same prices. The second call reuses the results of the first.
        key = prices.tobytes()
        if self._priced is None or self._priced[0] != key:
            labels, counts, cost = self._hard(self.map_of(1.0, prices, precise=True, lists_anew=True))
            self._priced = key, (labels, counts, cost, cost + float((counts * prices).sum()))
        return self._priced[1]

    def _hard(self, by: Map) -> tuple[LazyLabels, np.ndarray, float]:
        counts, cost, sizes, sums, (n_short, reach, n_reached) = self._sum(hard_sums, by)
        self._n_short, self.reach = int(n_short), reach / n_reached if n_reached else np.inf
        self.at, self.fit_centers = by.offset / by.scale, True
        if by.lists is not None:
            # A later pass with this map makes its own lists, so it needs none to begin with.
            by = by._replace(lists=by.lists._replace(prices=None))
        return LazyLabels(by, self.n_samples, sizes, sums), counts, cost

    def sums(self, labels: LazyLabels) -> tuple[np.ndarray, np.ndarray]:
        """Cluster sizes and sums of the points, from the pass that made the labels. Moved rows do not change them."""
        return labels.sizes, labels.sums

    def movable(
        self, prices: np.ndarray, labels: LazyLabels, units: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]:
        """As `Potentials.movable`, but with a few more rows than are needed."""
        if not units.any():
            return
        by, sample = self.map_of(1.0, prices, precise=True), self.sample
        most = np.ceil(_MORE * units * sample.group_sizes / self.group_sizes).astype(int) + _SPARE_ROWS
        reach = sample.reach_of(prices, sample.priced(prices)[0], np.where(units > 0, most, 0))
        if self._listed:
            assert np.array_equal(prices, self.at)
            # A few rows too little leave a few points off the bounds, so one pass is enough.
            found = rows, groups, excess, clusters = self._close(by, reach)
            reduced = excess + prices[groups[:, None], clusters]
            # Ties go to the cluster with the smallest number, as in `priced`.
            cheapest = reduced == reduced.min(axis=1, keepdims=True)
            labels.see(rows, np.where(cheapest, clusters, self.n_clusters).min(axis=1))
        else:
            found = self._near(by, labels, units, reach)
        yield from of_groups(units, *found)

    def _near(self, by: Map, labels: LazyLabels, units: np.ndarray, reach: np.ndarray) -> list[np.ndarray]:
        """Rows near a boundary, with their groups and excess. Their labels are stored."""
        while True:
            rows, groups, excess = self._close(by, reach)
            reduced = excess + by.offset[groups]
            old = reduced.argmin(axis=1)
            short = _too_few(reach, units, groups, old, reduced)
            if not short.any():
                break
            reach = np.where(short, np.where(reach > 0, _FURTHER * reach, np.inf), reach)
        labels.see(rows, old)
        return [rows, groups, excess]

    def _close(self, by: Map, reach: np.ndarray) -> list[np.ndarray]:
        """The results of `close_to` for all chunks, with rows numbered over all chunks."""
        parts: list[tuple[np.ndarray, ...]] = []
        found = self.engine.run(close_to, self.chunks, by, reach)
        for of_chunk, blocks in zip(slices_of(self.chunks), found, strict=True):
            parts += [(rows + of_chunk.start, *more) for rows, *more in blocks]
        self.n_passes += 1
        return [np.concatenate(part) for part in zip(*parts, strict=True)]

    def written(self, labels: LazyLabels) -> Iterator[np.ndarray]:
        """Yield the final labels, moved rows included, chunk by chunk."""
        yield from self.engine.run(labels_of, self.chunks, labels.by, each=labels.moved_in(self.chunks))
        self.n_passes += 1


def _too_few(
    reach: np.ndarray, units: np.ndarray, groups: np.ndarray, old: np.ndarray, reduced: np.ndarray
) -> np.ndarray:
    """For which entries of `reach` fewer rows than `units` were found, as booleans of the shape of `reach`."""
    regret = reduced - np.take_along_axis(reduced, old[:, None], axis=1)
    short = np.zeros(reach.shape, bool)
    for j in np.flatnonzero(units):
        for k in range(reach.shape[1]):
            found = (regret[(groups == j) & (old == k)] <= reach[j, k]).sum(axis=0)
            short[j, k] = (found < units[j]) & np.isfinite(reach[j, k])
            short[j, k, k] = False
    return short
