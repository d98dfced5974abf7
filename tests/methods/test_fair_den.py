"""FairDen: its distances against all paths, its coordinates against the published null space."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score

from fairclust.methods import FairDen
from fairclust.methods.spectral.fair_den import density_distances, density_similarities
from twins import fair_spectral_coordinates


def slow_distances(X, min_points):
    """Run Floyd and Warshall's algorithm with the largest step of a path instead of the sum of the steps."""
    steps = cdist(X, X)
    core = np.sort(steps, axis=1)[:, min_points - 1]
    steps = np.maximum(steps, np.maximum.outer(core, core))
    for via in range(len(X)):
        steps = np.minimum(steps, np.maximum.outer(steps[:, via], steps[via]))
    np.fill_diagonal(steps, 0)
    return steps


@pytest.mark.parametrize("min_points", [1, 3])
def test_distances(min_points):
    X = np.random.default_rng(0).normal(size=(25, 2))
    assert_allclose(density_distances(X, min_points), slow_distances(X, min_points))


def test_coordinates_are_those_of_the_published_null_space():
    """They agree up to their sign, and up to the similarity of the farthest points, which is not quite zero here."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(40, 2)), np.arange(40) % 3
    model = FairDen(3, min_points=3, random_state=0).fit(X, sensitive_features=codes)
    S = density_similarities(X, 3)
    # Compare the spaces that the coordinates span: a rotation within one eigenvalue changes no cluster.
    inner = (model.embedding_ * S.sum(axis=0)[:, None]).T @ fair_spectral_coordinates(S, codes, 3)
    assert_allclose(np.linalg.svd(inner)[1], 1.0, atol=1e-6)
    shares = np.eye(3)[codes] - np.bincount(codes) / 40
    assert_allclose(shares.T @ model.embedding_, 0, atol=1e-8)


def test_outliers_are_noise_and_get_the_cluster_that_is_most_similar():
    rng = np.random.default_rng(0)
    blobs = [rng.normal([5 * i, 0], 0.3, size=(50, 2)) for i in range(3)]
    X = np.concatenate([*blobs, [[10, 3.5], [0, -3.5], [5, 3.5]]])
    model = FairDen(4, random_state=0).fit(X, sensitive_features=np.arange(153) % 2)
    np.testing.assert_array_equal(np.flatnonzero(model.noise_), [150, 151, 152])
    np.testing.assert_array_equal(model.labels_[150:], model.labels_[[100, 0, 50]])
    assert adjusted_rand_score(model.labels_[:150], np.repeat([0, 1, 2], 50)) > 0.9
