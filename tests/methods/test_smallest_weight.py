"""The search for the smallest weight that reaches a level, and the default weights of penalty methods."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from fairclust import smallest_weight
from fairclust.methods import (
    BalancedFairKMeans,
    FairMixture,
    KMeans,
    VariationalFairKMeans,
    VariationalFairKMedians,
    VariationalFairNCut,
)
from fairclust.metrics import METRICS, fairness_ratio

WITH_UNIT = [VariationalFairKMeans, VariationalFairKMedians, BalancedFairKMeans]
QUICK = {FairMixture: {"max_iter": 15}, VariationalFairNCut: {"n_neighbors": 10}}


@pytest.mark.parametrize(
    "metric, level", [("fairness_error", 0.05), ("balance", 0.5), ("delta", 0.04), ("fairness_ratio", 0.8)]
)
@pytest.mark.parametrize("method", [*WITH_UNIT, VariationalFairNCut, FairMixture])
def test_the_smallest_weight_that_reaches_the_level(grouped_blobs, method, metric, level):
    X, codes = grouped_blobs(n_samples=800)
    name = "rho" if method is BalancedFairKMeans else "lam"
    model = method(4, random_state=0, **QUICK.get(method, {}))

    def fair_enough(model):
        value = METRICS[metric].function(model.labels_, sensitive_features=codes)
        return value <= level if METRICS[metric].direction == "lower" else value >= level

    found = smallest_weight(model, X, codes, level=level, metric=metric, weight=name)
    chosen = getattr(found, name)
    assert fair_enough(found)
    again = found.__class__(**found.get_params()).fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(again.labels_, found.labels_)
    # The next smaller weight that was tried is not fair enough.
    smaller = [
        found.__class__(**found.get_params() | {name: chosen / 4 ** (1 / n)}) for n in (16, 8, 4, 2, 1)
    ]
    assert chosen == 0 or not all(fair_enough(one.fit(X, sensitive_features=codes)) for one in smaller)


def test_every_column_reaches_the_level(grouped_blobs):
    X, codes = grouped_blobs(n_samples=800)
    columns = {"half": codes, "side": (X[:, 0] > np.median(X[:, 0])).astype(int)}
    model = smallest_weight(VariationalFairKMeans(3, random_state=0), X, columns, level=0.7)
    ratios = [fairness_ratio(model.labels_, sensitive_features=column) for column in columns.values()]
    assert min(ratios) >= 0.7
    assert model.lam > 0


@pytest.mark.parametrize("method", WITH_UNIT)
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer, load_digits])
def test_defaults_buy_fairness_on_data_of_any_unit(method, load):
    X, truth = load(return_X_y=True)
    X, truth = X[:600], truth[:600]
    # The groups depend on the classes, so that plain clusters are unfair.
    codes = (np.random.default_rng(0).random(len(X)) < np.where(truth % 2 == 0, 0.75, 0.35)).astype(int)
    plain = KMeans(3, random_state=0).fit(scale(X), sensitive_features=codes)
    unfair = fairness_ratio(plain.labels_, sensitive_features=codes)
    fits = [method(3, random_state=0).fit(data, sensitive_features=codes) for data in (scale(X), 1000 * X)]
    ratios = [fairness_ratio(model.labels_, sensitive_features=codes) for model in fits]
    assert unfair < 0.75
    assert min(ratios) >= 0.8


def test_groups_that_do_not_matter_cost_nothing(grouped_blobs):
    X, _ = grouped_blobs(n_samples=2000)
    # The seed differs from that of the blobs, because with the same seed the groups would depend on the points.
    codes = np.random.default_rng(1).integers(2, size=2000)
    assert smallest_weight(VariationalFairKMeans(3, random_state=0), X, codes).lam == 0


def test_a_level_out_of_reach_warns_and_keeps_the_fairest():
    # Two points of the small group cannot be in three clusters.
    X = np.random.default_rng(0).normal(size=(60, 2))
    codes = (np.arange(60) < 2).astype(int)
    with pytest.warns(
        ConvergenceWarning, match=r"no lam up to .* reaches a fairness_ratio of 0.8 \(the fairest"
    ):
        model = smallest_weight(VariationalFairKMeans(3, random_state=0), X, codes)
    assert model.labels_.shape == (60,)


@pytest.mark.parametrize("metric", ["colour", "n_clusters", "sse"])
def test_a_metric_that_is_no_bound(metric):
    with pytest.raises(ValueError, match=r"use one of .*balance"):
        smallest_weight(VariationalFairKMeans(2), np.eye(4), [0, 1, 0, 1], metric=metric)


@pytest.mark.parametrize("method", [VariationalFairKMeans, BalancedFairKMeans])
def test_relative_weights_are_multiples_of_the_cost_of_one_cluster(grouped_blobs, method):
    X, codes = grouped_blobs(n_samples=800)
    X = 30 * X + 4
    name = "rho" if method is BalancedFairKMeans else "lam"
    whole = ((X - X.mean(axis=0)) ** 2).sum()
    params = {"n_clusters": 4, "random_state": 0}
    relative = method(**params, relative_weights=True, **{name: 0.3}).fit(X, sensitive_features=codes)
    absolute = method(**params, **{name: 0.3 * whole}).fit(X, sensitive_features=codes)
    assert getattr(relative, f"{name}_") == pytest.approx(0.3 * whole)
    np.testing.assert_array_equal(relative.labels_, absolute.labels_)
