import numpy as np
import pytest

from fairclust.kernels.moves import sweep
from fairclust.metrics import contingency
from twins import bfkm_sweep


def problem(seed, n_groups, n_samples=60, n_clusters=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    codes = rng.integers(n_groups, size=n_samples).astype(np.int32)
    codes[:n_groups] = np.arange(n_groups)
    labels = rng.permutation(np.arange(n_samples) % n_clusters).astype(np.int32)
    return X, codes, rng.normal(size=(n_clusters, 3)), labels


@pytest.mark.parametrize("own_group", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 5])
@pytest.mark.parametrize("rho, lam", [(0.0, 0.0), (300.0, 0.0), (0.0, 2000.0), (1e3, 1e3)])
def test_the_sweep_agrees_with_the_transcription(n_groups, rho, lam, own_group):
    for seed in range(3):
        X, codes, centers, labels = problem(seed, n_groups)
        expected = bfkm_sweep(X, codes, centers, labels, rho, lam, own_group)
        counts = contingency(labels, codes, 4)
        found = labels.copy()
        moved, summed = sweep(X, codes, centers, found, counts, rho=rho, lam=lam, own_group=own_group)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(counts, contingency(expected, codes, 4))
        assert moved == (expected != labels).sum() > 0
        assert summed == pytest.approx(((X - centers[expected]) ** 2).sum())


def test_a_lone_point_stays():
    X, codes, labels = np.zeros((3, 1)), np.zeros(3, np.int32), np.array([0, 0, 1], np.int32)
    counts = contingency(labels, codes, 2)
    moved, summed = sweep(X, codes, np.array([[0.0], [2.0]]), labels, counts, rho=0, lam=0)
    assert (moved, summed) == (0, 4.0)
