"""FairDen (Krieger et al., ICLR 2025): fair spectral clustering of density-connected points."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import cdist, squareform
from sklearn.utils import check_random_state

from fairclust.base import COUNT, FairClusterer, NotSupported, record
from fairclust.kernels.graph import AffinityGraph
from fairclust.methods.spectral.embedding import check_memory, spectral_embedding
from fairclust.solvers.lloyd import Lloyd

# Number of dense n x n matrices that are in memory at once.
_MATRICES = 4
# While too many clusters are noise, k-means is run for one cluster more; this is the largest number of extra clusters.
_MORE = 20
# The least similarity of two points. It gives every point neighbours in the graph.
_LEAST = 1e-6


@dataclass(eq=False, repr=False, kw_only=True)
class FairDen(FairClusterer):
    """Fair spectral clustering of density-connected points, for clusters of any shape.

    Two points are more similar, the denser the path that joins them. From these similarities fair spectral clustering
    computes coordinates that have the same mean in every group, and k-means clusters the coordinates. A cluster of
    fewer than `min_points` points is noise. k-means is then run again for one cluster more, at most 20 times, until
    `n_clusters` clusters are not noise. If there are still too few, the largest of the others are kept, too. The shares
    of the groups in the clusters have no bound.

    Parameters
    ----------
    min_points : int, default=5
        The density at a point is measured by the distance to its `min_points`-th nearest point, itself included; here
        `min_points` is cut to the number of rows. It is also the size of the smallest cluster that is not noise.
    n_init : int, default=10
        Number of starts of each k-means.
    max_memory_mb : float, default=8000
        Limit, in MB, on the memory of four dense n x n matrices. For more rows `fit` raises `NotSupported`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        A noise point has the label of the cluster whose points it is most similar to on average.
    noise_ : ndarray of bool, shape (n_samples,)
        Points outside of the `n_clusters` largest clusters of the last k-means.
    embedding_ : ndarray of shape (n_samples, n_components)
        The coordinates that k-means clusters.

    References
    ----------
    Krieger, Beer, Matthews, Thiesson, Assent, "FairDen: fair density-based clustering", ICLR 2025.

    Examples
    --------
    >>> from fairclust import FairDen
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairDen(2, min_points=2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> model.embedding_.shape
    (8, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"min_points": COUNT}

    min_points: int = 5
    n_init: int = 10
    max_memory_mb: float = 8000.0

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        check_memory(len(X), _MATRICES, self.max_memory_mb, "FairDen", "take fewer rows")
        if len(X) == 1:
            raise NotSupported("a graph needs two points, found n_samples=1")
        similarities = density_similarities(X, min(self.min_points, len(X)))
        graph = AffinityGraph(similarities, similarities.sum(axis=1))
        embedding = spectral_embedding(graph, self.n_clusters, groups=codes)
        self.embedding_ = embedding.coordinates
        model, clusters = self._clusters(check_random_state(self.random_state))
        self.noise_ = ~np.isin(model.labels_, clusters)
        sums = similarities @ (model.labels_[:, None] == clusters)
        closest = (sums / (model.labels_[:, None] == clusters).sum(axis=0)).argmax(axis=1)
        self.labels_ = np.where(
            self.noise_, closest, np.searchsorted(clusters, np.minimum(model.labels_, clusters.max()))
        ).astype(np.int32)
        self.n_iter_ = int(model.n_iter_)
        cut = float(embedding.eigenvalues.sum())
        self.history_ = [record(self.n_iter_, begin, float(model.inertia_), cut, embedding.constraint)]
        self._complain_of_absent_groups(
            codes,
            "The constraint holds for the coordinates, not for the clusters. Take fewer clusters, or a method that "
            "bounds the shares in the clusters, such as PriceFairKMeans",
        )

    def _clusters(self, rng: np.random.RandomState) -> tuple[Lloyd, np.ndarray]:
        """K-means with enough clusters that are not noise, and the sorted numbers of the clusters to keep."""
        n_distinct = len(np.unique(self.embedding_.round(12), axis=0))
        n_wanted = n_tried = min(self.n_clusters, n_distinct)
        while True:
            model = Lloyd(n_tried, n_init=self.n_init, random_state=rng).fit(self.embedding_)
            sizes = np.bincount(model.labels_, minlength=n_tried)
            large = np.flatnonzero(sizes >= self.min_points)
            if len(large) >= n_wanted or n_tried == min(n_distinct, n_wanted + _MORE):
                # If there are not enough clusters of `min_points` points, the largest smaller ones are kept as well.
                return model, np.sort(np.argsort(-sizes, kind="stable")[:n_wanted])
            n_tried += 1


def density_distances(X: np.ndarray, min_points: int) -> np.ndarray:
    """For any two points, the longest step on the path between them whose longest step is the shortest (Beer et al.
    2023).

    The length of a step is the largest of three distances: between its two ends, and from each end to its
    `min_points`-th nearest point, where the point itself counts as the first.
    """
    steps = cdist(X, X)
    core = np.partition(steps, min_points - 1, axis=1)[:, min_points - 1]
    np.maximum(steps, np.maximum(core[:, None], core), out=steps)
    np.fill_diagonal(steps, 0.0)
    # Single linkage joins two points at exactly this length.
    return squareform(cophenet(linkage(squareform(steps, checks=False), "single")))


def density_similarities(X: np.ndarray, min_points: int) -> np.ndarray:
    """Similarities in (0, 1] of the density-connectivity distances, zeros on the diagonal (Krieger et al. 2025).

    They are 1 at distance 0 and 1e-6 for the points farthest from each other. In the paper these have similarity 0, so
    an outlier may have no neighbours.
    """
    distances = density_distances(X, min_points)
    largest = distances.max()
    similarities = 1 - distances / largest if largest > 0 else np.ones_like(distances)
    np.maximum(similarities, _LEAST, out=similarities)
    np.fill_diagonal(similarities, 0.0)
    return similarities
