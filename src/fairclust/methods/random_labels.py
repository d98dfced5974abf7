"""Random labels, a control: they are about as fair as the data allow, but they are not a useful clustering."""

from __future__ import annotations

from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import COUNT, FairClusterer


class RandomLabels(FairClusterer):
    """Every row gets one of `n_clusters` labels at random. The sizes of the clusters differ by at most one.

    Parameters
    ----------
    n_clusters : int, default=8
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, n_iter_, history_
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "random_state": ["random_state"],
    }

    def __init__(self, n_clusters: int = 8, *, random_state: Any = None) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        # The labels are a permutation instead of independent draws, so that no cluster is empty.
        self.labels_ = rng.permutation(np.arange(len(X)) % self.n_clusters).astype(np.int32)
        self.n_iter_ = 1
        self.history_ = [
            {
                "step": 1,
                "objective": 0.0,
                "clustering": 0.0,
                "fairness": 0.0,
                "seconds": perf_counter() - begin,
            }
        ]
