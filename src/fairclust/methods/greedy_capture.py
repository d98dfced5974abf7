"""Greedy capture (Chen et al., ICML 2019): centres such that no large coalition of points wants another one."""

from __future__ import annotations

from math import ceil
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import COUNT
from fairclust.kernels.capture import capture
from fairclust.methods._row_centers import RowCenterClusterer
from fairclust.solvers.k_center import farthest_first


class GreedyCapture(RowCenterClusterer):
    """Centres out of the rows for proportional fairness: n/k points that are near each other get one of their own.

    Balls around all rows grow at the same speed. The first one that holds ``ceil(n/k)`` rows becomes a centre and takes
    them, and so on with the rest. A centre's ball grows on and takes what it reaches. Every row then goes to the
    nearest centre.

    Parameters
    ----------
    n_clusters : int, default=8
        k. Where fewer balls fill, the rest of the centres are rows far from all others, which harms nobody.
    max_rows : int, default=2_000
        With more rows, the balls grow in a random sample of this size. Time and memory grow with its square.
    random_state : int, RandomState or None
        Of the sample.

    Attributes
    ----------
    labels_, groups_, cluster_centers_, n_iter_, history_
        The groups are not looked at. The objective of the history is the mean distance, the fairness term the
        number of centres that came from balls.
    center_indices_ : ndarray of shape (n_clusters,)
        The rows that are centres, those of balls first.
    n_captured_ : int
        Centres that came from balls.

    Notes
    -----
    For at most `max_rows` rows no ``ceil(n/k)`` of them would all come nearer to another row by more than a factor of
    1 + sqrt(2): see `fairclust.metrics.proportionality`, with ``centers``.

    References
    ----------
    Chen, Fain, Lyu, Munagala, "Proportionally fair clustering", ICML 2019, Algorithm 1.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "max_rows": COUNT,
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters: int = 8, *, max_rows: int = 2_000, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.max_rows = max_rows
        self.random_state = random_state

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rows = np.arange(len(X))
        if len(X) > self.max_rows:
            # Not fewer than there are centres.
            size = max(self.max_rows, self.n_clusters)
            rows = np.sort(check_random_state(self.random_state).permutation(len(X))[:size])
        found = capture(cdist(X[rows], X[rows]), ceil(len(rows) / self.n_clusters))
        self.n_captured_ = len(found)
        distances = self._take(X, codes, farthest_first(X, self.n_clusters, list(rows[found])))
        self.n_iter_ = 1
        self.history_ = [
            {
                "step": 1,
                "objective": float(distances.mean()),
                "clustering": float(distances.mean()),
                "fairness": float(self.n_captured_),
                "seconds": perf_counter() - begin,
            }
        ]
