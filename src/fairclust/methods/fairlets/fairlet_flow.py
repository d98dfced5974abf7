"""Fair clustering through fairlets of least cost (Chierichetti et al., NeurIPS 2017)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import cdist

from fairclust.base import NotSupported
from fairclust.methods.fairlets.estimator import FairletClusterer

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

    Examples
    --------
    >>> from fairclust import FairletClustering
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairletClustering(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 1, 1]
    >>> len(set(model.fairlet_labels_))
    4
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
        # Edges of least total length join the points of the two groups, so that every point has 1 to q edges: one unit
        # that must go to the other group and q - 1 that may. After redundant edges are dropped, the graph consists of
        # stars.
        rows, columns = np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)
        lengths = cdist(X[rows], X[columns], "sqeuclidean" if self.clustering == "kmeans" else "euclidean")
        n, m = lengths.shape
        if q == 1:
            i, j = linear_sum_assignment(lengths)
        else:
            from ot import emd

            forbidden = 1 + 2 * lengths.max() * (n + m)
            cost = np.zeros((2 * n + 1, 2 * m + 1))
            cost[: 2 * n, : 2 * m] = np.tile(lengths, (2, 2))
            cost[:n, -1] = cost[-1, :m] = forbidden
            supply = np.concatenate([np.ones(n), np.full(n, q - 1.0), [m * (q - 1.0)]])
            demand = np.concatenate([np.ones(m), np.full(m, q - 1.0), [q * n - m]])
            flow = emd(supply, demand, cost, numItermax=100_000_000)[:-1, :-1]
            i, j = np.nonzero(flow.reshape(2, n, 2, m).sum(axis=(0, 2)) > 0.5)
        of_row, of_column = np.bincount(i, minlength=n), np.bincount(j, minlength=m)
        keep = np.ones(len(i), bool)
        for e in np.argsort(-lengths[i, j], kind="stable"):
            if of_row[i[e]] > 1 and of_column[j[e]] > 1:
                keep[e] = False
                of_row[i[e]] -= 1
                of_column[j[e]] -= 1
        edges = coo_array((np.ones(keep.sum()), (rows[i[keep]], columns[j[keep]])), shape=(len(X), len(X)))
        return connected_components(edges, directed=False)[1].astype(np.int64)
