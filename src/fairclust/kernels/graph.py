"""Affinity graphs of nearest neighbours or of all pairs, and the potentials of the normalised cut in tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp
from numba import njit
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import check_random_state

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import TILE, TileLayout, run_over_tiles
from fairclust.messages import count

# With more features, trees are slower than computing all pairs: for 20,000 rows of 14 features, four times.
_TREE_MAX_FEATURES = 8
# Brute force takes 7 seconds for so many rows of 25 features on two cores.
_EXACT_MAX_ROWS = 50_000
_FAR_APART = "the points lie so far apart that their distances are not finite: rescale X"


def build_knn_graph(X: np.ndarray, n_neighbors: int = 20, *, random_state: Any = 0) -> sp.csr_array:
    """Symmetric nearest-neighbour graph ``W = (A + A') / 2`` in float32.

    ``A[p, q] = 1`` if q is among the `n_neighbors` points nearest to p (Ziko et al., AAAI 2021, Experiments). As in
    the published program, p itself counts as one of them but gets no edge. A number above n_samples gives the complete
    graph. With more than 50,000 rows, neighbours are approximate.
    """
    n_samples = len(X)
    if n_neighbors < 2 or n_samples < 2:
        raise ValueError(
            f"a graph needs n_neighbors >= 2 and two points, found n_neighbors={n_neighbors}, "
            f"n_samples={n_samples}"
        )
    n_neighbors = min(n_neighbors, n_samples)
    rng = check_random_state(random_state)
    # The distances of all pairs are computed from dot products, whose rounding errors are large far from the origin.
    points = np.ascontiguousarray(X - X.mean(axis=0, dtype=np.float64), dtype=np.float64)
    # For infinite distances the k-d tree returns row numbers past the end, which would corrupt memory in a matrix.
    if not np.isfinite(np.einsum("pf,pf->p", 2 * points, 2 * points)).all():
        raise ValueError(_FAR_APART)
    if n_samples > _EXACT_MAX_ROWS:
        neighbors = _nearest_by_descent(points, n_neighbors, rng)
    else:
        neighbors = _nearest(points, points, n_neighbors)

    # A point with more duplicates than neighbours may not be among its own neighbours. Then the last one is dropped.
    is_self = neighbors == np.arange(n_samples)[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    columns = neighbors[~is_self].astype(np.int32)
    # Indices have 32 bits if these are enough, so that products with the graph read half as much memory.
    ends = np.arange(0, columns.size + 1, n_neighbors - 1)
    ends = ends.astype(sp.get_index_dtype(maxval=2 * columns.size))
    shape = (n_samples, n_samples)
    A = sp.csr_array((np.full(columns.size, 0.5, np.float32), columns, ends), shape=shape)
    W = (A + A.T).tocsr()
    W.sort_indices()
    return W


def _nearest(points: np.ndarray, queries: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Exact indices, shape (n_queries, n_neighbors), nearest first."""
    if points.shape[1] <= _TREE_MAX_FEATURES:
        return cKDTree(points).query(queries, n_neighbors, workers=numba.get_num_threads())[1]
    return NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(points).kneighbors(queries)[1]


def _nearest_by_descent(points: np.ndarray, n_neighbors: int, rng: np.random.RandomState) -> np.ndarray:
    """Approximate indices (Dong et al., WWW 2011)."""
    # Imported only here, because the import takes seconds and most graphs are built without it.
    from pynndescent import NNDescent  # type: ignore[import-untyped]

    seed = int(rng.randint(np.iinfo(np.int32).max))
    # One thread, because the result depends on the number of threads.
    index = NNDescent(
        points.astype(np.float32), n_neighbors=n_neighbors, random_state=seed, n_jobs=1, low_memory=True
    )
    neighbors = index.neighbor_graph[0]
    short = neighbors.min(axis=1) < 0
    if short.any():
        neighbors[short] = _nearest(points, points[short], n_neighbors)
    return neighbors


def max_scaled_affinity(X: np.ndarray) -> np.ndarray:
    """Affinity of all pairs, ``w_pq = exp(-||x_p - x_q||^2 / max ||x - x'||)``, the only array of this size in memory.

    It is that of the published program of Pan, Zhong, Qian, "Balanced fair k-means clustering", 2023. The square is
    divided by the largest distance, not by its square, so the affinity depends on the unit of X.
    """
    W = cdist(X, X)
    largest = W.max(initial=0.0) or 1.0
    if not np.isfinite(largest**2):
        raise ValueError(_FAR_APART)
    np.square(W, out=W)
    W /= -largest
    return np.exp(W, out=W)


@njit(cache=True, nogil=True)
def _association(lo, hi, indptr, indices, weights, labels, layout, within, crossing):  # type: ignore[no-untyped-def]
    for t in range(lo, hi):
        for i in range(layout.count[t]):
            p = layout.order[layout.start[t] + i]
            k = labels[p]
            for e in range(indptr[p], indptr[p + 1]):
                if labels[indices[e]] == k:
                    within[t, k] += weights[e]
                else:
                    crossing[t, k] += weights[e]


@njit(cache=True, nogil=True)
def _cut_potentials(  # type: ignore[no-untyped-def]
    lo, hi, indptr, indices, weights, degrees, labels, z, inverse, shift, layout, a, row_min
):
    n_clusters = len(z)
    link = np.empty(n_clusters)
    for t in range(lo, hi):
        for i in range(layout.count[t]):
            p = layout.order[layout.start[t] + i]
            d = degrees[p]
            link[:] = 0.0
            for e in range(indptr[p], indptr[p + 1]):
                link[labels[indices[e]]] += weights[e]
            link[labels[p]] += shift * d
            low = np.inf
            for k in range(n_clusters):
                link[k] = d * z[k] - 2.0 * link[k] * inverse[k]
                low = min(low, link[k])
            for k in range(n_clusters):
                a[t, k, i] = link[k] - low
            row_min[t, i] = low


@dataclass(frozen=True)
class AffinityGraph:
    """A checked affinity matrix, symmetric and non-negative, with its degrees, the row sums, which are positive.

    A complete graph may have an ndarray, for which `associations` and `set_potentials` do not work.
    """

    W: sp.csr_array
    degrees: np.ndarray

    @classmethod
    def from_matrix(cls, W: Any) -> AffinityGraph:
        """Check that an affinity matrix is finite, non-negative, symmetric and without a zero row.

        Symmetric means up to rounding, 1e-6 of the largest entry. A ValueError names the condition that is violated.
        """
        W = sp.csr_array(W)
        if W.shape[0] != W.shape[1]:
            raise ValueError(f"the affinity must be a square matrix, found shape {W.shape}")
        if W.nnz and not (np.isfinite(W.data).all() and W.data.min() >= 0):
            raise ValueError("the affinity has weights that are negative or not finite")
        skew = abs(W - W.T).max()
        if skew > 1e-6 * W.max():
            raise ValueError(
                f"the affinity is not symmetric: W and its transpose differ by up to {skew:g}; "
                "take (W + W.T) / 2"
            )
        if (W.data == 0).any():
            # A zero that is stored is no edge. The caller's matrix keeps it.
            W = W.copy()
            W.eliminate_zeros()
        degrees = np.asarray(W.sum(axis=1, dtype=np.float64)).ravel()
        n_isolated = int((degrees == 0).sum())
        if n_isolated:
            raise ValueError(
                f"the affinity has {count(n_isolated, 'isolated node')} (no weight at all, first node "
                f"{int((degrees == 0).argmax())}): the normalised cut of a cluster of only isolated nodes is 0/0; "
                "drop or connect them"
            )
        return cls(W, degrees)

    def associations(
        self, labels: np.ndarray, n_clusters: int, layout: TileLayout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Weight of the edges inside each cluster and of those that leave it, each of shape (n_clusters,).

        Their sum is the cluster's volume ``d'S_k``, and the first is ``S_k'W S_k``. Both are added up from edges, so
        that clusters without edges between them have a cut of exactly 0.
        """
        within, crossing = np.zeros((2, layout.n_tiles, n_clusters))
        out = within, crossing
        run_over_tiles(_association, layout.n_tiles, self.W.nnz, *self._edges(), labels, layout, *out)
        return within.sum(axis=0), crossing.sum(axis=0)

    def set_potentials(self, potentials: Potentials, labels: np.ndarray, *, shift: float = 0.0) -> None:
        """Fill in ``a_pk = d_p z_k - 2 sum_q w_pq s_qk / (d'S_k)``, where ``z_k = S_k'W S_k / (d'S_k)^2``.

        This is the gradient of the normalised cut of W + shift * D (Ziko et al., AAAI 2021, Table 1) at hard labels S
        without empty clusters. The shift changes the cut of hard labels by a constant, and makes it concave, so that
        its linearisation is an upper bound, if no eigenvalue of ``D^-1/2 W D^-1/2`` is below ``-shift``.
        """
        layout = potentials.layout
        within, crossing = self.associations(labels, potentials.a.shape[1], layout)
        volume = within + crossing
        clusters = within / volume**2 + shift / volume, 1.0 / volume, shift
        graph, out = (*self._edges(), self.degrees, labels), (potentials.a, potentials.row_min)
        run_over_tiles(_cut_potentials, layout.n_tiles, self.W.nnz, *graph, *clusters, layout, *out)
        real = np.arange(TILE) < layout.count[:, None]
        potentials.row_min_sum = float(potentials.row_min.sum(axis=1, where=real, dtype=np.float64).sum())

    def _edges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.W.indptr, self.W.indices, self.W.data
