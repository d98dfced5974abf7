"""Spectral clustering without fairness, with which the fair methods on graphs are compared."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from fairclust.base import POSITIVE, at_least, record
from fairclust.frame import Frame
from fairclust.kernels.graph import AffinityGraph, max_scaled_affinity
from fairclust.messages import NOT_UNIQUE
from fairclust.methods.spectral.embedding import Embedding, check_memory, spectral_embedding
from fairclust.methods.spectral.graph import GraphClusterer
from fairclust.solvers.lloyd import Lloyd


@dataclass(eq=False, repr=False, kw_only=True)
class SpectralClustering(GraphClusterer):
    """Relaxed normalised cut: k-means on the rows of ``D^-1/2 U``. The groups do not change the clustering.

    U are the eigenvectors of the k smallest eigenvalues of ``I - D^-1/2 W D^-1/2``. scikit-learn's class of the same
    name has the same embedding, but it factorises the matrix, which makes a sparse matrix much denser.

    Parameters
    ----------
    affinity : "nearest_neighbors", "max_scaled" or "precomputed", default="nearest_neighbors"
        "max_scaled" is the complete graph of `fairclust.kernels.graph.max_scaled_affinity`.
    n_init : int, default=10
        Number of starts of k-means, of which the best is kept.
    tol, max_iter : float, int, default=1e-9, 1000
        Tolerance of the residual, relative to the largest eigenvalue, and largest number of restarts.
    max_memory_mb : float, default=8000
        Limit, in MB, on the memory of dense n x n matrices: one for "max_scaled", and four for the solver "nullspace".
        For more rows `fit` raises `NotSupported`.
    random_state : int, RandomState or None
        The seed of k-means and of an approximate nearest-neighbour graph.

    Attributes
    ----------
    n_iter_ : int
        Number of steps of the best start of k-means.
    history_ : list of dict
        One record: `objective` (k-means cost in the embedding), `clustering` (sum of the eigenvalues, the
        relaxed cut), `fairness` (`constraint_`), `seconds`.
    embedding_ : ndarray of shape (n_samples, n_components)
        `n_components` is mostly `n_clusters`. It can be larger for graphs with several connected components.
    eigenvalues_ : ndarray of shape (n_components,)
    residual_, constraint_ : float
        Errors of the eigenvectors U: the largest residual, and the largest entry of ``|C'U|`` for the constraints C.

    References
    ----------
    Wang, Lu, Davidson, Bai, Scalable spectral clustering with group fairness constraints, AISTATS 2023, Algorithm 1.

    Examples
    --------
    >>> from fairclust import SpectralClustering
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = SpectralClustering(2, n_neighbors=5, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "affinity": [StrOptions({"nearest_neighbors", "max_scaled", "precomputed"})],
        "n_neighbors": at_least(2),
        "tol": POSITIVE,
    }

    n_init: int = 10
    tol: float = 1e-9
    max_iter: int = 1000
    max_memory_mb: float = 8000.0

    def _framing(self, X: np.ndarray) -> Frame:
        frame = super()._framing(X)
        # The published affinity depends on the unit of the data, so the data are not scaled.
        return frame._replace(unit=1.0) if self.affinity == "max_scaled" else frame

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        if self.affinity == "nearest_neighbors":
            super()._fit(X, codes)
            return
        check_memory(len(X), 1, self.max_memory_mb, "affinity='max_scaled'", "use 'nearest_neighbors'")
        W = max_scaled_affinity(X)
        self._fit_graph(AffinityGraph(W, W.sum(axis=1)), X, codes, check_random_state(self.random_state))

    def _embed(self, graph: AffinityGraph, codes: np.ndarray) -> Embedding:
        return spectral_embedding(graph, self.n_clusters, tol=self.tol, max_iter=self.max_iter)

    def _fit_graph(
        self, graph: AffinityGraph, points: np.ndarray | None, codes: np.ndarray, rng: np.random.RandomState
    ) -> None:
        begin = perf_counter()
        embedding = self._embed(graph, codes)
        if not embedding.unique:
            self._complain(NOT_UNIQUE)
        rows = embedding.coordinates
        # As in the published programs, k-means goes on until no row moves.
        model = Lloyd(self.n_clusters, n_init=self.n_init, tol=0, random_state=rng).fit(rows)
        self.labels_ = model.labels_
        self.embedding_, self.eigenvalues_ = rows, embedding.eigenvalues
        self.residual_, self.constraint_ = embedding.residual, embedding.constraint
        self.n_iter_ = int(model.n_iter_)
        cut = float(embedding.eigenvalues.sum())
        self.history_ = [record(self.n_iter_, begin, float(model.inertia_), cut, embedding.constraint)]
