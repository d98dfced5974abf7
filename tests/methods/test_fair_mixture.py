"""Promises of fair mixtures that go beyond the contract of all methods."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from fairclust.methods import FairMixture
from fairclust.methods.mixture import rows
from toys import make_grouped_blobs


def make_mixed(n_samples=800, seed=0):
    """Draw two numeric and two categorical columns, each of which separates two clusters, and random groups."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=n_samples)
    X = np.column_stack(
        [
            rng.normal(size=(n_samples, 2)) + 3 * truth[:, None],
            np.where(rng.random(n_samples) < 0.9, truth, 2),
            np.where(rng.random(n_samples) < 0.8, truth, 1 - truth),
        ]
    )
    return X, truth, rng.integers(2, size=n_samples)


def make_shifted(n_samples=1500, n_groups=2, seed=0):
    """Draw points in a long box with one group mostly at each end. Cutting it across is unfair, and lengthwise fair."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n_samples, 2)) * [2, 1.5]
    shares = 1 + 0.3 * np.outer(X[:, 0], np.linspace(-1, 1, n_groups))
    shares /= shares.sum(axis=1, keepdims=True)
    return X, (rng.random((n_samples, 1)) > np.cumsum(shares, axis=1)).sum(axis=1)


def fit(X, codes, n_clusters=4, **params):
    return FairMixture(n_clusters, random_state=0, **params).fit(X, sensitive_features=codes)


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setattr(rows, "DTYPE", np.float64)


@pytest.mark.parametrize("solver, init, near", [("em", "em", 1e-7), ("gd", "k-means", 1e-4)])
def test_without_a_penalty_the_fit_is_that_of_scikit_learn(exact, solver, init, near):
    X, codes = make_grouped_blobs(n_clusters=3)
    model = fit(X, codes, 3, lam=0, covariance="diag", init=init, solver=solver, max_iter=3000)
    begin = {
        "means_init": model.means_,
        "weights_init": model.weights_,
        "precisions_init": 1 / model.variances_,
    }
    other = GaussianMixture(3, covariance_type="diag", reg_covar=0, tol=1e-10, **begin).fit(X)
    assert -model.nll_ == pytest.approx(other.score(X), abs=near)
    np.testing.assert_allclose(model.means_, other.means_, atol=1e-3)


def log_joint(model, X, categorical):
    """Compute the logarithms of the weighted densities of the components from the attributes of a model."""
    numeric = [i for i in range(X.shape[1]) if i not in categorical]
    z = norm.logpdf(X[:, None, numeric], model.means_, np.sqrt(model.variances_)).sum(axis=2)
    for table, i in zip(model.probabilities_, categorical, strict=True):
        z += np.log(table[:, X[:, i].astype(int)]).T
    return z + np.log(model.weights_)


@pytest.mark.parametrize("covariance", ["isotropic", "diag"])
@pytest.mark.parametrize("kind", ["numeric", "mixed", "categorical"])
def test_densities_by_hand(exact, covariance, kind):
    X, _, codes = make_mixed(200)
    columns = {"numeric": [0, 1], "mixed": [0, 1, 2, 3], "categorical": [2, 3]}[kind]
    X = X[:, columns]
    categorical = [i for i, column in enumerate(columns) if column > 1]
    model = fit(X, codes, 3, lam=1, covariance=covariance, categorical_features=categorical, max_iter=5)
    z = log_joint(model, X, categorical)
    for table in model.probabilities_:
        np.testing.assert_allclose(table.sum(axis=1), 1)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(z, axis=1), atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), softmax(z, axis=1), atol=1e-8)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.labels_, z.argmax(axis=1))
    assert model.nll_ == pytest.approx(-logsumexp(z, axis=1).mean())


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("solver, max_iter, n_groups", [("em", 40, 3), ("gd", 3000, 2)])
def test_a_large_lam_is_fairer(reference, solver, max_iter, n_groups):
    X, codes = make_shifted(n_groups=n_groups)
    params = {"match_reference": reference, "solver": solver, "max_iter": max_iter}
    found = [fit(X, codes, lam=lam, **params).soft_delta_ for lam in (0.0, 10.0)]
    assert found[0] > 0.1
    assert found[1] < 0.4 * found[0]


def test_em_raises_q_and_never_raises_the_objective():
    X, codes = make_grouped_blobs()
    history = fit(X, codes, lam=10, max_iter=40).history_
    rounds = history[1:]
    assert all(r["q_after"] >= r["q_before"] - 1e-6 * (1 + abs(r["q_before"])) for r in rounds)
    assert all(0 <= r["step_length"] <= 1 for r in rounds)
    assert (np.diff([r["objective"] for r in history]) <= 1e-5).all()


def test_likelihoods_in_the_history_are_those_of_the_data_in_their_unit():
    X, groups = make_grouped_blobs()
    model = FairMixture(3, record_labels=True, max_iter=5, random_state=0).fit(
        1e4 * X, sensitive_features=groups
    )
    history = pd.DataFrame(model.history_)
    assert model._log_volume > 1
    np.testing.assert_allclose(history.nll, history.clustering)
    assert history.nll.min() - 1 < model.nll_ < history.nll.max() + 1


def test_the_barrier_keeps_components_alive():
    X, codes = make_shifted()
    model = fit(X, codes, 6, lam=30, init="em", max_iter=60)
    assert model.predict_proba(X).mean(axis=0).min() > 0.03


def test_calibrated_labels_are_fairer_and_probabilities_the_same():
    # One group is at both ends of a line and the other in the middle, so the fairness depends on where the line is cut.
    rng = np.random.default_rng(0)
    X = 2 * rng.random((6000, 1)) ** 1.5 - 1
    codes = (rng.random(6000) < 0.2 + 0.6 * X[:, 0] ** 2).astype(int)
    plain, model = (fit(X, codes, 2, lam=0, calibrate=calibrate) for calibrate in (False, True))
    assert plain.hard_delta_ > 0.02
    assert model.hard_delta_ < 0.2 * plain.hard_delta_
    assert model.n_nonempty_ == 2
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_sub_sample_assigns_every_row():
    X, codes = make_shifted(n_samples=20_000)
    full, model = (fit(X, codes, lam=10, sample_size=size) for size in (None, 0.1))
    assert model.labels_.shape == (20_000,)
    # Proposition 1: the gap grows by a multiple of 1 / sqrt(n').
    assert model.hard_delta_ < full.hard_delta_ + 2 / np.sqrt(2000 * np.bincount(codes).min() / 20_000)
    assert -model.score_samples(X).mean() < full.nll_ + 0.1


def test_mini_batches_of_a_memory_map(tmp_path):
    X, codes = make_shifted(n_samples=5000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    full = fit(X, codes, lam=10, max_iter=60)
    model = fit(mapped, codes, lam=10, max_iter=60, solver="mini-batch")
    assert model.nll_ < full.nll_ + 0.2
    assert model.soft_delta_ < full.soft_delta_ + 0.05
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_plain_em_on_batches_agrees_with_all_rows():
    X, codes = make_grouped_blobs(n_samples=3000)
    full = fit(X, codes, lam=0, max_iter=200)
    model = fit(X, codes, lam=0, max_iter=200, solver="mini-batch", sample_size=1000, init=full.means_)
    assert model.nll_ == pytest.approx(full.nll_, abs=1e-3)


@pytest.mark.parametrize("solver", ["em", "mini-batch"])
def test_small_groups_are_in_every_sample(solver):
    X, codes = make_grouped_blobs(n_samples=5000)[0], np.arange(5000) < 3
    assert np.isfinite(fit(X, codes, 3, solver=solver, sample_size=40, max_iter=3).nll_)
    with pytest.raises(ValueError, match="sample_size leaves 53 rows for n_clusters=101"):
        fit(X, codes, 101, sample_size=40)


def test_pandas_categories_are_remembered():
    X, truth, codes = make_mixed()
    frame = pd.DataFrame(X[:, :2], columns=["age", "hours"])
    frame["work"] = pd.Categorical(np.array(["private", "state", "none"])[X[:, 2].astype(int)])
    frame["region"] = np.array(["north", "south"])[X[:, 3].astype(int)]
    model = fit(frame, codes, 2, lam=1)
    assert adjusted_rand_score(model.labels_, truth) > 0.88
    assert list(model.categories_[2]) == ["none", "private", "state"]
    np.testing.assert_array_equal(model.predict(frame), model.labels_)
    numbered = fit(frame.set_axis(range(4), axis=1), codes, 2, lam=1)
    np.testing.assert_array_equal(numbered.labels_, model.labels_)
    # The same categories have other codes here. The values count, and not the codes.
    again = frame.assign(work=frame.work.cat.reorder_categories(["state", "private", "none"]))
    np.testing.assert_array_equal(model.predict(again), model.labels_)
    np.testing.assert_array_equal(model.predict(frame.assign(work=frame.work.astype(str))), model.labels_)
    # A category that was not seen in fit does not count.
    strange = frame.assign(work="abroad")
    model.probabilities_[0][:] = 1
    z = log_joint(model, X, [2, 3])
    np.testing.assert_allclose(model.score_samples(strange), logsumexp(z, axis=1), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(strange), softmax(z, axis=1), atol=1e-4)
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(model.predict(pl.from_pandas(frame)), model.labels_)
    np.testing.assert_array_equal(fit(pl.from_pandas(frame), codes, 2, lam=1).labels_, model.labels_)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["work", "age", "hours", "region"]])
    with pytest.raises(ValueError, match="'work' has missing values"):
        fit(frame.assign(work=frame.work.where(frame.index > 3)), codes)


def test_categorical_features_by_name_or_index_are_the_same():
    X, _, codes = make_mixed()
    frame = pd.DataFrame(X, columns=list("abcd"))
    one = fit(X, codes, 2, lam=1, max_iter=20, categorical_features=[2, 3])
    two = fit(frame, codes, 2, lam=1, max_iter=20, categorical_features=["c", "d"])
    np.testing.assert_array_equal(one.labels_, two.labels_)
    assert one.cluster_centers_.shape == (2, 4)
    assert set(one.cluster_centers_[:, 3]) <= {0.0, 1.0}


INDICES = "names of columns and indices from 0 to 3, found"


@pytest.mark.parametrize(
    "categorical, column, message",
    [
        *(([wanted], None, f"{INDICES} {wanted!r}") for wanted in (4, "work", False, 2.5)),
        ([2], -1.0, "column 2 .* must hold integer codes from 0 on.* from -1"),
        ([2], 0.5, "column 2 .* must hold integer codes"),
        ([2], 1e6, "column 2 .* below 65536"),
    ],
)
def test_bad_categorical_features(categorical, column, message):
    X, _, codes = make_mixed(50)
    if column is not None:
        X[7, 2] = column
    with pytest.raises(ValueError, match=message):
        fit(X, codes, 2, categorical_features=categorical)


def test_a_category_without_rows_and_one_not_seen():
    X, _, codes = make_mixed()
    X[:, 2] = np.where(X[:, 2] == 2, 5, X[:, 2])
    model = fit(X, codes, 2, lam=1, categorical_features=[2, 3])
    assert model.probabilities_[0].shape == (2, 6)
    assert (model.probabilities_[0][:, 2:5] < 0.01).all()
    new = X[:4].copy()
    new[:, 2] = [7, -1, 0.5, 1e9]
    assert np.isfinite(model.score_samples(new)).all()
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)


def test_a_component_that_dies_is_announced():
    X = np.repeat([[0.0, 0.0], [4.0, 4.0]], 50, axis=0) + np.random.default_rng(0).normal(size=(100, 2)) * 0.1
    far = np.array([[0.0, 0.0], [4.0, 4.0], [500.0, 500.0]])
    with pytest.warns(ConvergenceWarning, match="2 of 3 components have points"):
        model = fit(X, np.arange(100) % 2, 3, lam=0, init=far)
    assert model.n_nonempty_ == 2
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_array_equal(model.means_[2], far[2])
