"""From an embedding to clusters: the step that all spectral methods share."""

from __future__ import annotations

from abc import abstractmethod
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from fairclust.kernels.graph import AffinityGraph
from fairclust.solvers.graph_input import GraphClusterer
from fairclust.solvers.spectral import Embedding


class SpectralClusterer(GraphClusterer):
    """Base of the spectral methods: the embedding of ``_embed(graph, codes)``, then k-means on its rows."""

    n_init: int
    components: str
    normalize_rows: bool

    @abstractmethod
    def _embed(self, graph: AffinityGraph, codes: np.ndarray) -> Embedding: ...

    def _fit_graph(
        self, graph: AffinityGraph, points: np.ndarray | None, codes: np.ndarray, rng: np.random.RandomState
    ) -> None:
        begin = perf_counter()
        if self.components == "error":
            n_pieces, piece = sp.csgraph.connected_components(graph.W, directed=False)
            if n_pieces > 1:
                raise ValueError(
                    f"the graph falls into {n_pieces} pieces, the largest of {np.bincount(piece).max()} "
                    "nodes; cluster that one alone, or set components='keep'"
                )
        found = self._embed(graph, codes)
        middle = perf_counter()
        rows = normalize(found.coordinates) if self.normalize_rows else found.coordinates
        model = KMeans(self.n_clusters, n_init=self.n_init, random_state=rng).fit(rows)
        self.labels_ = model.labels_
        self.embedding_, self.eigenvalues_ = rows, found.eigenvalues
        self.residual_, self.orthogonality_ = found.residual, found.orthogonality
        self.constraint_ = found.constraint
        self.n_products_ = found.n_products
        self.n_iter_ = int(model.n_iter_)
        self.history_: list[dict[str, Any]] = [
            {
                "step": self.n_iter_,
                "objective": float(model.inertia_),
                "clustering": float(found.eigenvalues.sum()),
                "fairness": found.constraint,
                "seconds": perf_counter() - begin,
                "embedding_seconds": middle - begin,
            }
        ]
