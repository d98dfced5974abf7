import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.preprocessing import normalize

from fairclust.kernels.fairlets import swap_medoids
from fairclust.kernels.medoid import medoids


def medoid(X):
    """Return the row of the medoid, its sum of distances, and whether it is proved."""
    return tuple(part.item() for part in medoids(X, np.zeros(len(X), int), 1, max_evaluations=len(X)))


SHAPES = {
    "gauss": lambda rng, n, d: rng.normal(size=(n, d)),
    "cube": lambda rng, n, d: rng.random(size=(n, d)),
    "heavy tails": lambda rng, n, d: rng.standard_cauchy(size=(n, d)),
    "two blobs": lambda rng, n, d: rng.normal(size=(n, d)) + 20 * (np.arange(n) % 2)[:, None],
    "sphere": lambda rng, n, d: normalize(rng.normal(size=(n, d))),
    "line": lambda rng, n, d: rng.normal(size=(n, 1)) * np.ones(d),
    "far away": lambda rng, n, d: 1e7 + rng.normal(size=(n, d)),
    "copies": lambda rng, n, d: rng.permutation(np.repeat(rng.normal(size=(n // 40, d)), 40, axis=0)),
    "small grid": lambda rng, n, d: rng.integers(-3, 4, size=(n // 30, d)),
}


@pytest.mark.parametrize("d", [1, 2, 5, 14, 25])
@pytest.mark.parametrize("shape", SHAPES)
def test_equals_brute_force(d, shape):
    X = SHAPES[shape](np.random.default_rng([d, len(shape)]), 900, d).astype(float)
    sums, (row, cost, proved) = cdist(X, X).sum(axis=1), medoid(X)
    # Among sums that agree to 1e-12 the first row counts.
    assert row == np.flatnonzero(sums <= sums.min() * (1 + 1e-12))[0]
    assert_allclose(cost, sums.min(), rtol=1e-12, atol=0)
    assert proved


def test_ties_up_to_rounding_go_to_the_smallest_row():
    """The corners of a regular polygon tie exactly, but their sums round differently."""
    angle = 2 * np.pi * np.arange(17) / 17
    corners = np.column_stack([np.cos(angle), np.sin(angle)])
    for shift in range(17):
        assert medoid(np.roll(corners, shift, axis=0))[0] == 0


def test_no_point_one_point_equal_points():
    point = np.array([[5.0, -2.0]])
    assert medoid(point[:0]) == (-1, 0.0, True)
    assert medoid(point) == medoid(point.repeat(50, axis=0)) == (0, 0.0, True)


@settings(max_examples=60)
@given(st.integers(2, 25), st.integers(2, 6), st.integers(0, 10_000))
def test_no_swap_improves_swapped_medoids(n, n_medoids, seed):
    rng = np.random.default_rng(seed)
    # Few places, so that some points coincide.
    X = rng.integers(-3, 4, size=(n, 2)).astype(float)
    n_medoids = min(n, n_medoids)
    distances = cdist(X, X).astype(np.float32)
    found = swap_medoids(distances, rng.choice(n, n_medoids, replace=False))
    assert len(set(found)) == n_medoids
    cost = distances[found].min(axis=0).sum()
    for k, other in itertools.product(range(n_medoids), range(n)):
        swapped = np.where(np.arange(n_medoids) == k, other, found)
        assert cost <= distances[swapped].min(axis=0).sum() * (1 + 1e-5)
