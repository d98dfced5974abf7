"""The base of the methods on graphs, which makes a graph of points or checks an affinity."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from fairclust.base import FairClusterer
from fairclust.group_encoding import check_same_order
from fairclust.kernels.graph import AffinityGraph, build_knn_graph


@dataclass(eq=False, repr=False, kw_only=True)
class GraphClusterer(FairClusterer):
    """Base of the methods on graphs, which implement ``_fit_graph(graph, points, codes, rng)``.

    Parameters
    ----------
    affinity : "nearest_neighbors" or "precomputed", default="nearest_neighbors"
        The graph of nearest neighbours, see `fairclust.kernels.graph.build_knn_graph`, or X itself: a sparse or dense
        square matrix that is non-negative and symmetric and has no node without edges.
    n_neighbors : int, default=20
        Number of neighbours of a point, itself included, but at most the number of rows.
    """

    affinity: str = "nearest_neighbors"
    n_neighbors: int = 20

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = tags.input_tags.sparse = self.affinity == "precomputed"
        return tags

    def fit(
        self, X: Any, y: Any = None, *, sensitive_features: Any = None, points: Any = None, **given: Any
    ) -> FairClusterer:
        """Cluster the rows of `X`, or the nodes of the graph `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers; for ``affinity="precomputed"`` a sparse or dense affinity of shape
            (n_samples, n_samples).
        y : ignored
        sensitive_features : array-like of shape (n_samples,)
            The group of every row.
        points : array-like of shape (n_samples, n_features), optional
            Features of the nodes, for ``affinity="precomputed"``. Only `VariationalFairNCut` uses them, for its
            starts.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter, `X`, the points or the groups are malformed, or there are more clusters than rows.
        NotSupported
            The method cannot treat this input, or it would need more memory than `max_memory_mb`.
        """
        if self.affinity != "precomputed":
            if points is not None:
                raise ValueError(
                    "points are features of the nodes of a graph: leave them out, or set affinity='precomputed'"
                )
            return super().fit(X, sensitive_features=sensitive_features, **given)
        self._refuse(given)
        check_same_order(X, sensitive_features)
        check_same_order(X, points, "points")
        with self._whole_or_not():
            self._validate_params()
            W = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
            graph = AffinityGraph.from_matrix(W)
            n_nodes = len(graph.degrees)
            codes = self._group_codes(sensitive_features, n_nodes)
            self._check_sizes(n_nodes)
            if points is not None:
                points = check_array(points, dtype=[np.float64, np.float32], input_name="points")
                if len(points) != n_nodes:
                    raise ValueError(
                        f"points has {len(points)} rows, expected one for each of {n_nodes} nodes"
                    )
            self._fit_graph(graph, points, codes, check_random_state(self.random_state))
            self._count(codes)
        return self

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        graph = AffinityGraph.from_matrix(build_knn_graph(X, self.n_neighbors, random_state=rng))
        self._fit_graph(graph, X, codes, rng)

    @abstractmethod
    def _fit_graph(
        self, graph: AffinityGraph, points: np.ndarray | None, codes: np.ndarray, rng: np.random.RandomState
    ) -> None: ...
