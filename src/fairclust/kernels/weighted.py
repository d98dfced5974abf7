"""Points with weights. A point of weight w counts as w points that always have the same label."""

from __future__ import annotations

import numpy as np

from fairclust.kernels.assignment import Potentials, SquaredDistances
from fairclust.kernels.points import TiledPoints
from fairclust.kernels.tiles import TILE


class WeightedPotentials(Potentials):
    """Potentials of points with positive weights of mean 1. Call `weigh` before anything else.

    `weight`, shape (n_tiles, TILE), holds the weights in tiles, and 0 in the padding.
    """

    weights: np.ndarray

    def weigh(self, weights: np.ndarray) -> None:
        layout = self.layout
        self.weights = weights
        self.weight = np.zeros((layout.n_tiles, TILE), self.a.dtype)
        self._tile = np.repeat(np.arange(layout.n_tiles), layout.count)
        self._slot = np.arange(len(layout.order)) - np.repeat(layout.start, layout.count)
        self.weight[self._tile, self._slot] = weights[layout.order]

    @property
    def group_sizes(self) -> np.ndarray:
        """Sum of the weights of each group."""
        layout = self.layout
        return np.bincount(layout.group[self._tile], self.weights[layout.order], self.n_groups)

    def set_distances(self, points: np.ndarray, centers: np.ndarray, *, squared: bool = True) -> None:
        super().set_distances(points, centers, squared=squared)
        self._weigh_minima()

    def set_costs(self, costs: np.ndarray | SquaredDistances) -> None:
        super().set_costs(costs)
        self._weigh_minima()

    def _weigh_minima(self) -> None:
        least = self.row_min[self._tile, self._slot].astype(np.float64)
        self.row_min_sum = float(least @ self.weights[self.layout.order])

    def hard(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        labels = super().hard(scale, offset)[0]
        return labels, *self._weighed(labels)

    def priced(self, prices: np.ndarray) -> tuple[np.ndarray, np.ndarray, float, float]:
        labels = super().priced(prices)[0]
        counts, cost = self._weighed(labels)
        return labels, counts, cost, cost + float((counts * prices).sum())

    def _weighed(self, labels: np.ndarray) -> tuple[np.ndarray, float]:
        """The sum of weights by group and cluster, and the weighted sum of the labels' potentials."""
        layout = self.layout
        own, weights = labels[layout.order], self.weights[layout.order]
        cell = layout.group[self._tile] * self.n_clusters + own
        counts = np.bincount(cell, weights, self.n_groups * self.n_clusters)
        paid = self.a[self._tile, own, self._slot].astype(np.float64)
        return counts.reshape(self.n_groups, self.n_clusters), float(paid @ weights) + self.row_min_sum


class WeightedPoints(WeightedPotentials, TiledPoints):
    """`TiledPoints` with weights."""

    def sums(self, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = np.bincount(labels, self.weights, self.n_clusters)
        sums = [np.bincount(labels, self.weights * column, self.n_clusters) for column in self.X.T]
        return sizes, np.column_stack(sums)
