"""Small assignment problems with their plain N x K matrices."""

from typing import NamedTuple

import numpy as np

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import TILE, make_layout, pack_points
from toys import make_grouped_blobs


class Problem(NamedTuple):
    a: np.ndarray
    codes: np.ndarray
    potentials: Potentials
    shares: np.ndarray


def from_blobs(n_samples=600, n_groups=2, n_clusters=4, seed=0, dtype=np.float64):
    """Squared distances of grouped blobs to some of their points."""
    X, codes = make_grouped_blobs(n_samples=n_samples, n_groups=n_groups, seed=seed)
    centers = X[np.random.default_rng(seed).choice(n_samples, n_clusters, replace=False)]
    potentials = Potentials.empty(make_layout(codes, n_groups), n_groups, n_clusters, dtype)
    points = pack_points(X, potentials.layout, np.zeros(X.shape[1]), dtype)
    potentials.set_distances(points, centers)
    a = ((X[:, None] - centers) ** 2).sum(axis=2)
    return Problem(a, codes, potentials, np.bincount(codes) / n_samples)


def from_matrix(a, codes):
    """Potentials of any kind, as those of a graph."""
    n_groups = codes.max() + 1
    layout = make_layout(codes, n_groups)
    potentials = Potentials.empty(layout, n_groups, a.shape[1], np.float64)
    potentials.a[:] = 0
    least = a.min(axis=1)
    for t in range(layout.n_tiles):
        rows = layout.order[layout.start[t] : layout.start[t] + layout.count[t]]
        potentials.a[t, :, : len(rows)] = (a[rows] - least[rows, None]).T
    assert potentials.a.shape[2] == TILE
    potentials.row_min_sum = float(least.sum())
    return Problem(a, codes, potentials, np.bincount(codes) / len(codes))
