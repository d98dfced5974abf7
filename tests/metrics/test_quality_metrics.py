"""Clustering metrics: values computed by hand, edge cases, properties."""

from itertools import permutations
from math import isnan

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist

from fairclust import metrics as fm
from fairclust.metrics import quality

# Cluster 0: 0, 2, 7 on the line; cluster 1: 10, 13.
X = [[0.0], [10.0], [2.0], [13.0], [7.0]]


def test_dunn_index_of_one_cluster_and_of_equal_points_is_undefined():
    assert isnan(fm.dunn_index(X, [3] * 5))
    assert isnan(fm.dunn_index([[1.0], [1.0]], [0, 1]))
    assert fm.dunn_index([[1.0], [1.0], [2.0]], [0, 1, 1]) == 0.0


@settings(max_examples=60)
@given(
    st.integers(1, 400),
    st.integers(1, 8),
    st.integers(1, 6),
    st.sampled_from([0.0, 1.0, 30.0]),
    st.integers(0, 10_000),
)
def test_against_plain_numpy(n, d, n_clusters, apart, seed):
    """Clusters overlap, touch or are far apart."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_clusters, n)
    points = rng.normal(size=(n, d)) + apart * rng.normal(size=(n_clusters, d))[labels]
    means = {k: points[labels == k].mean(axis=0) for k in set(labels.tolist())}
    expected = sum(((points[i] - means[int(labels[i])]) ** 2).sum() for i in range(n))
    assert_allclose(fm.sse(points, labels), expected, rtol=1e-11, atol=1e-12)
    expected = sum(cdist(points[labels == k], points[labels == k]).sum(axis=0).min() for k in means)
    assert_allclose(fm.kmedians_cost(points, labels), expected, rtol=1e-11, atol=1e-12)
    if len(means) > 1:
        same = np.equal.outer(labels, labels)
        # An offset of 1e8 leaves 8 digits, so differences must be squared, and no squares expanded.
        for moved in (points, 1e8 + points):
            apart = cdist(moved, moved)
            with np.errstate(divide="ignore", invalid="ignore"):
                expected = apart[~same].min() / apart[same].max()
            assert_allclose(fm.dunn_index(moved, labels), expected, rtol=1e-12)


def test_sse_over_several_blocks_in_float32_far_from_the_origin():
    """40,000 rows are three blocks. At an offset of 3,000, float32 sums or expanded squares would be far less exact."""
    rng = np.random.default_rng(0)
    points = (3_000 + rng.normal(size=(40_000, 3))).astype(np.float32)
    labels = rng.integers(0, 4, 40_000)
    exact = points.astype(np.float64)
    expected = sum(((exact[labels == k] - exact[labels == k].mean(axis=0)) ** 2).sum() for k in range(4))
    assert_allclose(fm.sse(points, labels), expected, rtol=1e-12)
    assert_allclose(fm.sse(exact.astype(object), labels), expected, rtol=1e-12)


def test_kmedians_cost_is_never_approximate(monkeypatch):
    rng = np.random.default_rng(1)
    points = rng.normal(size=(600, 14))
    labels = np.repeat([0, 1], 300)
    exact = fm.kmedians_cost(points, labels)
    for most, expected in ((2, np.nan), (300, exact)):
        monkeypatch.setattr(quality, "_MOST_TRIED", most)
        np.testing.assert_equal(fm.kmedians_cost(points, labels), expected)


def test_kmedians_cost_of_many_rows_is_an_upper_bound():
    """The medoid of a line of equidistant points is its middle."""
    points = np.arange(200_001.0)[:, None]
    exact = np.abs(points - 100_000).sum()
    assert exact <= fm.kmedians_cost(points, np.zeros(200_001, int)) <= 1.001 * exact


# The graph has edges of weight 2 between 0 and 1 and between 2 and 3, and an edge of weight 1 between 1 and 2.
W = sp.csr_array(np.array([[0, 2, 0, 0], [2, 0, 1, 0], [0, 1, 0, 2], [0, 0, 2, 0]], dtype=float))


def test_ncut_of_any_labels_and_any_form_of_the_graph():
    # Only clusters with points count, so another name of a cluster changes nothing.
    forms = fm.ncut(W.toarray(), [0, 0, 1, 1]), fm.ncut(W.tocoo(), [0, 0, 1, 1]), fm.ncut(W, [5, 5, 2, 2])
    assert set(forms) == {fm.ncut(W, [0, 0, 1, 1])}


def test_ncut_of_disconnected_parts_is_exactly_0_and_of_isolated_nodes_undefined():
    parts = sp.block_diag([0.1 * np.ones((3, 3)), 0.7 * np.ones((2, 2))])
    assert fm.ncut(parts, [0, 0, 0, 1, 1]) == 0.0
    assert isnan(fm.ncut(sp.csr_array((2, 2)), [0, 1]))
    assert isnan(fm.ncut([[0, 1, 0], [1, 0, 0], [0, 0, 0]], [0, 0, 1]))


@settings(max_examples=60)
@given(st.integers(2, 25), st.integers(1, 5), st.integers(0, 10_000))
def test_ncut_against_the_formula(n, n_clusters, seed):
    rng = np.random.default_rng(seed)
    weights = rng.random((n, n)) * (rng.random((n, n)) < 0.5) + 0.01
    labels = rng.integers(0, n_clusters, n)
    S = np.eye(n_clusters)[labels][:, np.bincount(labels, minlength=n_clusters) > 0]
    d = weights.sum(axis=1)
    expected = S.shape[1] - sum((s @ weights @ s) / (d @ s) for s in S.T)
    assert_allclose(fm.ncut(weights, labels), expected, rtol=1e-12, atol=1e-12)
    assert 0 <= fm.ncut(weights, labels) <= S.shape[1]


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 10_000))
def test_clustering_error_against_all_permutations(n, k, seed):
    rng = np.random.default_rng(seed)
    labels, truth = rng.integers(0, k, n), rng.integers(0, k, n)
    best = min(np.mean(np.array(names)[labels] != truth) for names in permutations(range(k)))
    assert_allclose(fm.clustering_error(labels, truth), best, atol=1e-15)
    assert fm.clustering_error(rng.permutation(k)[truth], truth) == 0.0


def test_malformed_graphs_and_truth_raise():
    for metric, first, labels, message in (
        (fm.ncut, W, [0, 1], "W must have shape"),
        (fm.ncut, np.ones((2, 3)), [0, 1], "W must have shape"),
        (fm.ncut, [[0, -1], [-1, 0]], [0, 1], "negative"),
        (fm.ncut, W * np.nan, [0, 0, 1, 1], "W must hold finite numbers"),
        (fm.clustering_error, [0, 1], [-1, 0], "truth must lie"),
        (fm.clustering_error, [0, 1], [0], "same shape"),
        (fm.clustering_error, [], [], "no point"),
    ):
        with pytest.raises(ValueError, match=message):
            metric(first, labels)
