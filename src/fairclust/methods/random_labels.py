"""Random labels, a control: they are about as fair as the data allow, but they are not a useful clustering."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, record


@dataclass(eq=False, repr=False, kw_only=True)
class RandomLabels(FairClusterer):
    """Every row gets one of `n_clusters` labels at random. The sizes of the clusters differ by at most one.

    Examples
    --------
    >>> from fairclust import RandomLabels
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = RandomLabels(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 1, 1, 1, 0, 1, 0]
    """

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        # The labels are a permutation instead of independent draws, so that no cluster is empty.
        self.labels_ = rng.permutation(np.arange(len(X)) % self.n_clusters).astype(np.int32)
        self.n_iter_ = 1
        self.history_ = [record(1, begin, 0.0, 0.0, 0.0)]
