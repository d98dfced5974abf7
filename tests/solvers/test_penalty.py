import numpy as np
import pytest
from problems import from_blobs, from_matrix

from fairclust.base import Diverged
from fairclust.methods.variational.penalty import minimize_penalty


def test_prices_follow_from_the_table():
    problem = from_blobs(n_samples=5000, n_groups=3, seed=1)
    found = minimize_penalty(problem.potentials, lam=1000.0, target=problem.shares)
    assert found.converged
    b = 1 / found.counts.sum(axis=0) - problem.shares[:, None] / found.counts
    centred = [w - w.mean(axis=1, keepdims=True) for w in (found.prices, 1000.0 * b)]
    np.testing.assert_allclose(*centred, atol=0.02)


def test_points_that_are_not_finite_are_reported():
    problem = from_matrix(np.zeros((4, 2)), np.array([0, 1, 0, 1]))
    problem.potentials.row_min_sum = np.inf
    with pytest.raises(Diverged, match="sum to"):
        minimize_penalty(problem.potentials, lam=1.0, target=problem.shares)
