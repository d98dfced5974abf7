"""Quality of a clustering: objectives, also those of groups, and indices from points, a graph, or true clusters.

Parameters
----------
table : array-like of shape (n_groups, n_clusters)
    Counts n_jk of `fairclust.metrics.counts`; at least one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairclust.group_encoding import group_codes
from fairclust.metrics.counts import checked_codes, contingency, finite_numbers
from fairclust.metrics.registry import documented, metric

if TYPE_CHECKING:
    import scipy.sparse as sp

# The most members of a cluster that are tried to prove its medoid. With more than _EXACT_MAX_ROWS rows, no medoid is
# proved, and _NEAR_MEDIAN members are tried, those near the geometric median first.
_MOST_TRIED, _EXACT_MAX_ROWS, _NEAR_MEDIAN = 10_000, 200_000, 16
# The Dunn index takes this many points at once. The bound on its distances allows for this relative rounding error.
_QUERIES, _ROUNDING = 500, 1e-9
# Rows per block, so that temporary arrays stay in the cache and do not grow with the data.
_CHUNK_ROWS = 16_384
_SSE = "Ziko et al. 2021 (VFC), Table 1; Pan et al. 2023 (BFKM), Table IV"


def _points_and_labels(X: ArrayLike, labels: ArrayLike) -> tuple[NDArray, NDArray[np.integer]]:
    """Points and labels as arrays; ValueError if one is malformed, the lengths differ, or there is no point."""
    points, codes = finite_numbers(X, "X"), checked_codes(labels, "labels")[0]
    if points.ndim != 2 or len(points) != codes.size:
        raise ValueError(f"X {points.shape} must have one row for each of {codes.size} labels")
    if codes.size == 0:
        raise ValueError("there is no point")
    return points, codes


def _blocks(n_rows: int, height: int = _CHUNK_ROWS) -> list[slice]:
    """Slices of at most `height` rows that together cover all rows."""
    return [slice(start, min(start + height, n_rows)) for start in range(0, n_rows, height)]


def _deviations(points: NDArray, codes: NDArray, centers: NDArray) -> Iterator[NDArray[np.float64]]:
    """Points minus the centres of their clusters, in blocks of rows.

    Their squares are exact also far from the origin, where sums of squares minus squared means would lose their digits.
    """
    return (points[block] - centers[codes[block]] for block in _blocks(codes.size))


def _cluster_means(X: NDArray, labels: NDArray[np.integer]) -> NDArray[np.float64]:
    """Mean of every cluster, shape (n_clusters, n_features); zeros for a cluster without points."""
    from scipy import sparse

    sizes = np.bincount(labels)
    sums = np.zeros((sizes.size, X.shape[1]))
    for block in _blocks(len(labels)):
        rows = labels[block]
        # The product with a sparse indicator matrix sums each cluster in float64 without sorting the points.
        indicator = sparse.csr_array(
            (np.ones(rows.size), rows, np.arange(rows.size + 1)), shape=(rows.size, sizes.size)
        )
        sums += indicator.T @ X[block].astype(np.float64, copy=False)
    return sums / np.maximum(sizes, 1)[:, None]


@metric("SSE", (0.0, inf), "lower", _SSE, needs="X", decimals=1)
def sse(X: ArrayLike, labels: ArrayLike) -> float:
    """Sum of squared Euclidean distances to the cluster means, the k-means objective.

    This is also the cost of the tables of Park et al. (FMC): their text says 'distances', the tables hold squared
    distances.
    """
    points, codes = _points_and_labels(X, labels)
    means = _cluster_means(points, codes)
    total = 0.0
    for deviation in _deviations(points, codes, means):
        total += float(np.vdot(deviation, deviation))
    return total


@metric("K-medians cost", (0.0, inf), "lower", "Ziko et al. 2021 (VFC), Table 1", needs="X", decimals=1)
def kmedians_cost(X: ArrayLike, labels: ArrayLike) -> float:
    """Sum of Euclidean distances to the cluster medoids, the k-medians objective.

    The cost is ``nan`` if a medoid is not proved after 10,000 points of its cluster were tried. With more than 200,000
    rows, the best of sixteen members near a cluster's geometric median replaces its medoid, because proving a medoid
    takes hours. The cost is then an upper bound.
    """
    from fairclust.kernels.medoid import medoids

    points, codes = _points_and_labels(X, labels)
    proves = len(points) <= _EXACT_MAX_ROWS
    most = _MOST_TRIED if proves else _NEAR_MEDIAN
    _, costs, proved = medoids(points, codes, codes.max() + 1, max_evaluations=most)
    return float("nan") if proves and not proved.all() else sum(costs.tolist())


@metric("DI", (0.0, inf), "higher", "Dunn 1974; Pan et al. 2023 (BFKM), Table IV", needs="X")
def dunn_index(X: ArrayLike, labels: ArrayLike) -> float:
    """Dunn index: smallest distance between points of different clusters / largest distance inside a cluster.

    It is ``nan`` with fewer than two non-empty clusters, and for 0/0 (all points equal), and ``inf`` if the points of
    each cluster coincide and the clusters differ.
    """
    points, codes = _points_and_labels(X, labels)
    of_clusters = [points[codes == k].astype(np.float64) for k in np.unique(codes)]
    separation, diameter = _separation(of_clusters), max(map(_diameter, of_clusters))
    if np.isinf(separation):
        return float("nan")
    if diameter == 0.0:
        return float("inf") if separation > 0.0 else float("nan")
    return separation / diameter


def _separation(clusters: list[NDArray]) -> float:
    """Smallest distance between points of different clusters; infinite if there is one cluster."""
    from scipy.spatial import cKDTree

    least = inf
    for k, own in enumerate(clusters[:-1]):
        tree, others = cKDTree(own), np.concatenate(clusters[k + 1 :])
        # The least distance of the blocks before bounds the search in the next one.
        for block in _blocks(len(others), _QUERIES):
            distances, places = tree.query(others[block], distance_upper_bound=least)
            near = distances.argmin()
            if np.isfinite(distances[near]):
                least = float(distances[near])
                pair = others[block][near], own[places[near]]
    return inf if least == inf else math.sqrt(sum((x - y) ** 2 for x, y in zip(*pair, strict=True)))


def _diameter(points: NDArray) -> float:
    """Largest distance of two points."""
    from scipy.spatial.distance import cdist

    radii = np.linalg.norm(points - points.mean(axis=0), axis=1)
    outermost = np.argsort(-radii, kind="stable")
    points, radii = points[outermost], radii[outermost]
    largest = 0.0
    for block in _blocks(len(points), _QUERIES):
        # Two points are at most as far apart as the sum of their distances from the mean.
        enough = (1 - _ROUNDING) * largest - radii[block.start]
        n_far = np.searchsorted(-radii, -enough, side="right")
        if n_far == 0:
            break
        largest = max(largest, float(cdist(points[block], points[: min(n_far, block.stop)]).max()))
    return largest


@metric("Ncut", (0.0, inf), "lower", "Shi and Malik 2000; Ziko et al. 2021 (VFC), Table 1", needs="W")
def ncut(W: sp.sparray | sp.spmatrix | ArrayLike, labels: ArrayLike) -> float:
    """Normalised cut: K - sum_k (S_k' W S_k) / (d' S_k), where K is the number of non-empty clusters and d = W 1.

    It is at most K, and ``nan`` if a cluster has nodes but no edge weight, because its term is then 0/0.

    Parameters
    ----------
    W : sparse or dense array of shape (n_samples, n_samples)
        Non-negative affinities.
    labels : array-like of int, shape (n_samples,)
        Cluster of each node, from 0.
    """
    import scipy.sparse as sp

    codes, _ = checked_codes(labels, "labels")
    weights = sp.csr_array(W if sp.issparse(W) else finite_numbers(W, "W"))
    finite_numbers(weights.data, "W")
    if weights.shape != (codes.size, codes.size):
        raise ValueError(f"W must have shape ({codes.size}, {codes.size}), not {weights.shape}")
    if weights.nnz and weights.data.min() < 0:
        raise ValueError("W must not have negative weights")
    tail = np.repeat(codes, np.diff(weights.indptr))
    cut = tail != codes[weights.indices]
    present = np.bincount(codes) > 0
    volume = np.bincount(tail, weights=weights.data, minlength=present.size)[present]
    # The weights of the cut edges are summed directly, so that a partition that cuts no edge scores exactly 0.
    crossing = np.bincount(tail[cut], weights=weights.data[cut], minlength=present.size)[present]
    return float("nan") if (volume == 0).any() else float((crossing / volume).sum())


@metric("Error", (0.0, 1.0), "lower", "Kleindessner et al. 2019; Wang et al. 2023 (s-FairSC)", needs="truth")
def clustering_error(labels: ArrayLike, truth: ArrayLike) -> float:
    """Share of misclassified points under the best matching of clusters to true clusters.

    The papers use it on the stochastic block model. The matching is exact.

    Parameters
    ----------
    truth : array-like of int, shape (n_samples,)
        True cluster of each point, from 0. If the numbers of clusters differ, some clusters have no match.
    """
    from scipy.optimize import linear_sum_assignment

    table = contingency(labels, checked_codes(truth, "truth")[0])
    total = int(table.sum())
    if total == 0:
        raise ValueError("there is no point")
    matched = table[linear_sum_assignment(table, maximize=True)].sum()
    return float((total - matched) / total)


@metric("Non-empty clusters", (0.0, inf), "none", "count", decimals=0)
def n_nonempty(table: ArrayLike) -> int:
    """Number of clusters that have points."""
    return int((np.asarray(table).sum(axis=0) > 0).sum())


@metric("Smallest cluster", (0.0, inf), "none", "count", decimals=0)
def smallest_cluster(table: ArrayLike) -> int:
    """Size of the smallest cluster, 0 if one is empty."""
    return int(np.asarray(table).sum(axis=0).min())


@documented
def group_costs(
    X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike, centers: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Mean squared distance of each group's points to the centres of their clusters.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
        The group of each point, without missing ones. If there are several columns, each combination of values is a
        group.
    centers : array-like of shape (n_clusters, n_features), optional
        Default: the means of the clusters. Socially fair methods place their centres elsewhere.

    Returns
    -------
    ndarray of shape (n_groups,)
        In the order of the groups' sorted values. In [0, inf), lower is better.

    References
    ----------
    Ghadiri et al. 2021; Abbasi et al. 2021
    """
    points, codes = _points_and_labels(X, labels)
    groups = group_codes(sensitive_features)
    if groups.shape != codes.shape:
        raise ValueError(f"labels {codes.shape} and sensitive_features {groups.shape} must have one length")
    places = _cluster_means(points, codes) if centers is None else finite_numbers(centers, "centers")
    if places.ndim != 2 or places.shape[1] != points.shape[1] or len(places) <= codes.max():
        raise ValueError(
            f"centers has shape {places.shape}, X has {points.shape}, labels go to {codes.max()}"
        )
    squares = [np.einsum("pd,pd->p", block, block) for block in _deviations(points, codes, places)]
    distances = np.concatenate(squares)
    return np.bincount(groups, weights=distances) / np.bincount(groups)
