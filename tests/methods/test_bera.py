import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn import cluster

from fairclust.methods import BeraFairKMeans
from fairclust.methods.programs.fair_lp import bound_violation
from twins import cheapest_shares, share_rows


def test_attributes_agree(grouped_blobs):
    X, codes = grouped_blobs()
    model = BeraFairKMeans(4, random_state=0).fit(X, sensitive_features=codes)
    plain = cluster.KMeans(4, n_init=10, random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_)
    distances = ((X[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    assert model.cost_ == pytest.approx(distances[np.arange(len(X)), model.labels_].sum())
    assert plain.inertia_ < model.cost_ <= model.lp_cost_ * (1 + 1e-9)
    assert model.cost_ == pytest.approx(model.lp_cost_, rel=0.01)
    assert model.price_of_fairness_ == pytest.approx(model.cost_ / plain.inertia_)
    assert 0 <= model.violation_ < 2
    costs, fairness = ([record[name] for record in model.history_] for name in ("clustering", "fairness"))
    assert costs == [pytest.approx(plain.inertia_), model.lp_cost_, model.cost_]
    assert fairness[0] > 10
    assert fairness[1:] == [0, model.violation_]
    assert not hasattr(model, "predict")


def test_price_of_fairness_if_k_means_costs_nothing():
    equal = BeraFairKMeans(2, random_state=0).fit(np.ones((8, 1)), sensitive_features=np.arange(8) % 2)
    assert equal.price_of_fairness_ == 1
    # Each group has its own place.
    X = np.repeat([[0.0], [1.0]], 4, axis=0)
    apart = BeraFairKMeans(2, random_state=0).fit(X, sensitive_features=X[:, 0])
    assert apart.cost_ > 0
    assert apart.price_of_fairness_ == np.inf


def test_groups_that_overlap(grouped_blobs):
    X, codes = grouped_blobs(n_samples=400, n_groups=3)
    members = {"zero": codes == 0, "some": np.arange(400) % 5 < 2, "others": codes > 0}
    inside = np.column_stack(list(members.values()))
    shares = inside.mean(axis=0)
    model = BeraFairKMeans(3, tolerance=0.2, n_init=1, random_state=0)
    model.fit(X, sensitive_features=members)
    assert model.groups_.tolist() == list(members)
    table = inside.T @ np.eye(3)[model.labels_]
    off = bound_violation(table, np.bincount(model.labels_), 0.8 * shares, shares / 0.8)
    assert off.max() <= model.violation_
    # The published bound is 4 D + 3, where D = 2 is the largest number of groups that a row is in.
    assert model.violation_ <= 4 * 2 + 3
    distances = cdist(X, model.cluster_centers_, "sqeuclidean")
    best = cheapest_shares(distances, share_rows(inside, 0.8 * shares, shares / 0.8), 0)
    assert model.lp_cost_ == pytest.approx(best, rel=1e-6)
