"""Individually fair clustering: its swaps against trying all swaps, and its promises."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fairclust.methods import IndividuallyFairClustering
from fairclust.methods.centers.individually_fair import critical_balls
from fairclust.metrics import individual_fairness, neighbourhood_radii


@pytest.mark.parametrize("objective", ["k-means", "k-medians"])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_no_point_is_farther_than_promised(objective, alpha):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.normal(size=(60, 2)), 0.2 * rng.normal(size=(60, 2)) + 6])
        model = IndividuallyFairClustering(5, objective=objective, alpha=alpha, random_state=seed)
        model.fit(X, sensitive_features=np.zeros(len(X)))
        assert model.ratio_ <= 3 * alpha * (1 + 1e-9)
        assert 1 <= model.n_balls_ <= 5
        measured = individual_fairness(X, model.labels_, n_clusters=5, centers=model.cluster_centers_)
        assert measured == pytest.approx(model.ratio_)
        away = cdist(X, model.cluster_centers_).min(axis=1)
        assert model.cost_ == pytest.approx((away**2 if objective == "k-means" else away).sum())
        assert model.score(X, sensitive_features=np.zeros(len(X))) == pytest.approx(-model.cost_)
        objectives = [step["objective"] for step in model.history_]
        assert objectives == sorted(objectives, reverse=True)


def test_no_swap_is_left_that_is_cheaper_and_fair():
    # Without fairness, two of three centres would be among the few points that are far apart.
    rng = np.random.default_rng(0)
    dense = [rng.normal([0, y], 0.1, size=(40, 2)) for y in (0, 3)]
    X = np.concatenate([*dense, *(rng.normal([x, 0], 3, size=(10, 2)) for x in (60, 100))])
    model = IndividuallyFairClustering(3, objective="k-medians", tol=0, random_state=0)
    model.fit(X, sensitive_features=np.zeros(len(X)))
    D = cdist(X, X)
    balls = critical_balls(X, model.radii_, 1.0)
    must = D[balls] <= model.radii_[balls][:, None]
    assert must[:, model.center_indices_].any(axis=1).all()
    for p in range(len(X)):
        for k in range(3):
            rows = np.where(np.arange(3) == k, p, model.center_indices_)
            if must[:, rows].any(axis=1).all():
                assert D[:, rows].min(axis=1).sum() >= model.cost_ * (1 - 1e-9)


def test_radii_of_a_sample(grouped_blobs):
    X, codes = grouped_blobs()
    model = IndividuallyFairClustering(4, max_rows=200, n_candidates=50, random_state=0)
    model.fit(X, sensitive_features=codes)
    exact = neighbourhood_radii(X, 4)
    assert np.median(model.radii_ / exact) == pytest.approx(1, abs=0.1)
    assert model.ratio_ <= 3 * (1 + 1e-9)
