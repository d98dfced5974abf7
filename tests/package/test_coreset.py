"""Fair coresets: weights, and the cost of every group for any centres."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from fairclust import FairCoreset, SociallyFairKMeans
from fairclust.coreset import sensitivity_sample


def drawn(seed=0, n=6000):
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.9, 0.08, 0.02])
    return rng.normal(size=(n, 3)) + 2 * rng.integers(3, size=(n, 1)) + codes[:, None], codes


def group_costs(X, codes, centers, weights):
    paid = weights * cdist(X, centers, "sqeuclidean").min(axis=1)
    return np.bincount(codes, weights=paid)


def test_weights_sum_to_the_groups():
    X, codes = drawn()
    few, of_few, weights = FairCoreset(300, random_state=0).fit_resample(X, sensitive_features=codes)
    assert len(few) == len(of_few) == len(weights) <= 300
    assert_allclose(np.bincount(of_few, weights=weights), np.bincount(codes))


@pytest.mark.parametrize("seed", range(3))
def test_every_groups_cost_for_any_centres(seed):
    X, codes = drawn(seed)
    few, of_few, weights = FairCoreset(1500, n_clusters=4, random_state=seed).fit_resample(
        X, sensitive_features=codes
    )
    assert len(few) <= 1500
    rng = np.random.default_rng(seed)
    for _ in range(20):
        centers = X[rng.choice(len(X), 4)] + rng.normal(size=(4, 3))
        whole = group_costs(X, codes, centers, np.ones(len(X)))
        assert_allclose(group_costs(few, of_few, centers, weights), whole, rtol=0.04)


def test_a_few_rows_far_away_are_not_missed():
    """A uniform sample misses these rows in one of three draws, and then their cost is not in its cost."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(10_000, 1)), rng.normal(size=(10, 1)) + 1000])
    for seed in range(10):
        rows, weights = sensitivity_sample(X, 100, 2, np.random.RandomState(seed))
        assert weights[rows >= 10_000].sum() == pytest.approx(10, rel=0.6)


def test_a_coreset_is_as_good_as_all_rows():
    X, codes = drawn()
    few, of_few, weights = FairCoreset(1200, n_clusters=4, random_state=0).fit_resample(
        X, sensitive_features=codes
    )
    small = SociallyFairKMeans(4, random_state=0).fit(few, sensitive_features=of_few, sample_weight=weights)
    whole = SociallyFairKMeans(4, random_state=0).fit(X, sensitive_features=codes)
    sizes = np.bincount(codes)
    worst = (group_costs(X, codes, small.cluster_centers_, np.ones(len(X))) / sizes).max()
    assert worst <= 1.08 * whole.group_costs_.max()


def test_weights_count_as_copies():
    X, codes = drawn(n=60)
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
    assert_array_equal(np.repeat(weighted.labels_, times), copied.labels_)


def test_groups_of_any_type_and_bad_input():
    X, codes = drawn(n=100)
    names = pd.Series(["a", "b", "c"]).take(codes)
    _, of_few, _ = FairCoreset(30, random_state=0).fit_resample(X, sensitive_features=names)
    assert set(of_few) == set(names)
    with pytest.raises(ValueError, match="n_rows=2 is less than one for each of 3 groups"):
        FairCoreset(2).fit(X, sensitive_features=codes)
    with pytest.raises(ValueError, match="sensitive_features is missing"):
        FairCoreset().fit(X)
