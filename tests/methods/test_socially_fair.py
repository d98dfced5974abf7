"""Socially fair k-means: its centres against a general minimiser, its steps against a plain transcription."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from fairclust.methods import KMeans, SociallyFairKMeans
from fairclust.metrics import group_costs
from twins import means_of


def slow_centers(X, codes, labels, n_clusters):
    """Find the centres by a general minimiser, in which a variable bounds the cost of every group from above."""
    means = means_of(X, labels, n_clusters)

    def costs(centers):
        return group_costs(X, labels, sensitive_features=codes, centers=centers.reshape(means.shape))

    found = minimize(
        lambda v: v[-1],
        np.append(means.ravel(), costs(means).max()),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: v[-1] - costs(v[:-1])},
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert found.success
    return found.x[:-1].reshape(means.shape)


@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_steps_are_those_of_a_plain_transcription(n_groups, seed):
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(n_groups), rng.choice(n_groups, 80 - n_groups)]
    X = rng.normal(size=(80, 2)) * (1 + codes[:, None]) + codes[:, None]
    centers = start = X[[3, 30, 60]]
    model = SociallyFairKMeans(3, init=start, precision="double").fit(X, sensitive_features=codes)
    objectives = []
    for _ in model.history_:
        labels = cdist(X, centers).argmin(axis=1)
        objectives.append(group_costs(X, labels, sensitive_features=codes, centers=centers).max())
        assert len(np.unique(labels)) == 3
        centers = slow_centers(X, codes, labels, 3)
    assert_allclose([step["objective"] for step in model.history_], objectives, rtol=1e-4)


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
    assert 0 <= fair.gap_ < 1e-4


@pytest.mark.parametrize(
    "weights, message", [(np.ones(5), "has shape"), (np.zeros(40), "finite and not negative")]
)
def test_weights_that_cannot_count(weights, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match=message):
        SociallyFairKMeans(2).fit(X, sensitive_features=np.arange(40) % 2, sample_weight=weights)


@pytest.mark.parametrize("seed", range(12))
def test_the_objective_never_rises(seed):
    rng = np.random.default_rng(seed)
    X, codes = rng.normal(size=(80, 3)), rng.integers(3, size=80)
    model = SociallyFairKMeans(4, tol=0.0, max_iter=200, random_state=seed).fit(X, sensitive_features=codes)
    objectives = [record["objective"] for record in model.history_]
    assert np.all(np.diff(objectives) <= 0)
    assert objectives[-1] == pytest.approx(model.group_costs_.max(), rel=1e-12)


def test_weights_count_as_copies():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=60)
    X = rng.normal(size=(60, 3)) + codes[:, None]
    times = np.arange(60) % 3 + 1
    start = X[:3]
    weighted = SociallyFairKMeans(3, init=start, precision="double").fit(
        X, sensitive_features=codes, sample_weight=times
    )
    copied = SociallyFairKMeans(3, init=start, precision="double").fit(
        np.repeat(X, times, axis=0), sensitive_features=np.repeat(codes, times)
    )
    assert_allclose(weighted.group_costs_, copied.group_costs_)
    assert_allclose(weighted.cluster_centers_, copied.cluster_centers_)
    np.testing.assert_array_equal(np.repeat(weighted.labels_, times), copied.labels_)
