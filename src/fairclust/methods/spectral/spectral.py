"""Spectral clustering without fairness, with which the fair methods on graphs are compared."""

from __future__ import annotations

import numpy as np

from fairclust.kernels.graph import AffinityGraph
from fairclust.methods.spectral.embedding import Embedding, spectral_embedding
from fairclust.methods.spectral.graph import SpectralClusterer


class SpectralClustering(SpectralClusterer):
    """Relaxed normalised cut: k-means on the rows of ``D^-1/2 U``. The groups do not change the clustering.

    U are the eigenvectors of the k smallest eigenvalues of ``I - D^-1/2 W D^-1/2``. scikit-learn's class of the same
    name has the same embedding, but it factorises the matrix, which makes a sparse matrix much denser.

    Parameters
    ----------
    n_clusters : int, default=8
    affinity, n_neighbors, normalize_rows, n_init, tol, max_iter, max_memory_mb, random_state : optional
        As for `FairSpectralClustering`.

    Attributes
    ----------
    labels_, n_iter_, history_, groups_, embedding_, eigenvalues_, n_products_, residual_, orthogonality_
        As for `FairSpectralClustering`.

    References
    ----------
    Ng, Jordan, Weiss, On spectral clustering, 2001; Wang, Lu, Davidson, Bai, Scalable spectral clustering
    with group fairness constraints, AISTATS 2023, Algorithm 1.
    """

    def _embed(self, graph: AffinityGraph, codes: np.ndarray) -> Embedding:
        return spectral_embedding(graph, self.n_clusters, tol=self.tol, max_iter=self.max_iter)
