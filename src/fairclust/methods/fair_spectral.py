"""Fair spectral clustering, dense (Kleindessner et al. 2019) and matrix-free (Wang et al. 2023)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from fairclust.base import COUNT, POSITIVE, at_least
from fairclust.kernels.graph import AffinityGraph
from fairclust.methods._graph import SpectralClusterer
from fairclust.solvers.spectral import Embedding, nullspace_embedding, spectral_embedding


class FairSpectralClustering(SpectralClusterer):
    """Spectral clustering whose coordinates have the same mean in every group.

    Minimises ``Tr(H'LH)`` under ``H'DH = I`` (``H'H = I`` if unnormalised) and ``F'H = 0``, F the group
    indicators minus their shares, then runs k-means on the rows of H. The constraint is exact for H; the
    rounding by k-means loses some of it, so that the clusters are fairer than plain spectral clustering's,
    not exactly proportional. Any number of groups.

    Parameters
    ----------
    n_clusters : int, default=8
    laplacian : "normalized" or "unnormalized", default="normalized"
        FSCN or FSCUN of Kleindessner et al.
    solver : "projected" or "nullspace", default="projected"
        "nullspace" is the first published algorithm: dense, time grows with the cube of the rows. "projected"
        (s-FairSC) finds the same coordinates by products with the affinity alone.
    affinity : "nearest_neighbors", "max_scaled" or "precomputed", default="nearest_neighbors"
        Graph of the points, see `fairclust.kernels.graph`: `build_knn_graph`, or the complete graph of
        `max_scaled_affinity`. With "precomputed" X is the affinity: sparse or dense, square, non-negative,
        symmetric, no node without edges.
    n_neighbors : int, default=20
        Neighbours of a point, itself included; cut to the number of rows.
    components : "keep" or "error", default="keep"
        A graph in several pieces: each counts as an eigenvector of eigenvalue 0, or is an error. Data sets of
        graphs choose by their own key whether only the largest piece is used.
    normalize_rows : bool, default=False
        Rows of H at unit length, as Ng, Jordan and Weiss have it: small fringes of a graph weigh less. The
        published programs leave them as they are.
    n_init : int, default=10
        Starts of k-means.
    tol, max_iter : float, int, default=1e-9, 1000
        Residual, relative to the largest eigenvalue, and restarts of "projected".
    max_memory_mb : float, default=8000
        Dense n x n matrices beyond it are refused (`NotSupported`): four of them for "nullspace", one for
        "max_scaled".
    random_state : int, RandomState or None
        Of the k-means; the embedding does not depend on it.

    Attributes
    ----------
    labels_, groups_
    n_iter_ : int
        Of the best start of k-means.
    history_ : list of dict
        One record: `objective` (k-means cost in the embedding), `clustering` (sum of the eigenvalues, the
        relaxed cut), `fairness` (`constraint_`), `seconds`, of which `embedding_seconds`.
    embedding_ : ndarray of shape (n_samples, n_components)
        Rows of H; `n_components` is `n_clusters` but for graphs in more pieces than that.
    eigenvalues_ : ndarray of shape (n_components,)
    n_products_ : int
        Products with the affinity.
    residual_, orthogonality_, constraint_ : float
        How far the eigenvectors are from solving their problem, see `fairclust.solvers.spectral.Embedding`.

    Raises
    ------
    fairclust.solvers.spectral.NotConverged
        The eigen-solver did not reach `tol`; the benchmark counts such a fit as 'diverged'.

    References
    ----------
    Kleindessner, Samadi, Awasthi, Morgenstern, Guarantees for spectral clustering with fairness constraints,
    ICML 2019; Wang, Lu, Davidson, Bai, Scalable spectral clustering with group fairness constraints,
    AISTATS 2023.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": COUNT,
        "laplacian": [StrOptions({"normalized", "unnormalized"})],
        "solver": [StrOptions({"projected", "nullspace"})],
        "affinity": [StrOptions({"nearest_neighbors", "max_scaled", "precomputed"})],
        "n_neighbors": at_least(2),
        "components": [StrOptions({"keep", "error"})],
        "normalize_rows": ["boolean"],
        "n_init": COUNT,
        "tol": POSITIVE,
        "max_iter": COUNT,
        "max_memory_mb": POSITIVE,
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        laplacian: str = "normalized",
        solver: str = "projected",
        affinity: str = "nearest_neighbors",
        n_neighbors: int = 20,
        components: str = "keep",
        normalize_rows: bool = False,
        n_init: int = 10,
        tol: float = 1e-9,
        max_iter: int = 1000,
        max_memory_mb: float = 8000.0,
        random_state: Any = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.laplacian = laplacian
        self.solver = solver
        self.affinity = affinity
        self.n_neighbors = n_neighbors
        self.components = components
        self.normalize_rows = normalize_rows
        self.n_init = n_init
        self.tol = tol
        self.max_iter = max_iter
        self.max_memory_mb = max_memory_mb
        self.random_state = random_state

    def _fit_graph(
        self, graph: AffinityGraph, points: np.ndarray | None, codes: np.ndarray, rng: np.random.RandomState
    ) -> None:
        super()._fit_graph(graph, points, codes, rng)
        self._complain_of_absent_groups(
            codes,
            "The constraint holds for the coordinates, not for the clusters. Raise n_neighbors, or use "
            "VariationalFairNCut, whose penalty is on the clusters",
        )

    def _embed(self, graph: AffinityGraph, codes: np.ndarray) -> Embedding:
        if self.solver == "nullspace":
            return nullspace_embedding(
                graph,
                self.n_clusters,
                groups=codes,
                laplacian=self.laplacian,
                max_memory_mb=self.max_memory_mb,
            )
        return spectral_embedding(
            graph,
            self.n_clusters,
            groups=codes,
            laplacian=self.laplacian,
            tol=self.tol,
            max_iter=self.max_iter,
        )
