"""Socially fair k-means: its centres against a general minimiser, its steps against a plain transcription."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from fairclust.methods import KMeans, SociallyFairKMeans
from fairclust.methods._social import fair_centers, group_moments
from fairclust.metrics import group_costs


def drawn(seed, n=60, n_groups=3, n_clusters=3):
    rng = np.random.default_rng(seed)
    shares = np.array([0.7, 0.2, 0.1])[:n_groups]
    codes = np.concatenate([np.arange(n_groups), rng.choice(n_groups, n - n_groups, p=shares / shares.sum())])
    X = rng.normal(size=(n, 2)) * (1 + codes[:, None]) + codes[:, None]
    return X, codes, rng.integers(n_clusters, size=n)


def slow_costs(X, codes, labels, centers):
    squares = ((X - centers[labels]) ** 2).sum(axis=1)
    return np.array([squares[codes == j].mean() for j in range(codes.max() + 1)])


def slow_centers(X, codes, labels, n_clusters):
    """Find the centres by a general minimiser, in which a variable bounds the cost of every group from above."""
    n_groups, shape = codes.max() + 1, (n_clusters, X.shape[1])
    means = np.stack([X[labels == k].mean(axis=0) for k in range(n_clusters)])
    begin = np.append(means.ravel(), slow_costs(X, codes, labels, means).max())
    found = minimize(
        lambda v: v[-1],
        begin,
        method="SLSQP",
        constraints=[
            {
                "type": "ineq",
                "fun": lambda v, j=j: v[-1] - slow_costs(X, codes, labels, v[:-1].reshape(shape))[j],
            }
            for j in range(n_groups)
        ],
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    return found.x[:-1].reshape(shape)


@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_centres_are_those_of_a_general_minimiser(seed, n_groups):
    X, codes, labels = drawn(seed, n_groups=n_groups)
    moments = group_moments(X, codes, labels, n_groups, 3)
    found = fair_centers(moments, np.zeros((3, 2)))
    assert_allclose(found.costs, slow_costs(X, codes, labels, found.centers))
    slow = slow_costs(X, codes, labels, slow_centers(X, codes, labels, 3)).max()
    assert found.costs.max() == pytest.approx(slow, rel=1e-5)
    assert found.lower_bound <= found.costs.max() * (1 + 1e-12)
    assert found.lower_bound == pytest.approx(found.costs.max(), rel=1e-5)


def test_an_empty_cluster_keeps_its_centre():
    X, codes, labels = drawn(0, n_groups=2)
    found = fair_centers(group_moments(X, codes, labels, 2, 4), np.full((4, 2), 7.0))
    assert_allclose(found.centers[3], 7.0)


@pytest.mark.parametrize("n_groups", [2, 3])
def test_steps_are_those_of_a_plain_transcription(n_groups):
    X, codes, _ = drawn(1, n=80, n_groups=n_groups)
    centers = start = X[[3, 30, 60]]
    model = SociallyFairKMeans(3, init=start, precision="double").fit(X, sensitive_features=codes)
    objectives = []
    for _ in model.history_:
        labels = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        objectives.append(slow_costs(X, codes, labels, centers).max())
        assert len(np.unique(labels)) == 3
        centers = slow_centers(X, codes, labels, 3)
    assert_allclose([step["objective"] for step in model.history_], objectives, rtol=1e-4)
    assert model.n_iter_ > 2


@pytest.mark.parametrize("n_groups", [2, 3])
def test_the_worst_group_pays_less_than_with_k_means(grouped_blobs, n_groups):
    X, codes = grouped_blobs(n_groups=n_groups)
    X[codes == 1] *= 2
    plain = KMeans(4, n_init=10, random_state=0).fit(X, sensitive_features=codes)
    fair = SociallyFairKMeans(4, random_state=0).fit(X, sensitive_features=codes)
    before = group_costs(X, plain.labels_, sensitive_features=codes)
    after = group_costs(X, fair.labels_, sensitive_features=codes, centers=fair.cluster_centers_)
    assert_allclose(after, fair.group_costs_, rtol=1e-5)
    assert after.max() < 0.98 * before.max()
    objectives = [step["objective"] for step in fair.history_]
    assert all(b <= a * (1 + 1e-6) for a, b in pairwise(objectives))
    assert 0 <= fair.gap_ < 1e-4


@pytest.mark.parametrize(
    "weights, message", [(np.ones(5), "has shape"), (np.zeros(40), "positive and finite")]
)
def test_weights_that_cannot_count(weights, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=message):
        SociallyFairKMeans(2, random_state=0).fit(
            X, sensitive_features=np.arange(40) % 2, sample_weight=weights
        )


@pytest.mark.parametrize("seed", range(12))
def test_the_objective_never_rises(seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(80, 3)), rng.integers(3, size=80)
    model = SociallyFairKMeans(4, tol=0.0, max_iter=200, random_state=seed).fit(X, sensitive_features=codes)
    objectives = [record["objective"] for record in model.history_]
    assert np.all(np.diff(objectives) <= 0)
    assert objectives[-1] == pytest.approx(model.group_costs_.max(), rel=1e-12)
