"""S-MPFC: its program against trying all assignments, and the balance of the clusters."""

from itertools import product

import numpy as np
import pytest

from fairclust.methods import BatchProgramKMeans
from fairclust.methods.programs.batch_program import assign_batches
from fairclust.metrics import balance, data_balance, sse


def slow_assignment(costs, counts, min_balance):
    best = np.inf
    for labels in product(range(costs.shape[1]), repeat=len(costs)):
        tables = [counts[np.array(labels) == k].sum(axis=0) for k in range(costs.shape[1])]
        if all(t.sum() and t.min() >= min_balance * t.max() - 1e-9 for t in tables):
            best = min(best, costs[np.arange(len(costs)), list(labels)].sum())
    return best


@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_cheapest_assignment(seed, n_groups):
    rng = np.random.default_rng(seed)
    costs, counts = rng.random((8, 2)), rng.integers(1, 6, size=(8, n_groups))
    labels = assign_batches(costs, counts, 0.6)
    best = slow_assignment(costs, counts, 0.6)
    assert costs[np.arange(8), labels].sum() == pytest.approx(best, rel=2e-3)


def test_empty_clusters_only_where_they_must_be():
    costs = np.array([[0.0, 1.0], [0.0, 1.0]])
    assert set(assign_batches(costs, np.array([[1, 1], [1, 1]]), 1.0)) == {0, 1}
    # Each batch has points of one group only.
    assert list(assign_batches(costs, np.array([[2, 0], [0, 2]]), 1.0)) == [0, 0]
    assert assign_batches(costs, np.array([[2, 0], [1, 0]]), 1.0) is None


@pytest.mark.parametrize("n_batches", [60, None])
def test_keeps_the_balance(grouped_blobs, n_batches):
    X, codes = grouped_blobs(n_samples=200, n_groups=3)
    model = BatchProgramKMeans(4, n_batches=n_batches, random_state=0)
    labels = model.fit_predict(X, sensitive_features=codes)
    assert model.target_balance_ == pytest.approx(0.9 * data_balance(labels, sensitive_features=codes))
    assert balance(labels, sensitive_features=codes) >= model.target_balance_ * (1 - 1e-9)
    assert model.cost_ == pytest.approx(sse(X, labels))
