import numpy as np
import pytest

from fairclust.kernels.graph import AffinityGraph, build_knn_graph, max_scaled_affinity


def test_affinity_symmetric_up_to_rounding_and_integers():
    W = np.ones((30, 30))
    W[0, 1] *= 1 + 1e-9
    AffinityGraph.from_matrix(W)
    assert AffinityGraph.from_matrix(np.ones((3, 3), int)).degrees.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("n_features", [2, 12])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_knn_graph_matches_all_pairs(n_features, offset):
    X = np.random.default_rng(0).normal(size=(300, n_features))
    W, info = build_knn_graph(X + offset, 8)
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    A = np.zeros((300, 300))
    np.put_along_axis(A, np.argsort(distance, axis=1)[:, 1:8], 1.0, axis=1)
    np.testing.assert_array_equal(W.toarray(), (A + A.T) / 2)
    assert W.dtype == np.float32
    assert info["method"] == ("kd_tree" if n_features == 2 else "brute")
    assert (info["n_neighbors"], info["recall"], info["n_edges"]) == (8, 1.0, W.nnz // 2)


def test_knn_graph_of_duplicates_has_no_loops_and_no_isolated_node():
    X = np.repeat(np.arange(3.0), 40)[:, None]
    W, _ = build_knn_graph(X, 10)
    assert W.diagonal().sum() == 0
    assert (W.sum(axis=1) >= 9 / 2).all()
    assert W.sum() == 120 * 9


@pytest.mark.parametrize("n_neighbors", [5, 20])
def test_more_neighbours_than_points_is_the_complete_graph(n_neighbors):
    W, info = build_knn_graph(np.arange(5.0)[:, None], n_neighbors)
    np.testing.assert_array_equal(W.toarray(), 1 - np.eye(5))
    assert info["n_neighbors"] == 5


@pytest.mark.parametrize("n, n_neighbors", [(1, 20), (10, 1)])
def test_knn_graph_without_edges(n, n_neighbors):
    with pytest.raises(ValueError, match="a graph needs"):
        build_knn_graph(np.arange(float(n))[:, None], n_neighbors)


@pytest.mark.slow  # compiling pynndescent takes a minute
def test_approximate_graph_is_measured_and_repeats():
    X = np.random.default_rng(1).normal(size=(3000, 10))
    exact, _ = build_knn_graph(X, 15)
    W, info = build_knn_graph(X, 15, random_state=3, exact_max_rows=1000)
    again, _ = build_knn_graph(X, 15, random_state=3, exact_max_rows=1000)
    assert info["method"] == "nn_descent"
    assert info["recall_rows"] == 1000
    assert info["recall"] > 0.9
    np.testing.assert_array_equal(W.indices, again.indices)
    # The share of correct edges, measured on a sample of rows, holds for all edges.
    found = (W.multiply(exact).nnz) / exact.nnz
    assert found == pytest.approx(info["recall"], abs=0.03)


def test_max_scaled_affinity():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    squares = np.array([[0, 25, 1], [25, 0, 18], [1, 18, 0]])
    np.testing.assert_allclose(max_scaled_affinity(X), np.exp(-squares / 5), rtol=1e-12)
    np.testing.assert_array_equal(max_scaled_affinity(np.ones((3, 2))), np.ones((3, 3)))
