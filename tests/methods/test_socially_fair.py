"""Socially fair k-means: its centres against a general minimiser, its steps against a plain transcription."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from fairclust.methods import SociallyFairKMeans
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


@pytest.mark.parametrize("max_iter", [1, 2, 3])
def test_the_gap_of_a_fit_that_is_cut_off_is_that_of_its_centres(grouped_blobs, max_iter):
    X, codes = grouped_blobs()
    X[codes == 1] *= 2
    model = SociallyFairKMeans(4, n_init=1, max_iter=max_iter, precision="double", random_state=0)
    model.fit(X, sensitive_features=codes)
    best = slow_centers(X, codes, model.labels_, 4)
    least = group_costs(X, model.labels_, sensitive_features=codes, centers=best).max()
    assert model.gap_ == pytest.approx(1 - least / model.group_costs_.max(), abs=1e-5)
    assert model.gap_ > 1e-3
