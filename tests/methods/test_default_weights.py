"""The default weights of penalty methods."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import scale

from fairclust.methods import BalancedFairKMeans, KMeans, VariationalFairKMeans, VariationalFairKMedians
from fairclust.metrics import fairness_ratio


@pytest.mark.parametrize("method", [VariationalFairKMeans, VariationalFairKMedians, BalancedFairKMeans])
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


@pytest.mark.parametrize(
    "method, weight, parts", [(VariationalFairKMeans, "lam", 1), (BalancedFairKMeans, "rho", 10)]
)
def test_the_default_is_a_multiple_of_the_cost_of_one_cluster(grouped_blobs, method, weight, parts):
    X, codes = grouped_blobs(n_samples=800)
    X = 30 * X + 4
    model = method(4, random_state=0).fit(X, sensitive_features=codes)
    assert getattr(model, f"{weight}_") == pytest.approx(parts * ((X - X.mean(axis=0)) ** 2).sum())
    given = method(4, random_state=0, **{weight: getattr(model, f"{weight}_")})
    np.testing.assert_array_equal(given.fit(X, sensitive_features=codes).labels_, model.labels_)
