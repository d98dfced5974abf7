"""Generated data sets: determinism, sizes, and the properties for which they were made."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans

from fairclust.datasets import DatasetError
from fairclust.datasets.blobs import make_group_blobs
from fairclust.datasets.census_like import BLOCK_ROWS, make_census_like
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.spec import DatasetSpec
from fairclust.datasets.synthetic import make_synthetic
from fairclust.metrics import sse


def prepared(catalogue, name):
    return prepare_dataset(name, catalogue.datasets[name], {}, {})


@pytest.mark.parametrize(
    ("name", "sizes", "paper", "unfair_is_cheaper"),
    [("synthetic", [200, 200], 207.80, True), ("synthetic_unequal", [300, 100], 159.75, False)],
)
def test_synthetic_meets_the_paper(catalogue, name, sizes, paper, unfair_is_cheaper):
    """Fair k-means costs 207.80 and 159.75 in table 3 of Ziko et al. (2021)."""
    ds = prepared(catalogue, name)
    raw = make_synthetic(**catalogue.datasets[name].params)
    left_right = (raw.X[:, 0] > 1.55).astype(int)
    assert_array_equal(np.bincount(ds.groups), sizes)
    for side in (0, 1):
        assert_array_equal(np.bincount(ds.groups[left_right == side]), [s // 2 for s in sizes])
    fair = sse(ds.X, left_right)
    assert round(fair, 2) == paper
    assert (sse(ds.X, ds.groups) < fair) == unfair_is_cheaper
    labels = KMeans(2, n_init=10, random_state=0).fit_predict(ds.X)
    optimum = ds.groups if unfair_is_cheaper else left_right
    assert np.mean(labels == optimum) in (0.0, 1.0)


def test_census_like_short_is_the_beginning_of_long():
    long = make_census_like(n_rows=2 * BLOCK_ROWS + 5, n_features=3)
    short = make_census_like(n_rows=BLOCK_ROWS + 7, n_features=3)
    assert_array_equal(short.X, long.X[: BLOCK_ROWS + 7])
    assert_array_equal(short.groups, long.groups[: BLOCK_ROWS + 7])


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_census_like_clusters_are_unfair(share):
    made = make_census_like(n_rows=20_000, n_components=5, group_share=share, seed=3)
    X = (made.X - made.X.mean(axis=0)) / made.X.std(axis=0)
    labels = KMeans(5, n_init=3, random_state=0).fit_predict(X)
    shares = [np.mean(made.groups[labels == k] == 0) for k in range(5)]
    assert abs(np.mean(made.groups == 0) - share) < 0.02
    assert max(shares) - min(shares) > 0.5 * min(share, 1 - share)


def test_group_blobs_are_found_and_unfair():
    made = make_group_blobs()
    labels = KMeans(3, n_init=5, random_state=0).fit_predict(made.X)
    for k in range(3):
        share = np.bincount(made.groups[labels == k], minlength=3) / np.sum(labels == k)
        assert 0.6 < share.max() < 0.8


def generated(function, **params):
    spec = DatasetSpec(title="G", generator=function, params=params, n_clusters=2)
    return prepare_dataset("made", spec, {}, {})


@pytest.mark.parametrize(
    ("function", "params", "message"),
    [
        ("no.such.thing", {}, "data set 'made': the generator 'no.such.thing' cannot be imported; found No module"),
        ("fairclust.datasets.blobs.nothing", {}, "cannot be imported; found .*nothing"),
        ("fairclust.datasets.blobs.make_group_blobs", {"n_row": 5}, r"params \{'n_row': 5\}.*TypeError.*n_row"),
        ("fairclust.datasets.blobs.make_group_blobs", {"n_rows": 0}, "must be positive"),
        ("fairclust.datasets.census_like.make_census_like", {"n_rows": 0}, "must be positive"),
        ("fairclust.datasets.census_like.make_census_like", {"n_components": 0}, "must be positive"),
        ("fairclust.datasets.census_like.make_census_like", {"group_share": 1.0}, "group_share strictly between"),
        ("fairclust.datasets.msbm.make_msbm", {"n_rows": 100}, "give the probabilities"),
        ("fairclust.datasets.msbm.make_msbm", {"n_groups": 1}, "n_groups at least 2"),
        ("fairclust.datasets.msbm.make_msbm", {"n_clusters": 0}, "n_clusters must be positive"),
    ],
)  # fmt: skip
def test_generator_that_cannot_be_used(function, params, message):
    with pytest.raises(DatasetError, match=message):
        generated(function, **params)


GOOD = (np.zeros((3, 2)), np.array([0, 1, 0]), ("a", "b"), ("g", "h"))


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, np.zeros(3), r"found X of shape \(3,\) with 2 feature names"),
        (0, np.full((3, 2), np.nan), "found NaN or infinity in X"),
        (1, np.array([0, 1]), r"found groups of shape \(2,\)"),
        (1, np.array([0.0, 1.0, 0.0]), "type float64"),
        (1, np.array([0, 1, 2]), "found group codes 0 to 2 for 2 group names"),
        (1, np.array([0, 0, 0]), "group 'h' is empty"),
        (2, ("a",), "with 1 feature names"),
        (3, ("g", "h", "i"), "group 'i' is empty"),
        (4, sp.csr_array((2, 2)), r"a graph of shape \(2, 2\)"),
        (4, [[0.0, 1.0], [1.0, 0.0]], r"a graph of shape \(2, 2\)"),
    ],
)
def test_generator_that_returns_nonsense(monkeypatch, position, value, message):
    result = list(GOOD)
    result[position : position + 1] = [value]
    monkeypatch.setattr("fairclust.datasets.blobs.make_group_blobs", lambda: tuple(result))
    with pytest.raises(DatasetError, match=message):
        generated("fairclust.datasets.blobs.make_group_blobs")
