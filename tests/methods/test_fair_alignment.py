import tracemalloc

import numpy as np
import pytest
from sklearn import cluster

from fairclust.methods import FairAlignmentKMeans
from fairclust.metrics import balance, contingency, data_balance, sse


@pytest.mark.parametrize("block_size", [20, 1024])
def test_both_groups_have_the_same_shares_of_all_clusters(grouped_blobs, block_size):
    X, codes = grouped_blobs(n_samples=400, seed=4)
    model = FairAlignmentKMeans(4, block_size=block_size, random_state=0).fit(X, sensitive_features=codes)
    # The sizes of the blocks differ by one, so the shares are not exactly equal.
    np.testing.assert_allclose(model.shares_.sum(axis=1), 1)
    np.testing.assert_allclose(model.shares_[0], model.shares_[1], atol=1e-9)
    table = contingency(model.labels_, codes)
    assert balance(table) > 0.85 * data_balance(table)
    plain = cluster.KMeans(4, n_init=10, random_state=0).fit(X)
    assert balance(contingency(plain.labels_, codes)) < 0.5 * data_balance(table)
    assert plain.inertia_ < sse(X, model.labels_)


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_epsilon_bounds_the_difference_of_shares(grouped_blobs, weight):
    X, codes = grouped_blobs(n_samples=400, seed=4)
    costs = []
    for epsilon in (0.0, 0.05, 0.2, 1.0):
        model = FairAlignmentKMeans(4, epsilon=epsilon, transport_weight=weight, random_state=0)
        model.fit(X, sensitive_features=codes)
        assert np.abs(model.shares_[0] - model.shares_[1]).max() <= epsilon + 1e-9
        costs.append(model.objective_)
    assert costs == sorted(costs, reverse=True)
    plain = cluster.KMeans(4, n_init=10, random_state=np.random.RandomState(0)).fit(X)
    assert costs[-1] == pytest.approx(plain.inertia_, rel=1e-3)


def test_with_true_costs_the_objective_is_the_cost_of_the_labels(grouped_blobs):
    # The groups have the same size, so whole points are matched and nothing is rounded.
    X, _ = grouped_blobs()
    codes = np.arange(len(X)) % 2
    model = FairAlignmentKMeans(4, transport_weight=1.0, random_state=0).fit(X, sensitive_features=codes)
    assert model.objective_ == pytest.approx(sse(X, model.labels_), rel=1e-3)
    assert balance(contingency(model.labels_, codes)) == 1


def test_one_group_is_clustered_by_k_means(grouped_blobs):
    X, _ = grouped_blobs()
    model = FairAlignmentKMeans(3, random_state=0).fit(X, sensitive_features=np.ones(len(X)))
    assert model.objective_ == pytest.approx(sse(X, model.labels_), rel=1e-3)


def test_peak_memory_in_tables_of_points_by_clusters():
    n_samples, n_clusters = 50_000, 40
    model = FairAlignmentKMeans(n_clusters, block_size=16, n_init=1, max_iter=1, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 2))
    groups = (rng.random(n_samples) < 0.3 + 0.3 * (X[:, 0] > 0)).astype(int)
    # Compiling takes memory as well, so a first fit compiles the kernels before the measurement.
    model.fit(X[:1000], sensitive_features=groups[:1000])
    tracemalloc.start()
    model.fit(X, sensitive_features=groups)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.6 * 8 * n_samples * n_clusters
