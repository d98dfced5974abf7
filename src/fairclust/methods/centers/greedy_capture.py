"""Greedy capture (Chen et al., ICML 2019): centres for which no large set of points is much nearer to another row."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import COUNT, record
from fairclust.kernels.capture import capture
from fairclust.methods._prototypes import RowCenterClusterer
from fairclust.methods.centers.coverings import farthest_first


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyCapture(RowCenterClusterer):
    """Proportionally fair clustering: n/k rows that are near each other get a centre of their own.

    Balls around all rows grow at the same speed. When a ball holds ``ceil(n/k)`` rows that no centre has taken, its row
    becomes a centre and takes them. The ball of a centre continues to grow and takes every row that it reaches. In the
    end every row is assigned to the nearest centre.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters. If fewer balls become centres, the other centres are rows far from these, chosen by
        farthest-first traversal. More centres make no row worse off.
    max_rows : int, default=2_000
        With more rows, the balls grow in a random sample of this size. Time and memory grow with its square.
    random_state : int, RandomState or None
        The seed of the sample.

    Attributes
    ----------
    history_ : list of dict
        The groups do not change the clustering. The objective is the mean distance of a row to its
        centre, and the fairness term is `n_captured_`.
    center_indices_ : ndarray of shape (n_clusters,)
        The rows that are centres, those of balls first.
    n_captured_ : int
        Number of centres that came from balls.

    Notes
    -----
    With at most `max_rows` rows the centres are (1 + sqrt(2))-proportional: for any row and any ``ceil(n/k)`` rows, at
    least one of the latter is at most 1 + sqrt(2) times as far from its own centre as from that row.
    `fairclust.metrics.proportionality`, called with these centres, measures the factor.

    References
    ----------
    Chen, Fain, Lyu, Munagala, "Proportionally fair clustering", ICML 2019, Algorithm 1.

    Examples
    --------
    >>> from fairclust import GreedyCapture
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = GreedyCapture(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> model.center_indices_.tolist()
    [1, 5]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"max_rows": COUNT}

    max_rows: int = 2_000
    random_state: Any = None

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rows = np.arange(len(X))
        if len(X) > self.max_rows:
            # The sample must have a row for every centre.
            size = max(self.max_rows, self.n_clusters)
            rows = np.sort(check_random_state(self.random_state).permutation(len(X))[:size])
        centers = capture(cdist(X[rows], X[rows]), ceil(len(rows) / self.n_clusters))
        self.n_captured_ = len(centers)
        distances = self._take(X, codes, farthest_first(X, self.n_clusters, list(rows[centers])))
        self.n_iter_ = 1
        mean = float(distances.mean())
        self.history_ = [record(1, begin, mean, mean, float(self.n_captured_))]
