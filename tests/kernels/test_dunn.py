"""Dunn kernels against all pairwise distances."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from fairclust.kernels.dunn import dunn_distances


def brute_force(X, labels):
    """Compute the index from every pair of points."""
    distances = cdist(X, X)
    same = np.equal.outer(labels, labels)
    between = distances[~same]
    within = distances[same]
    return between.min() if between.size else np.inf, within.max() if within.size else 0.0


def found(X, labels):
    present, codes = np.unique(labels, return_inverse=True)
    return dunn_distances(np.array(X, dtype=float), codes, len(present))


def check(X, labels):
    assert_allclose(found(X, labels), brute_force(X, labels), rtol=1e-13, atol=0)


@pytest.mark.parametrize("d", [1, 2, 3, 5, 14])
@pytest.mark.parametrize("n_clusters", [1, 2, 7])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0])
def test_equals_brute_force_on_blobs(d, n_clusters, scale):
    """Clusters overlap at scale 0. At the largest scale they are far apart, so no leaf of the tree is mixed."""
    rng = np.random.default_rng([d, n_clusters, int(scale)])
    labels = rng.integers(0, n_clusters, 700)
    X = rng.normal(size=(700, d)) + scale * rng.normal(size=(n_clusters, d))[labels]
    check(X, labels)


def test_far_from_the_origin_nothing_is_lost():
    """An offset of 1e8 leaves 8 digits, so the kernel must square differences and not expand the squares."""
    rng = np.random.default_rng(5)
    X = 1e8 + rng.normal(size=(300, 3))
    check(X, rng.integers(0, 3, 300))
