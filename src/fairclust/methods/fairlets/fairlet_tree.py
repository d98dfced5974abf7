"""Scalable fair clustering by fairlets on a quadtree (Backurs et al., ICML 2019)."""

from __future__ import annotations

import numpy as np

from fairclust.kernels.fairlets import DEPTH, tree_fairlets
from fairclust.methods.fairlets.estimator import FairletClusterer


class FairletTreeClustering(FairletClusterer):
    """Fairlets on a randomly shifted quadtree, then clusters of their centres; SFC in the papers' tables.

    Every cluster is a union of fairlets and therefore has at least their balance: its smaller group has at least p / q
    times as many points as the larger one. The time is nearly linear in the number of points. There can be at most two
    groups.

    Parameters
    ----------
    balance : (p, q) or "auto", default="auto"
        Whole numbers. p / q must not be above the balance of the data. "auto" takes the largest balance that
        the data allow with q <= 10, or (1, q) with the smallest q if this is above 10.

    References
    ----------
    Backurs, Indyk, Onak, Schieber, Vakilian, Wagner: Scalable Fair Clustering, ICML 2019.

    Examples
    --------
    >>> from fairclust import FairletTreeClustering
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairletTreeClustering(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 0, 0]
    >>> len(set(model.fairlet_labels_))
    4
    """

    def _decompose(
        self, X: np.ndarray, codes: np.ndarray, p: int, q: int, rng: np.random.RandomState
    ) -> np.ndarray:
        low = X.min(axis=0).astype(float)
        spread = float((X.max(axis=0) - low).max()) or 1.0
        # The box has twice the spread of the data, so that it contains them whatever the random shift is.
        places = (X - (low - spread * rng.uniform(size=X.shape[1]))) / (2 * spread) * 2.0**DEPTH
        cells = np.clip(places, 0.0, 2.0**DEPTH - 1).astype(np.uint16)
        return tree_fairlets(cells, codes == 1, p, q)
