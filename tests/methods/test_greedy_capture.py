"""Greedy capture: its balls against a plain transcription, and its promise."""

from math import sqrt

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.spatial.distance import cdist

from fairclust.kernels.capture import capture
from fairclust.methods import GreedyCapture
from fairclust.metrics import proportionality


def slow_capture(distances, size):
    """Look at all balls anew at each radius at which something can happen, in ascending order."""
    left, opened = set(range(distances.shape[1])), []
    for radius in np.unique(distances):
        for place in opened:
            left -= {p for p in left if distances[place, p] <= radius}
        for place in range(len(distances)):
            inside = {p for p in left if distances[place, p] <= radius}
            if place not in opened and len(inside) >= size:
                opened.append(place)
                left -= inside
        if len(left) < size:
            return opened
    raise AssertionError


@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("seed", range(4))
def test_balls(seed, size):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    D = cdist(X, X)
    found, slow = capture(D, size), slow_capture(D, size)
    # Two balls can fill at the same distance, which is that of a pair of points. Then either can be the first.
    reached = [[np.sort(D[p])[size - 1] for p in rows] for rows in (found, slow)]
    assert len(found) == len(slow) <= 30 // size
    assert reached[0][0] == reached[1][0] == np.sort(D, axis=1)[:, size - 1].min()


def test_by_hand():
    # There are three points near 0, three near 10 and two far out. As n/k = 8/3, a ball needs three points.
    x = np.array([0.0, 1.0, 2.2, 10.0, 10.5, 11.1, 30.0, 50.0])
    distances = np.abs(x[:, None] - x)
    assert_array_equal(capture(distances, 3), [4, 1])
    model = GreedyCapture(3).fit(x[:, None], sensitive_features=np.zeros(8))
    assert_array_equal(model.center_indices_, [4, 1, 7])
    assert_array_equal(model.labels_, [1, 1, 1, 0, 0, 0, 0, 2])
    assert model.n_captured_ == 2


@pytest.mark.parametrize("seed", range(5))
def test_no_coalition_gains_more_than_promised(seed):
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(scale=s, size=(40, 2)) + c for s, c in ((0.2, 0), (0.2, 6), (3, 40))])
    model = GreedyCapture(3).fit(X, sensitive_features=np.zeros(120))
    rho = proportionality(X, model.labels_, n_clusters=3, centers=model.cluster_centers_, max_candidates=None)
    assert rho <= 1 + sqrt(2)


def test_a_sample_of_many_rows(grouped_blobs):
    X, codes = grouped_blobs()
    model = GreedyCapture(4, max_rows=100, random_state=0).fit(X, sensitive_features=codes)
    rho = proportionality(X, model.labels_, centers=model.cluster_centers_)
    assert rho < 4
    other = GreedyCapture(4, max_rows=100, random_state=1).fit(X, sensitive_features=codes)
    assert list(model.center_indices_) != list(other.center_indices_)
