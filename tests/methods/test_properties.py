"""Promises that every method keeps on random data: determinism, predictions, and bounds computed from the labels."""

import numba
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from test_equivariance import QUICK

import fairclust.methods as methods
from fairclust.base import NotSupported
from toys import make_grouped_blobs
from twins import counts_of

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:.*groups in .* rows are too many"),
]
PREDICTING = [name for name in methods.__all__ if hasattr(getattr(methods, name), "predict")]
MEDIANS = {"PriceFairKMedians", "VariationalFairKMedians"}
many = settings(max_examples=15, deadline=None, derandomize=True, database=None)
KINDS = ["blobs", "duplicates", "heavy tails"]
any_data = {
    "seed": st.integers(0, 10_000),
    "n_rows": st.integers(30, 700),
    "n_groups": st.integers(1, 3),
    "n_clusters": st.integers(1, 5),
    "kind": st.sampled_from(KINDS),
}
first_data = {"seed": 1, "n_rows": 600, "n_groups": 2, "n_clusters": 3, "kind": "duplicates"}


def data_of(seed, n_rows, n_groups, kind):
    X, codes = make_grouped_blobs(n_rows, n_features=2, n_groups=n_groups, seed=seed)
    if kind == "duplicates":
        X = np.round(2 * X)
    elif kind == "heavy tails":
        X = np.sinh(3 * X)
    return X, codes


def fitted(name, X, codes, n_clusters, **params):
    cls = getattr(methods, name)
    quick = {"random_state": 0, **QUICK.get(name, {}), **params}
    known = cls().get_params()
    try:
        return cls(n_clusters, **{k: v for k, v in quick.items() if k in known}).fit(
            X, sensitive_features=codes
        )
    except NotSupported:
        # The method does not support this number of groups, so Hypothesis tries other data.
        reject()


def on_random_data(*names):
    """Turn a check into a test with one data set and a slow test with many."""

    def decorate(check):
        each = pytest.mark.parametrize("name", names)

        def fast(name):
            check(name, **first_data)

        return each(fast), each(pytest.mark.slow(many(given(**any_data)(check))))

    return decorate


def check_threads(name, seed, n_rows, n_groups, n_clusters, kind):
    X, codes = data_of(seed, n_rows, n_groups, kind)
    before, found = numba.get_num_threads(), []
    try:
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            found.append(fitted(name, X, codes, n_clusters).labels_)
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])
    assert found[0].min() >= 0
    assert found[0].max() < n_clusters


def check_predict(name, seed, n_rows, n_groups, n_clusters, kind):
    X, codes = data_of(seed, n_rows, n_groups, kind)
    model = fitted(name, X, codes, n_clusters)
    assert (model.predict(X, codes) != model.labels_).sum() == getattr(model, "n_rounded_", 0)
    if name.startswith("Variational"):
        assert (np.diff([step["objective"] for step in model.history_]) <= 0).all()


def cost_of(name, X, model):
    distances = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    return float(distances.sum() if name in MEDIANS else (distances**2).sum())


def check_bounds(name, seed, n_rows, n_groups, n_clusters, kind):
    X, codes = data_of(seed, n_rows, n_groups, kind)
    tolerance = [0.0, 0.1, 0.3][seed % 3]
    model = fitted(name, X, codes, n_clusters, tolerance=tolerance)
    table = counts_of(model.labels_, codes, n_clusters)
    sizes, shares = table.sum(axis=0), table.sum(axis=1)[:, None] / len(X)
    least, most = (1 - tolerance) * shares * sizes, shares / (1 - tolerance) * sizes
    excess = float(np.maximum(table - most, least - table).max(initial=0.0))
    if hasattr(model, "violation_"):
        assert excess <= model.violation_ + 1e-6
    # Whole points can violate the bounds by up to one point, or two points after the rounding of a linear program.
    assert excess < (2 if name in ("BeraFairKMeans", "FairKCenter") else 1) + 1e-6
    if name == "FairKCenter":
        distances = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
        assert distances.max() == pytest.approx(model.radius_, rel=1e-6, abs=1e-9)
    elif hasattr(model, "cost_"):
        assert cost_of(name, X, model) == pytest.approx(model.cost_, rel=1e-4, abs=1e-9)


test_threads, test_threads_on_many_data = on_random_data(*methods.__all__)(check_threads)
# Predictions and bounds on one data set are in the contract and in the tests of the methods.
_, test_predict_on_many_data = on_random_data(*PREDICTING)(check_predict)
_, test_bounds_on_many_data = on_random_data(
    "BeraFairKMeans", "FairKCenter", "PriceFairKMeans", "PriceFairKMedians"
)(check_bounds)
