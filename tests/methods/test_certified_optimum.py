"""No method is cheaper than the certified optimum of its own balance."""

from functools import cache

import numpy as np
import pytest

import fairclust.methods as methods
from fairclust import optimal_clustering
from fairclust.metrics import balance, sse

N_CLUSTERS = 3


def points():
    rng = np.random.default_rng(1)
    codes = np.arange(12) % 2
    X = rng.normal(size=(12, 2)) + 3 * np.repeat([[0, 0], [1, 0], [0, 1]], 4, axis=0)
    X[:, 0] += codes
    return X, codes


@cache
def optimum(min_balance):
    X, codes = points()
    found = optimal_clustering(X, N_CLUSTERS, codes, min_balance=min_balance)
    assert found.is_optimal
    return found.lower_bound


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", methods.__all__)
def test_optimum_bounds_the_cost(name):
    X, codes = points()
    cls = getattr(methods, name)
    params = {"n_clusters": N_CLUSTERS, "random_state": 0}
    model = cls(**{k: v for k, v in params.items() if k in cls().get_params()})
    labels = np.unique(model.fit_predict(X, sensitive_features=codes), return_inverse=True)[1]
    bound = optimum(round(balance(labels, sensitive_features=codes) - 1e-9, 8))
    assert sse(X, labels) >= bound * (1 - 1e-6)


def test_group_prices_reach_the_optimum():
    X, codes = points()
    model = methods.PriceFairKMeans(N_CLUSTERS, min_balance=0.5, n_init=20, random_state=0)
    labels = model.fit_predict(X, sensitive_features=codes)
    assert balance(labels, sensitive_features=codes) >= 0.5
    best = optimal_clustering(X, N_CLUSTERS, codes, min_balance=0.5).cost
    assert best * (1 - 1e-9) <= sse(X, labels) <= 1.05 * best
