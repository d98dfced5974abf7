"""Penalty methods that search for a level of fairness, and their defaults."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import scale

from fairclust.methods import (
    BalancedFairKMeans,
    FairMixture,
    KMeans,
    VariationalFairKMeans,
    VariationalFairKMedians,
    VariationalFairNCut,
)
from fairclust.metrics import balance, delta, fairness_error, fairness_ratio

SEARCHING = [VariationalFairKMeans, VariationalFairKMedians, BalancedFairKMeans]
QUICK = {FairMixture: {"max_iter": 15}, VariationalFairNCut: {"n_neighbors": 10}}
ALL = [*SEARCHING, VariationalFairNCut, FairMixture]


LEVELS = {"max_fairness_error": fairness_error, "min_balance": balance, "max_gap": delta}


def fit(method, X, codes, **params):
    model = method(4, random_state=0, **QUICK.get(method, {}), **params)
    return model.fit(X, sensitive_features=codes)


@pytest.mark.parametrize("level", [{"max_fairness_error": 0.05}, {"min_balance": 0.5}, {"max_gap": 0.04}])
@pytest.mark.parametrize("method", ALL)
def test_the_smallest_weight_that_reaches_the_level(grouped_blobs, method, level):
    X, codes = grouped_blobs(n_samples=800)
    model = fit(method, X, codes, **level)
    ((name, bound),) = level.items()
    value = LEVELS[name](model.labels_, sensitive_features=codes)
    path = model.path_
    assert (np.diff(path.weights) > 0).all()
    assert path.weights[0] == 0
    fair = path.values <= bound if name.startswith("max_") else path.values >= bound
    if method in SEARCHING:
        assert fair[path.best]
        # The largest weight that was tried and is not fair enough is 0, or at least half of the weight that was kept.
        below = path.weights[: path.best][~fair[: path.best]]
        assert not len(below) or below[-1] == 0 or path.weights[path.best] <= 2 * below[-1]
    weight = model.rho_ if method is BalancedFairKMeans else model.lam_
    if path.best is None:
        best = path.values.min() if name.startswith("max_") else path.values.max()
    else:
        best = path.values[path.best]
        assert weight == pytest.approx(path.weights[path.best])
    assert value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("method", SEARCHING)
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
    assert min(ratios) >= 0.8 - 1e-9


def test_groups_that_do_not_matter_cost_nothing(grouped_blobs):
    X, _ = grouped_blobs(n_samples=2000)
    # The seed differs from that of the blobs, because with the same seed the groups would depend on the points.
    codes = np.random.default_rng(1).integers(2, size=2000)
    model = VariationalFairKMeans(3, random_state=0).fit(X, sensitive_features=codes)
    assert model.lam_ == 0
    assert len(model.path_.weights) == 1


def test_a_level_out_of_reach_warns_and_keeps_the_fairest():
    # Two points of the small group cannot be in three clusters.
    X = np.random.default_rng(0).normal(size=(60, 2))
    codes = (np.arange(60) < 2).astype(int)
    with pytest.warns(ConvergenceWarning, match=r"no weight up to .* reaches shares of at least 0.8"):
        model = VariationalFairKMeans(3, random_state=0).fit(X, sensitive_features=codes)
    assert model.path_.best is None


@pytest.mark.parametrize(
    "params, message",
    [
        ({"max_gap": 0.1, "min_balance": 0.1}, "give one level .* found min_balance=0.1 and max_gap=0.1"),
        ({"lam": 3.0, "max_gap": 0.1}, "leave lam at 'auto', found lam=3.0"),
        ({"min_balance": 0.99}, "the data's own balance, 0.8"),
        ({"lam": "much"}, "lam"),
        ({"max_gap": -1.0}, "max_gap"),
    ],
)
def test_bad_levels(params, message):
    X = np.random.default_rng(0).normal(size=(90, 2))
    with pytest.raises(ValueError, match=message):
        VariationalFairKMeans(2, **params).fit(X, sensitive_features=np.arange(90) < 40)


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
