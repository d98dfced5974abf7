"""The interface between solvers and points: sums over the points, wherever these are stored.

The points may be in memory together with their distances, in a file that is read in every pass, or on several machines.
Solvers do not depend on that. They only get sums that can be added up from chunk to chunk, whose sizes depend on J
groups, K clusters and d features: the J x K table of an assignment, its K x K moments for each group, K x d sums, and
costs. Labels are an array in the order of the points, or an object such as `LazyLabels` that stands for one. Solvers
only pass labels back to the points and read or change those of a few rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np


class Lists(Protocol):
    """Lists of the clusters that are cheapest for each point at some prices."""

    at: np.ndarray
    """The prices, shape (n_groups, n_clusters)."""
    reach: float
    """How far a price may be from these before many lists are too short."""

    @property
    def fit_centers(self) -> bool:
        """Whether the centres are near those for which the lists were made."""

    def outgrown(self, prices: np.ndarray) -> bool:
        """List the clusters that are cheapest at these prices; whether many points had not listed the cheapest one."""


class Points(Protocol):
    """Points at fixed potentials a[p, k], the cost of point p in cluster k."""

    n_groups: int
    row_min_sum: float
    """Sum over points of the least potential."""

    @property
    def lists(self) -> Lists | None:
        """If given, sums of softmax rows are about listed clusters only."""

    @property
    def weights(self) -> np.ndarray | None:
        """Weights of the points with mean 1; None if every point counts once."""

    @property
    def n_samples(self) -> int: ...

    @property
    def n_clusters(self) -> int: ...

    @property
    def group_sizes(self) -> np.ndarray: ...

    @property
    def rounding(self) -> float:
        """Relative error of sums of softmax rows."""

    def mean_gap(self) -> float: ...

    def mean_excess(self) -> float: ...

    def n_beyond(self, limit: float) -> int: ...

    def soft(self, scale: float, offset: np.ndarray) -> tuple[np.ndarray, float, float]: ...

    def soft_moments(
        self, scale: float, offset: np.ndarray
    ) -> tuple[np.ndarray, float, float, np.ndarray]: ...

    def hard(self, scale: float, offset: np.ndarray) -> tuple[Any, np.ndarray, float]: ...

    def priced(self, prices: np.ndarray) -> tuple[Any, np.ndarray, float, float]: ...

    def movable(
        self, prices: np.ndarray, labels: Any, units: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray | None]]: ...


class MeasuredPoints(Points, Protocol):
    """Points whose potentials are distances to centres that move."""

    @property
    def shift(self) -> np.ndarray:
        """Subtracted from points and centres before distances are computed, shape (n_features,)."""

    def measure(self, centers: np.ndarray) -> None: ...

    def sums(self, labels: Any) -> tuple[np.ndarray, np.ndarray]: ...
