"""Fair spectral clustering, dense (Kleindessner et al. 2019) and matrix-free (Wang et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from fairclust.kernels.graph import AffinityGraph
from fairclust.methods.spectral.embedding import Embedding, nullspace_embedding, spectral_embedding
from fairclust.methods.spectral.spectral import SpectralClustering


@dataclass(eq=False, repr=False, kw_only=True)
class FairSpectralClustering(SpectralClustering):
    """Spectral clustering whose coordinates have the same mean in every group.

    The coordinates H minimise ``Tr(H'LH)`` under ``H'DH = I`` (``H'H = I`` if unnormalised) and ``F'H = 0``, where F
    are the group indicators minus their shares. k-means on the rows of H gives clusters that are not exactly fair.

    Parameters
    ----------
    laplacian : "normalized" or "unnormalized", default="normalized"
        FSCN or FSCUN of Kleindessner et al.
    solver : "projected" or "nullspace", default="projected"
        "nullspace" is the first published algorithm, by dense matrices. "projected" (s-FairSC) finds the same
        coordinates by products with the affinity only.

    Raises
    ------
    fairclust.base.Diverged
        The eigen-solver did not reach `tol`.

    References
    ----------
    Kleindessner, Samadi, Awasthi, Morgenstern, Guarantees for spectral clustering with fairness constraints,
    ICML 2019; Wang, Lu, Davidson, Bai, Scalable spectral clustering with group fairness constraints,
    AISTATS 2023.

    Examples
    --------
    >>> from fairclust import FairSpectralClustering
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairSpectralClustering(2, n_neighbors=5, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **SpectralClustering._parameter_constraints,
        "laplacian": [StrOptions({"normalized", "unnormalized"})],
        "solver": [StrOptions({"projected", "nullspace"})],
    }

    laplacian: str = "normalized"
    solver: str = "projected"

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
        size = self.n_clusters
        wanted: dict[str, Any] = {"groups": codes, "laplacian": self.laplacian}
        if self.solver == "nullspace":
            return nullspace_embedding(graph, size, **wanted, max_memory_mb=self.max_memory_mb)
        return spectral_embedding(graph, size, **wanted, tol=self.tol, max_iter=self.max_iter)
