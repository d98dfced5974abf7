"""K-center by farthest-first traversal (Gonzalez 1985), which ignores the groups."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import record
from fairclust.methods._prototypes import RowCenterClusterer
from fairclust.methods.centers.coverings import farthest_first


@dataclass(eq=False, repr=False, kw_only=True)
class KCenter(RowCenterClusterer):
    """Rows as centres with a small radius, which is the largest distance of a row to its centre.

    Parameters
    ----------
    n_init : int, default=10
        Number of starts, each from a row drawn at random. The one with the smallest radius is kept.

    Attributes
    ----------
    radius_ : float
        The radius, at most twice the smallest radius of any centres.

    References
    ----------
    Gonzalez, "Clustering to minimize the maximum intercluster distance", 1985.

    Examples
    --------
    >>> from fairclust import KCenter
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = KCenter(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> model.center_indices_.tolist()
    [4, 3]
    """

    n_init: int = 10
    random_state: Any = None

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        best: tuple[float, np.ndarray] | None = None
        for _ in range(self.n_init):
            rows = farthest_first(X, self.n_clusters, [int(rng.randint(len(X)))])
            radius = float(self._take(X, codes, rows).max())
            if best is None or radius < best[0]:
                best = radius, rows
        assert best is not None
        distances = self._take(X, codes, best[1])
        self.radius_ = float(distances.max())
        self.n_iter_ = self.n_init
        self.history_ = [record(self.n_init, begin, self.radius_, self.radius_, 0.0)]
