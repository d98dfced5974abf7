import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import eigvalsh, subspace_angles

from fairclust.base import Diverged
from fairclust.datasets.msbm import make_msbm
from fairclust.kernels.graph import AffinityGraph, build_knn_graph, max_scaled_affinity
from fairclust.methods import FairSpectralClustering
from fairclust.methods.spectral.embedding import nullspace_embedding, spectral_embedding
from toys import odd_affinities
from twins import fair_spectral_coordinates

LAPLACIANS = ["normalized", "unnormalized"]


def blob_graph(n=510, n_groups=3, seed=2):
    """Draw overlapping blobs, whose graph is connected, with groups of different shares."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.normal(m, 1, (n // 3, 2)) for m in (0, 3, 6)])
    groups = rng.choice(n_groups, p=rng.dirichlet(np.full(n_groups, 5.0)), size=len(X))
    groups[: 2 * n_groups] = np.repeat(np.arange(n_groups), 2)
    return AffinityGraph.from_matrix(build_knn_graph(X, 12)), groups


def angle(A, B):
    return subspace_angles(A, B).max()


@pytest.mark.parametrize("laplacian", LAPLACIANS)
@pytest.mark.parametrize("n_groups", [2, 3, 6])
@pytest.mark.parametrize("kind", ["blobs", "msbm"])
def test_both_solvers_span_the_space_of_the_papers_algorithm(laplacian, n_groups, kind):
    if kind == "blobs":
        graph, groups = blob_graph(n_groups=n_groups)
    else:
        made = make_msbm(520, n_clusters=4, n_groups=n_groups, seed=1)
        graph, groups = AffinityGraph.from_matrix(made.W), made.groups
    wanted = fair_spectral_coordinates(graph.W.toarray().astype(float), groups, 4, laplacian)
    projected = spectral_embedding(graph, 4, groups=groups, laplacian=laplacian)
    dense = nullspace_embedding(graph, 4, groups=groups, laplacian=laplacian)
    assert angle(dense.coordinates, wanted) < 1e-6
    assert angle(projected.coordinates, dense.coordinates) < 1e-6
    np.testing.assert_allclose(projected.eigenvalues, dense.eigenvalues, atol=1e-8)
    for found in (projected, dense):
        scale = graph.degrees.max() if laplacian == "unnormalized" else 1.0
        assert found.residual < 1e-8 * scale
        assert found.constraint < 1e-12


@pytest.mark.parametrize("points", ["different", "copies", "pieces"])
@pytest.mark.parametrize("fair", [False, True])
def test_davidson_finds_the_eigenvectors_of_complete_graphs(points, fair):
    """The differences of copies of a row have one eigenvalue, which occurs many times."""
    rng = np.random.default_rng(4)
    X, groups = 2 * rng.normal(size=(540, 2)), rng.integers(3, size=540)
    W = max_scaled_affinity(X.clip(-2, 2).round() if points == "copies" else X)
    if points == "pieces":
        W *= np.kron(np.eye(3), np.ones((180, 180)))
    graph = AffinityGraph(W, W.sum(axis=1))
    found = spectral_embedding(graph, 6, groups=groups if fair else None, laplacian="unnormalized")
    balance = np.linalg.qr(np.eye(3)[groups][:, :2] - np.bincount(groups)[:2] / 540)[0][:, : 2 * fair]
    P = np.eye(540) - balance @ balance.T
    width = 2 * graph.degrees.max()
    exact = eigvalsh(P @ (np.diag(graph.degrees) - W) @ P + width * balance @ balance.T)
    np.testing.assert_allclose(found.eigenvalues, exact[:6], atol=1e-8)
    assert found.unique == (exact[6] - exact[5] > 1e-6 * width)
    assert found.unique == (points != "copies")
    assert found.residual < 1e-9 * width
    assert found.constraint < 1e-12


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "max_scaled"])
def test_an_unconverged_embedding_is_an_error(affinity):
    X = np.random.default_rng(2).normal(size=(510, 2))
    model = FairSpectralClustering(
        6, affinity=affinity, laplacian="unnormalized", max_iter=1, tol=1e-12, random_state=0
    )
    # The pipeline gives such fits the status "diverged".
    with pytest.raises(Diverged, match=r"found \d of 6 eigenvectors in 1 restarts"):
        model.fit(X, sensitive_features=np.arange(510) % 2)


def test_the_largest_of_many_components_are_separated():
    blocks = [np.ones((n, n)) - np.eye(n) for n in (5, 9, 4, 8, 7)]
    W = sp.block_diag(blocks)
    found = spectral_embedding(AffinityGraph.from_matrix(W), 3)
    dense = spectral_embedding(AffinityGraph.from_matrix(W.toarray()), 3)
    np.testing.assert_array_equal(dense.coordinates, found.coordinates)
    assert found.coordinates.shape == (33, 3)
    used = np.abs(found.coordinates).sum(axis=1) > 1e-12
    np.testing.assert_array_equal(np.repeat([False, True, False, True, True], [5, 9, 4, 8, 7]), used)


def test_a_stored_zero_is_no_edge():
    blocks = np.kron(np.eye(3), np.ones((200, 200)))
    stored = sp.csr_array(np.ones_like(blocks))
    stored.data[:] = blocks.ravel()
    found, expected = (spectral_embedding(AffinityGraph.from_matrix(W), 3) for W in (stored, blocks))
    np.testing.assert_array_equal(found.coordinates, expected.coordinates)
    assert stored.nnz == blocks.size


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("fair", [False, True])
def test_an_embedding_says_whether_it_is_the_only_one(dense, fair):
    """A circle has every eigenvalue but the first twice, and three pieces have no best two."""
    circle = np.roll(np.eye(60), 1, axis=1)
    circle += circle.T
    pieces = np.kron(np.eye(3), np.ones((200, 200)))
    for W, n_components, unique in [
        (circle, 2, False),
        (circle, 3, True),
        (pieces, 2, False),
        (pieces, 3, True),
    ]:
        graph = AffinityGraph.from_matrix(W if dense else sp.csr_array(W))
        # The constraint of alternating groups takes no direction among the smooth ones.
        groups = np.arange(len(W)) % 2 if fair else None
        assert spectral_embedding(graph, n_components, groups=groups).unique == unique
        if fair:
            assert nullspace_embedding(graph, n_components, groups=groups).unique == unique


def test_graphs_in_pieces():
    # There are fewer fair combinations of the components than asked for. Lanczos finds the other coordinates.
    rng = np.random.default_rng(3)
    blocks = [build_knn_graph(rng.normal(size=(n, 2)), 8) for n in (160, 180, 170)]
    graph, groups = AffinityGraph.from_matrix(sp.block_diag(blocks)), rng.integers(3, size=510)
    for laplacian in LAPLACIANS:
        projected = spectral_embedding(graph, 4, groups=groups, laplacian=laplacian)
        dense = nullspace_embedding(graph, 4, groups=groups, laplacian=laplacian)
        np.testing.assert_allclose(projected.eigenvalues, dense.eigenvalues, atol=1e-8)
        assert angle(projected.coordinates, dense.coordinates) < 1e-6
        plain = spectral_embedding(graph, 5, laplacian=laplacian)
        np.testing.assert_allclose(plain.eigenvalues[:3], 0, atol=1e-12)
        assert (plain.eigenvalues[3:] > 1e-6).all()
        assert plain.residual < 1e-8


@given(case=odd_affinities(), fair=st.booleans(), laplacian=st.sampled_from(LAPLACIANS))
@settings(max_examples=80)
def test_odd_graphs(case, fair, laplacian):
    W, groups, k = case
    graph = AffinityGraph.from_matrix(W)
    found = spectral_embedding(graph, k, groups=groups if fair else None, laplacian=laplacian)
    n_allowed = len(groups) - (groups.max() if fair else 0)
    assert min(k, n_allowed) <= found.coordinates.shape[1] <= n_allowed
    scale = 1.0 if laplacian == "normalized" else graph.degrees.max()
    assert found.residual < 1e-9 * scale
    assert found.constraint < 1e-10
    if fair:
        dense = nullspace_embedding(graph, k, groups=groups, laplacian=laplacian)
        first = found.eigenvalues[: len(dense.eigenvalues)]
        np.testing.assert_allclose(first, dense.eigenvalues, atol=1e-9 * scale)
