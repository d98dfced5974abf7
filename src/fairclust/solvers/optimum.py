"""The best k-means clustering of a few points, fair or not, by a mixed-integer program.

Let z_pq be 1 / n_k if points p and q are both in cluster k, and 0 if they are in different ones. Then the k-means cost
is ``sum_{p<q} z_pq |x_p - x_q|^2``, the number of clusters is ``sum_p z_pp``, and the share of group j in the cluster
of p is the sum of z_pq over its points q. So cost, number of clusters and bounds on shares and balance are all linear
in z. Binary numbers say which pairs are together, and ``z_pq + z_pr <= z_pp + z_qr`` makes that transitive.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist

from fairclust.base import NotSupported
from fairclust.group_encoding import encode_groups
from fairclust.solvers.programs import Program

MAX_ROWS = 30


@dataclass(frozen=True)
class OptimalClustering:
    """The best clustering, or the best one found with a lower bound on the cost of all others.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), int32
        Numbered by first appearance.
    cost : float
        Sum of squared distances to the cluster means.
    lower_bound : float
        No clustering within the bounds costs less.
    is_optimal : bool
        Whether the search ended within the time limit. The bound is then equal to the cost, up to HiGHS's tolerance.

    Examples
    --------
    >>> from fairclust import optimal_clustering
    >>> best = optimal_clustering([[0], [1], [8], [9]], 2)
    >>> best.labels.tolist(), best.cost, best.is_optimal
    ([0, 0, 1, 1], 1.0, True)
    """

    labels: np.ndarray
    cost: float
    lower_bound: float
    is_optimal: bool


def optimal_clustering(
    X: Any,
    n_clusters: int,
    sensitive_features: Any = None,
    *,
    min_balance: float | None = None,
    tolerance: float | None = None,
    time_limit: float = 60.0,
) -> OptimalClustering:
    """Certified optimum of k-means, with at most `n_clusters` clusters, for at most 30 rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Finite.
    n_clusters : int
    sensitive_features : array-like of shape (n_samples,), optional
        The group of every row; needed for the bounds.
    min_balance : float, optional
        In [0, 1]. For any two groups, every cluster has at least this many points of the one for each point of the
        other.
    tolerance : float, optional
        t in [0, 1): the share of group j in every cluster lies in ``[(1 - t) mu_j, mu_j / (1 - t)]``, where mu_j is its
        share of the data.
    time_limit : float, default=60
        Seconds.

    Returns
    -------
    OptimalClustering

    Raises
    ------
    NotSupported
        There are more than 30 rows.
    ValueError
        Bad input.
    RuntimeError
        No clustering was found in time.

    Notes
    -----
    The best clustering may have fewer than `n_clusters` clusters, because the bounds may leave no room for more.

    Examples
    --------
    >>> from fairclust import optimal_clustering
    >>> optimal_clustering([[0], [1], [8], [9]], 2).cost
    1.0
    >>> optimal_clustering([[0], [1], [8], [9]], 2, ["a", "a", "b", "b"], min_balance=1).cost
    64.0
    """
    points = np.asarray(X, dtype=float)
    if points.ndim != 2 or not points.size or not np.isfinite(points).all():
        raise ValueError(f"X must be a non-empty matrix of finite numbers, found shape {points.shape}")
    n = len(points)
    if n > MAX_ROWS:
        raise NotSupported(f"the mixed-integer program is for at most {MAX_ROWS} rows, X has {n}")
    if not n_clusters >= 1:
        raise ValueError(f"n_clusters must be at least 1, found {n_clusters}")
    squares = pdist(points, "sqeuclidean")
    rows = [*_structure(n, n_clusters), *_fairness(n, sensitive_features, min_balance, tolerance)]
    n_pairs = len(squares)
    scale = squares.max() if n_pairs and squares.max() > 0 else 1.0
    program = Program()
    # z_pp and then z_pq for p < q.
    program.variables(
        "z", np.r_[np.zeros(n), squares / scale], np.r_[np.full(n, 1 / n), np.zeros(n_pairs)], 1.0
    )
    # For p < q, whether p and q are together.
    program.variables("together", np.zeros(n_pairs), 0.0, 1.0, whole=True)
    for matrix, low, high in rows:
        program.rows(low, high, z=matrix[:, : n + n_pairs], together=matrix[:, n + n_pairs :])
    done = program.solve(gap=1e-9, seconds=time_limit)
    if done is None:
        raise RuntimeError(f"HiGHS found no clustering: {program.message}")
    # The clusters are numbered by first appearance.
    first, second = _pairs(n)[:, done.values["together"] > 0.5]
    graph = sparse.csr_array((np.ones(len(first)), (first, second)), shape=(n, n))
    component = connected_components(graph, directed=False)[1]
    _, appearance, codes = np.unique(component, return_index=True, return_inverse=True)
    labels = appearance.argsort().argsort()[codes].astype(np.int32)
    means = np.stack([points[labels == k].mean(axis=0) for k in range(labels.max() + 1)])
    cost = float(((points - means[labels]) ** 2).sum())
    bound = cost if done.lower_bound is None else min(cost, float(done.lower_bound) * scale)
    return OptimalClustering(labels, cost, bound, done.is_optimal)


_Rows = tuple[sparse.csr_array, Any, Any]


def _structure(n: int, n_clusters: int) -> list[_Rows]:
    """Rows that z meets if it describes a partition into at most `n_clusters` clusters, with lower and upper limits."""
    first, second = _pairs(n)
    n_pairs = len(first)
    number = {pair: n + i for i, pair in enumerate(zip(first, second, strict=True))}
    every = np.arange(n_pairs)
    width = n + 2 * n_pairs
    z, together = n + every, n + n_pairs + every

    def matrix(columns: list[np.ndarray], values: list[float]) -> sparse.csr_array:
        height = len(columns[0])
        row = np.tile(np.arange(height), len(columns))
        return sparse.csr_array(
            (np.repeat(values, height), (row, np.concatenate(columns))), shape=(height, width)
        )

    # The numbers z_pq of a point p sum to one.
    total = _shares(np.ones(n), width)
    count = sparse.csr_array((np.ones(n), (np.zeros(n, dtype=int), np.arange(n))), shape=(1, width))
    rows: list[_Rows] = [(total, 1.0, 1.0), (count, 1.0, float(n_clusters))]
    if n_pairs:
        # z_pq is 0 for points that are apart, and at most 1/2 for points that are together.
        rows.append((matrix([z, together], [1.0, -0.5]), -np.inf, 0.0))
        for one in (first, second):
            rows.append((matrix([z, one], [1.0, -1.0]), -np.inf, 0.0))
            # z_pq is equal to z_pp for points that are together.
            rows.append((matrix([one, z, together], [1.0, -1.0, 1.0]), -np.inf, 1.0))
    corners = [
        (number[min(p, q), max(p, q)], number[min(p, r), max(p, r)], p, number[q, r])
        for p in range(n)
        for q, r in combinations([i for i in range(n) if i != p], 2)
    ]
    if corners:
        rows.append((matrix(list(np.array(corners).T), [1.0, 1.0, -1.0, -1.0]), -np.inf, 0.0))
    return rows


def _pairs(n: int) -> np.ndarray:
    """The first and the second points of all pairs, in the order of z_pq and of the binary numbers."""
    return np.array(list(combinations(range(n), 2)), dtype=int).reshape(-1, 2).T


def _shares(weights: np.ndarray, width: int) -> sparse.csr_array:
    """Rows, one for each point p, that sum z_pq over all points q, each with its weight."""
    n = len(weights)
    first, second = _pairs(n)
    every, z = np.arange(n), n + np.arange(len(first))
    places = np.r_[every, first, second], np.r_[every, z, z]
    return sparse.csr_array((weights[np.r_[every, second, first]], places), shape=(n, width))


def _fairness(
    n: int, sensitive_features: Any, min_balance: float | None, tolerance: float | None
) -> list[_Rows]:
    """Bounds on the shares of the groups in the cluster of every point."""
    if min_balance is None and tolerance is None:
        return []
    codes, names = encode_groups(sensitive_features, n)
    shares = [_shares((codes == j).astype(float), n * n) for j in range(len(names))]
    rows: list[_Rows] = []
    if tolerance is not None:
        if not 0 <= tolerance < 1:
            raise ValueError(f"tolerance must be in [0, 1), found {tolerance}")
        for j, share in enumerate(shares):
            wanted = float((codes == j).mean())
            rows.append((share, (1 - tolerance) * wanted, wanted / (1 - tolerance)))
    if min_balance is not None:
        if not 0 <= min_balance <= 1:
            raise ValueError(f"min_balance must be in [0, 1], found {min_balance}")
        for one in shares:
            for other in shares:
                if one is not other:
                    rows.append((one - min_balance * other, 0.0, np.inf))
    return rows
