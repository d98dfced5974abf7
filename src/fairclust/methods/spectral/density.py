"""Density-connectivity: how dense the paths are that join two points.

Beer et al., "Connecting the dots: density-connectivity distance unifies DBSCAN, k-center and spectral clustering", KDD
2023; Krieger et al., "FairDen: fair density-based clustering", ICLR 2025.
"""

from __future__ import annotations

import numpy as np
from scipy.cluster.hierarchy import cophenet, linkage
from scipy.spatial.distance import cdist, squareform

# The least similarity of two points. It gives every point neighbours in the graph.
_LEAST = 1e-6


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
