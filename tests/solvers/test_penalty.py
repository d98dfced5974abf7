import numpy as np
import pytest
from problems import from_blobs, from_matrix
from scipy.linalg import block_diag
from scipy.special import softmax

from fairclust.base import Diverged
from fairclust.methods.variational import penalty
from fairclust.methods.variational.penalty import minimize_penalty
from twins import padded_fairness

TEMPERATURE = 0.3


def energy(problem, prices, lam, target):
    """Compute E_T from its definition on N x K rows."""
    s = softmax(-(problem.a + prices[problem.codes]) / TEMPERATURE, axis=1)
    mass = np.eye(len(target))[problem.codes].T @ s
    value = (s * problem.a).sum() + TEMPERATURE * (s * np.log(s)).sum() + lam * padded_fairness(mass, target)
    return value, mass


def central(function, x, h=1e-5):
    columns = []
    for i in range(x.size):
        step = np.zeros(x.size)
        step[i] = h
        step = step.reshape(x.shape)
        columns.append((np.asarray(function(x + step)) - function(x - step)) / (2 * h))
    return np.stack(columns, axis=-1)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_derivatives_by_finite_differences(n_groups):
    problem = from_blobs(n_samples=200, n_groups=n_groups, n_clusters=3, seed=2)
    prices = np.random.default_rng(0).normal(scale=0.2, size=(n_groups, 3))
    at = penalty._evaluate(problem.potentials, prices, TEMPERATURE, 40.0, problem.shares)
    value, mass = energy(problem, prices, 40.0, problem.shares)
    assert at.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(at.mass, mass, rtol=1e-10)

    gradient = central(lambda w: energy(problem, w, 40.0, problem.shares)[0], prices)
    found = -np.einsum("jkl,jl->jk", at.curvature, at.residual).ravel() / TEMPERATURE
    np.testing.assert_allclose(found, gradient, rtol=1e-5, atol=1e-5)
    slope = central(lambda w: energy(problem, w, 40.0, problem.shares)[1].ravel(), prices)
    np.testing.assert_allclose(-block_diag(*at.curvature) / TEMPERATURE, slope, rtol=1e-5, atol=1e-5)


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
