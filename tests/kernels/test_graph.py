import numpy as np
import pytest
import scipy.sparse as sp

from fairclust.kernels import graph
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.graph import AffinityGraph, build_knn_graph, max_scaled_affinity
from fairclust.kernels.tiles import TILE, make_layout
from twins import ncut_potentials


def random_affinity(n, seed=0, density=0.1):
    """Draw a graph with random weights and a few self-loops. It contains a ring, so it is connected."""
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, n), density=density, rng=rng).toarray()
    A[np.arange(n), (np.arange(n) + 1) % n] += 0.5
    return (A + A.T) / 2


def unpack(potentials):
    """Return the potentials as an N x K matrix in the order of the points, with the row minima added again."""
    layout = potentials.layout
    out = np.empty((len(layout.order), potentials.a.shape[1]))
    for t, n in enumerate(layout.count):
        rows = layout.order[layout.start[t] :][:n]
        out[rows] = (potentials.a[t, :, :n] + potentials.row_min[t, :n]).T
    return out


@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-12), (np.float32, 1e-6)])
@pytest.mark.parametrize("shift", [0.0, 0.7])
def test_potentials_match_table_1(n_groups, dtype, tol, shift):
    n = TILE + 88
    rng = np.random.default_rng(n_groups)
    codes, labels = rng.integers(n_groups, size=n), rng.integers(4, size=n).astype(np.int32)
    W = random_affinity(n)
    potentials = Potentials.empty(make_layout(codes, n_groups), n_groups, 4, dtype)
    AffinityGraph.from_matrix(W).set_potentials(potentials, labels, shift=shift)
    a = ncut_potentials(W, labels, 4, shift)
    np.testing.assert_allclose(unpack(potentials), a, rtol=0, atol=tol * np.abs(a).max())
    assert potentials.row_min_sum == pytest.approx(a.min(axis=1).sum(), rel=1e-5)
    assert (potentials.a.min(axis=1) == 0).all()


def test_affinity_symmetric_up_to_rounding_and_integers():
    W = random_affinity(30)
    W[0, 1] *= 1 + 1e-9
    AffinityGraph.from_matrix(W)
    assert AffinityGraph.from_matrix(np.ones((3, 3), int)).degrees.tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("n_features", [2, 12])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_knn_graph_matches_all_pairs(n_features, offset):
    X = np.random.default_rng(0).normal(size=(300, n_features))
    W = build_knn_graph(X + offset, 8)
    distance = np.linalg.norm(X[:, None] - X, axis=2)
    A = np.zeros((300, 300))
    np.put_along_axis(A, np.argsort(distance, axis=1)[:, 1:8], 1.0, axis=1)
    np.testing.assert_array_equal(W.toarray(), (A + A.T) / 2)
    assert W.dtype == np.float32


def test_knn_graph_of_duplicates_has_no_loops_and_no_isolated_node():
    X = np.repeat(np.arange(3.0), 40)[:, None]
    W = build_knn_graph(X, 10)
    assert W.diagonal().sum() == 0
    assert (W.sum(axis=1) >= 9 / 2).all()
    assert W.sum() == 120 * 9


@pytest.mark.parametrize("n_neighbors", [5, 20])
def test_more_neighbours_than_points_is_the_complete_graph(n_neighbors):
    W = build_knn_graph(np.arange(5.0)[:, None], n_neighbors)
    np.testing.assert_array_equal(W.toarray(), 1 - np.eye(5))


@pytest.mark.parametrize("n, n_neighbors", [(1, 20), (10, 1)])
def test_knn_graph_without_edges(n, n_neighbors):
    with pytest.raises(ValueError, match="a graph needs"):
        build_knn_graph(np.arange(float(n))[:, None], n_neighbors)


@pytest.mark.slow  # compiling pynndescent takes a minute
def test_approximate_graph_has_most_edges_and_repeats(monkeypatch):
    X = np.random.default_rng(1).normal(size=(3000, 10))
    exact = build_knn_graph(X, 15)
    monkeypatch.setattr(graph, "_EXACT_MAX_ROWS", 1000)
    W, again = (build_knn_graph(X, 15, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(W.indices, again.indices)
    assert 0.9 < W.multiply(exact).nnz / exact.nnz < 1


def test_max_scaled_affinity():
    X = np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]])
    squares = np.array([[0, 25, 1], [25, 0, 18], [1, 18, 0]])
    np.testing.assert_allclose(max_scaled_affinity(X), np.exp(-squares / 5), rtol=1e-12)
    np.testing.assert_array_equal(max_scaled_affinity(np.ones((3, 2))), np.ones((3, 3)))
