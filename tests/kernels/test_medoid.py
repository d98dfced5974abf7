"""Medoid kernel against all pairwise distances."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from fairclust.kernels.medoid import Medoid, medoid
from fairclust.kernels.swaps import swap_medoids


def brute_force(X):
    """Find the medoid from every pair of points. Among sums that agree to 1e-12 the first row counts."""
    sums = cdist(X, X).sum(axis=1)
    return int(np.flatnonzero(sums <= sums.min() * (1 + 1e-12))[0]), sums.min()


def check(X):
    row, cost = brute_force(X)
    found = medoid(X)
    assert found.row == row
    assert_allclose(found.cost, cost, rtol=1e-12, atol=0)
    assert found.lower_bound == found.cost
    assert 1 <= found.evaluations <= len(X)
    return found


@pytest.mark.parametrize("d", [1, 2, 5, 14, 25])
@pytest.mark.parametrize("shape", ["gauss", "cube", "heavy tails", "two blobs", "sphere", "line", "far away"])
def test_equals_brute_force(d, shape):
    rng = np.random.default_rng([d, len(shape)])
    X = rng.normal(size=(900, d))
    if shape == "cube":
        X = rng.random(size=(900, d))
    elif shape == "heavy tails":
        X = rng.standard_cauchy(size=(900, d))
    elif shape == "two blobs":
        X[:450] += 20
    elif shape == "sphere":
        X /= np.linalg.norm(X, axis=1, keepdims=True)
    elif shape == "line":
        X = rng.normal(size=(900, 1)) * np.ones(d)
    elif shape == "far away":
        X = 1e7 + X
    check(X)


def test_bounds_save_most_evaluations():
    """Without bounds every point would be evaluated."""
    rng = np.random.default_rng(0)
    assert check(rng.normal(size=(3_000, 5))).evaluations < 20
    assert check(rng.normal(size=(3_000, 14))).evaluations < 60


def test_copies_share_an_evaluation():
    rng = np.random.default_rng(1)
    X = np.repeat(rng.normal(size=(30, 3)), 40, axis=0)
    assert check(X[rng.permutation(len(X))]).evaluations <= 30


def test_ties_up_to_rounding_go_to_the_smallest_row():
    """The corners of a regular polygon tie exactly, but their sums round differently."""
    angle = 2 * np.pi * np.arange(17) / 17
    corners = np.column_stack([np.cos(angle), np.sin(angle)])
    for shift in range(17):
        assert medoid(np.roll(corners, shift, axis=0)).row == 0


def test_no_point_one_point_equal_points():
    assert medoid(np.empty((0, 3))) == Medoid(-1, 0.0, 0.0, 0)
    assert medoid([[5.0, -2.0]]) == Medoid(0, 0.0, 0.0, 1)
    assert medoid([[5.0, -2.0]] * 50) == Medoid(0, 0.0, 0.0, 1)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_equals_brute_force_on_small_grids(data):
    n = data.draw(st.integers(1, 40))
    d = data.draw(st.integers(1, 3))
    values = st.lists(st.integers(-3, 3), min_size=n * d, max_size=n * d)
    check(np.array(data.draw(values), dtype=float).reshape(n, d))


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 150), st.integers(1, 8), st.integers(1, 20), st.integers(0, 10_000))
def test_a_budget_brackets_the_optimum(n, d, budget, seed):
    X = np.random.default_rng(seed).normal(size=(n, d))
    _, optimum = brute_force(X)
    found = medoid(X, max_evaluations=budget)
    assert found.evaluations <= budget
    assert found.lower_bound <= optimum * (1 + 1e-12)
    assert found.cost >= optimum * (1 - 1e-12)
    assert_allclose(found.cost, cdist(X[[found.row]], X).sum(), rtol=1e-12)


@settings(max_examples=60, deadline=None)
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
