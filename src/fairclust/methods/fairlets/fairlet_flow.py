"""Fair clustering through fairlets of least cost (Chierichetti et al., NeurIPS 2017)."""

from __future__ import annotations

import numpy as np

from fairclust.base import NotSupported
from fairclust.methods.fairlets.estimator import FairletClusterer, flow_fairlets

# The table of the flow has about as many entries as the square of the number of rows, and its time grows faster.
_MOST_ROWS = 5000


class FairletClustering(FairletClusterer):
    """Fairlets of least cost by minimum-cost flow, then clusters of their centres; for small data.

    Like `FairletTreeClustering`, but with better fairlets. They take more than quadratic time: seconds for 4,000
    points. More than 5,000 points are not supported. The costs are distances, or squared
    distances for ``clustering="kmeans"``. There can be at most two groups.

    Parameters
    ----------
    balance : (1, q) or "auto", default="auto"
        Every fairlet is one point of a group and 1 to q of the other, so every cluster has a balance of at
        least 1 / q. "auto" takes the smallest q that the data allow. With q = 1 fairlets are pairs.

    References
    ----------
    Chierichetti, Kumar, Lattanzi, Vassilvitskii: Fair Clustering Through Fairlets, NeurIPS 2017, Section 4.2.
    """

    _one = True

    def _decompose(
        self, X: np.ndarray, codes: np.ndarray, p: int, q: int, rng: np.random.RandomState
    ) -> np.ndarray:
        if len(X) > _MOST_ROWS:
            raise NotSupported(
                f"fairlets of least cost are made for at most {_MOST_ROWS} rows, found {len(X)}; "
                "FairletTreeClustering takes millions"
            )
        return flow_fairlets(X, codes, q, squared=self.clustering == "kmeans")
