"""Sparse rows give the same labels as dense copies of them, and the fit makes no dense copy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from fairclust import methods
from fairclust.methods import KMeans, PriceFairKMeans, VariationalFairKMeans


@pytest.fixture(scope="module")
def words():
    """Word counts of texts of three kinds, scaled to rows of unit length, and a group for each text."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=600)
    rates = rng.gamma(0.2, size=(3, 120))
    counts = rng.poisson(rates[kind])
    counts[counts.sum(axis=1) == 0, 0] = 1
    codes = (rng.random(600) < np.array([0.3, 0.5, 0.7])[kind]).astype(int)
    return normalize(counts.astype(float)), codes


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize(
    "cls, params",
    [
        (KMeans, {}),
        (PriceFairKMeans, {"tolerance": 0.1, "n_init": 2, "precision": "double"}),
        (VariationalFairKMeans, {"lam": 100.0, "precision": "double"}),
        (VariationalFairKMeans, {"precision": "double"}),
        (VariationalFairKMeans, {"lam": 40.0, "precision": "double", "match_reference": True}),
    ],
)
def test_labels_are_those_of_dense_rows(words, cls, params, kind):
    X, codes = words
    model = cls(3, random_state=0, **params)
    dense = model.fit(X, sensitive_features=codes)
    labels, centers = dense.labels_, dense.cluster_centers_
    sparse = kind(X)
    found = model.fit(sparse, sensitive_features=codes)
    np.testing.assert_array_equal(found.labels_, labels)
    np.testing.assert_allclose(found.cluster_centers_, centers, atol=1e-9)
    differing = (found.predict(sparse, codes) != found.labels_).sum()
    assert differing == getattr(found, "n_rounded_", 0)


def test_scaled_sparse_rows_give_the_same_labels(words):
    X, codes = words
    X = sp.csr_array(X * np.random.default_rng(1).uniform(1, 2, size=(len(X), 1)))
    model = VariationalFairKMeans(3, random_state=0)
    labels = [model.fit(factor * X, sensitive_features=codes).labels_ for factor in (1, 1e-3)]
    np.testing.assert_array_equal(*labels)


def test_predict_says_that_a_fit_on_dense_rows_takes_dense_rows(words):
    X, codes = words
    model = KMeans(3, random_state=0).fit(X + 1, sensitive_features=codes)
    with pytest.raises(ValueError, match=r"pass X\.toarray"):
        model.predict(sp.csr_array(X))


@pytest.mark.parametrize("name", methods.__all__)
def test_every_method_takes_sparse_rows_or_says_that_it_does_not(words, name):
    X, codes = words
    X, codes = X[:150], codes[:150]
    model = getattr(methods, name)(3, random_state=0)
    if model.__sklearn_tags__().input_tags.sparse:
        labels = model.fit(sp.csr_array(X), sensitive_features=codes).labels_
        # Of two starts that end in one clustering, rounding decides which is best, and so the numbers of the clusters.
        assert adjusted_rand_score(labels, model.fit(X, sensitive_features=codes).labels_) > 0.94
    else:
        with pytest.raises(TypeError, match="dense data is required"):
            model.fit(sp.csr_array(X), sensitive_features=codes)


def test_more_columns_than_would_fit_if_dense():
    rng = np.random.default_rng(0)
    kind = rng.integers(2, size=4000)
    # As dense rows these would take 64 GB. Each kind of row has a column in common, and each row has one of its own.
    columns = np.column_stack([kind, 2 + np.arange(4000) * 499])
    X = sp.csr_array(
        (np.tile([3.0, 0.1], 4000), columns.ravel(), 2 * np.arange(4001)), shape=(4000, 2_000_000)
    )
    codes = rng.integers(2, size=4000)
    model = PriceFairKMeans(2, tolerance=0.2, n_init=1, random_state=0).fit(X, sensitive_features=codes)
    assert (model.labels_ == kind).mean() in (0, 1)
