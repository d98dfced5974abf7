"""Individually fair clustering: its swaps against trying all swaps, and its promises."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fairclust.methods import IndividuallyFairClustering
from fairclust.methods.centers.local_search import _allowed, critical_balls
from fairclust.metrics import individual_fairness, neighbourhood_radii


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n // 2, 2)), 0.2 * rng.normal(size=(n - n // 2, 2)) + 6])


def test_swaps_that_leave_a_centre_in_every_ball():
    must = np.array([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1]], dtype=bool)
    rows, batch = np.array([0, 3, 2]), np.array([1, 2, 4])
    expected = [
        [
            all(must[b, [p if other == k else row for other, row in enumerate(rows)]].any() for b in (0, 1))
            for k in range(3)
        ]
        for p in batch
    ]
    assert _allowed(must, rows, batch).tolist() == expected
    assert expected[0] == [True, False, True]


@pytest.mark.parametrize("seed", range(4))
def test_balls_do_not_meet_and_cover_every_point(seed):
    X = drawn(seed)
    radii = neighbourhood_radii(X, 4)
    balls = critical_balls(X, radii, 1.0)
    assert 1 <= len(balls) <= 4
    D = cdist(X, X)
    for p, q in combinations(balls, 2):
        assert D[p, q] > radii[p] + radii[q]
    for p in range(len(X)):
        assert any(D[p, b] <= 2 * radii[p] * (1 + 1e-9) and radii[b] <= radii[p] for b in balls)


@pytest.mark.parametrize("objective", ["k-means", "k-medians"])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_no_point_is_farther_than_promised(objective, alpha):
    for seed in range(4):
        X = drawn(seed, 120)
        model = IndividuallyFairClustering(5, objective=objective, alpha=alpha, random_state=seed)
        model.fit(X, sensitive_features=np.zeros(len(X)))
        assert model.ratio_ <= 3 * alpha * (1 + 1e-9)
        measured = individual_fairness(X, model.labels_, n_clusters=5, centers=model.cluster_centers_)
        assert measured == pytest.approx(model.ratio_)
        away = cdist(X, model.cluster_centers_).min(axis=1)
        assert model.cost_ == pytest.approx((away**2 if objective == "k-means" else away).sum())
        assert model.score(X, sensitive_features=np.zeros(len(X))) == pytest.approx(-model.cost_)
        objectives = [step["objective"] for step in model.history_]
        assert objectives == sorted(objectives, reverse=True)


def test_no_swap_is_left_that_is_cheaper_and_fair():
    X = drawn(1)
    model = IndividuallyFairClustering(3, objective="k-medians", tol=0, random_state=0)
    model.fit(X, sensitive_features=np.zeros(len(X)))
    D = cdist(X, X)
    balls = critical_balls(X, model.radii_, 1.0)
    must = D[balls] <= model.radii_[balls][:, None]
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
