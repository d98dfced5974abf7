"""The interface between solvers and points: sums over the points, wherever these are stored.

The points may be in memory together with their distances, in a file that is read in every pass, or on several machines.
Solvers do not depend on that. They only get sums that can be added up from chunk to chunk, whose sizes depend on J
groups, K clusters and d features: the J x K table of an assignment, its K x K moments for each group, K x d sums, and
costs. Labels are an array in the order of the points, or `ChunkLabels`, which stand for one. Solvers only pass labels
back to the points and read or change those of a few rows.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


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
    def rounding(self) -> float:
        """Relative error of sums of softmax rows."""

    def mean_gap(self) -> float:
        """The mean difference between the least and the second least potential of a point."""

    def mean_excess(self) -> float:
        """The mean over points and clusters of a potential minus the least one of the point."""

    def n_beyond(self, limit: float) -> int:
        """The number of points all of whose potentials are above a limit."""

    def soft(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Sums of the softmax rows s of minus the potentials: table (J, K), sum of s * a, and sum of log-sum-exp."""

    def soft_moments(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, float, float, np.ndarray]:
        """The results of `soft`, and the sums of the products of s of each group, shape (J, K, K)."""

    def hard(self, scale: float, offset: np.ndarray) -> tuple[Any, np.ndarray, float]:
        """Labels of the cheapest clusters, shape (N,), their table (J, K), and the sum of their potentials."""

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
