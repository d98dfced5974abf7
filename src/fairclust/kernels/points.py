"""Points in memory, packed in tiles together with their distances to the current centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from fairclust.kernels.assignment import Potentials, cluster_moments, nearest_centers
from fairclust.kernels.tiles import TILE, make_layout, pack_points, zero_tiles

DTYPES = {"single": np.float32, "double": np.float64}


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
    ) -> Self:
        """Sort rows by group and copy them into tiles. The default shift is the mean of the rows."""
        layout = make_layout(codes, n_groups)
        shift = X.mean(axis=0, dtype=np.float64) if shift is None else shift
        a = zero_tiles(layout.n_tiles, n_clusters, dtype)
        row_min = np.zeros((layout.n_tiles, TILE), dtype)
        packed = pack_points(X, layout, shift, dtype)
        return cls(layout, n_groups, a, row_min, X=X, shift=shift, packed=packed, squared=squared)

    def measure(self, centers: np.ndarray) -> None:
        """Compute the distances to these centres, shape (n_clusters, n_features)."""
        self.set_distances(self.packed, centers - self.shift, squared=self.squared)

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cluster sizes, shape (n_clusters,), and sums of the points, shape (n_clusters, n_features)."""
        return cluster_moments(self.X, labels, self.n_clusters)


class NearestPoints:
    """Points for plain k-means: one pass finds the nearest centres and adds up the clusters. It stores no distances.

    The `TiledPoints` given must have squared distances.
    """

    def __init__(self, points: TiledPoints) -> None:
        self.points, self.n_groups, self.n_clusters = points, points.n_groups, points.n_clusters

    def measure(self, centers: np.ndarray) -> None:
        """Assign every point to the nearest of these centres, shape (n_clusters, n_features)."""
        points = self.points
        shifted = (centers - points.shift).astype(points.a.dtype)
        self._labels, self._counts, sums, self._cost = nearest_centers(
            points.packed, shifted, points.layout, self.n_groups
        )
        self._sums = sums + self._counts.sum(axis=0)[:, None] * points.shift

    def hard(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """As `Potentials.hard` at scale 1 and without offsets."""
        return self._labels, self._counts, self._cost

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `TiledPoints.sums`, for the labels of the last `hard`."""
        return self._counts.sum(axis=0), self._sums
