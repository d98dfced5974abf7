"""The assignment kernel against plain NumPy."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from fairclust.kernels import assignment
from fairclust.kernels.assignment import Potentials, SquaredDistances, cluster_moments
from fairclust.kernels.tiles import TILE, make_layout, pack_points

SIZES = [1, 2, TILE - 1, TILE, TILE + 1, 3 * TILE + 17]


def twin(X, codes, centers, scale, offset, squared=True):
    a = ((X[:, None] - centers) ** 2).sum(axis=2)
    a = a if squared else np.sqrt(a)
    z = -(scale * a) - offset[codes]
    log_s = z - logsumexp(z, axis=1, keepdims=True)
    s = np.exp(log_s)
    mass = np.stack([s[codes == j].sum(axis=0) for j in range(len(offset))])
    return mass, (s * a).sum(), logsumexp(z, axis=1).sum(), z


def potentials(X, codes, n_groups, centers, dtype, squared=True):
    layout = make_layout(codes, n_groups)
    found = Potentials.empty(layout, n_groups, len(centers), dtype)
    shift = X.mean(axis=0)
    found.set_distances(pack_points(X, layout, shift, dtype), centers - shift, squared=squared)
    return found


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 3e-5)])
def test_soft_and_hard_match_numpy(n_samples, squared, dtype, rtol):
    rng = np.random.default_rng(n_samples)
    X = rng.normal(size=(n_samples, 3))
    codes = rng.integers(3, size=n_samples).astype(np.int32)
    centers, offset = rng.normal(size=(4, 3)), rng.normal(size=(3, 4)) * 3
    found = potentials(X, codes, 3, centers, dtype, squared)
    mass, potential, logsum, z = twin(X, codes, centers, 2.5, offset, squared)
    m, p, lse = found.soft(2.5, offset)
    np.testing.assert_allclose(m, mass, rtol=rtol, atol=rtol)
    assert p == pytest.approx(potential, rel=rtol)
    assert lse == pytest.approx(logsum, rel=rtol, abs=1e-4 if dtype == np.float32 else 1e-9)
    labels, counts, cost = found.hard(2.5, offset)
    np.testing.assert_array_equal(counts, [np.bincount(labels[codes == j], minlength=4) for j in range(3)])
    a = ((X[:, None] - centers) ** 2).sum(axis=2)
    chosen = (a if squared else np.sqrt(a))[np.arange(n_samples), labels]
    assert cost == pytest.approx(chosen.sum(), rel=rtol)
    clear = np.diff(np.sort(z, axis=1)[:, -2:], axis=1)[:, 0] > 1e-4
    np.testing.assert_array_equal(labels[clear], z.argmax(axis=1)[clear])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 5001.0, 1e6])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_large_scales_and_far_data_keep_their_digits(dtype, scale, far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) + far
    codes = (np.arange(1000) % 2).astype(np.int32)
    centers, offset = X[:5], scale * rng.normal(size=(2, 5)) * 0.1 + 1e5
    found = potentials(X, codes, 2, centers, dtype)
    _, potential, _, z = twin(X, codes, centers, scale, offset)
    m, p, lse = found.soft(scale, offset)
    assert np.isfinite([p, lse]).all()
    np.testing.assert_allclose(m.sum(axis=1), [500, 500], rtol=1e-6)
    assert p == pytest.approx(potential, rel=1e-3 if dtype == np.float32 else 1e-6)
    assert (found.hard(scale, offset)[0] == z.argmax(axis=1)).mean() > 0.998


def test_results_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    codes = rng.integers(2, size=len(X)).astype(np.int32)
    offset = rng.normal(size=(2, 12))
    found = potentials(X, codes, 2, X[:12], np.float32)
    threads = numba.get_num_threads()
    answers = []
    try:
        for n in sorted({1, threads}):
            numba.set_num_threads(n)
            answers.append((*found.soft_moments(3.0, offset), *found.hard(3.0, offset)))
    finally:
        numba.set_num_threads(threads)
    for other in answers[1:]:
        for left, right in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(left, right)


def test_empty_group():
    X = np.arange(6.0)[:, None]
    codes = np.array([0, 0, 2, 2, 2, 0], np.int32)
    mass, _, _ = potentials(X, codes, 3, X[:2], np.float64).soft(1.0, np.zeros((3, 2)))
    np.testing.assert_allclose(mass.sum(axis=1), [3, 0, 3])


def test_ties_go_to_the_smallest_cluster():
    X = np.zeros((5, 1))
    labels = potentials(X, np.zeros(5, np.int32), 1, np.zeros((3, 1)), np.float32).hard(
        1.0, np.zeros((1, 3))
    )[0]
    np.testing.assert_array_equal(labels, 0)


def test_moments():
    X = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    counts, sums = cluster_moments(X, np.array([2, 0, 2]), 4)
    np.testing.assert_array_equal(counts, [1, 0, 2, 0])
    np.testing.assert_array_equal(sums, [[3, 4], [0, 0], [6, 8], [0, 0]])


@pytest.mark.parametrize("n_samples", SIZES)
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("scale", [5.0, 100.0, 3000.0])
def test_moments_where_most_points_have_one_cluster(n_samples, dtype, rtol, scale):
    rng = np.random.default_rng(n_samples)
    X = rng.normal(size=(n_samples, 3))
    codes = rng.integers(3, size=n_samples).astype(np.int32)
    centers, offset = rng.normal(size=(4, 3)), rng.normal(size=(3, 4)) * scale / 3
    # A point between two clusters has a share in both at any scale.
    X[0] = centers[:2].mean(axis=0)
    offset[codes[0], :2] = offset[codes[0]].min() - 100 * scale
    found = potentials(X, codes, 3, centers, dtype, True)
    _, potential, logsum, z = twin(X, codes, centers, scale, offset, True)
    s = np.exp(z - z.max(axis=1, keepdims=True))
    s /= s.sum(axis=1, keepdims=True)
    m, p, lse, moments = found.soft_moments(scale, offset)
    # The rounding of the exponents changes the shares of points between clusters.
    most = {"rtol": rtol, "atol": 1e-9 if dtype == np.float64 else 1e-2}
    np.testing.assert_allclose(m, [s[codes == j].sum(axis=0) for j in range(3)], **most)
    np.testing.assert_allclose(moments, [s[codes == j].T @ s[codes == j] for j in range(3)], **most)
    assert p == pytest.approx(potential, rel=max(rtol, 1e-9))
    assert lse == pytest.approx(logsum, rel=rtol)


@pytest.mark.parametrize("scale", [50.0, 0.1])
def test_moments_of_many_clusters(scale):
    # With the larger scale each point has few clusters, with the smaller one it has many.
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(900, 2)), np.arange(900, dtype=np.int32) % 2
    found = potentials(X, codes, 2, X[:80], np.float64)
    mass, _, _, moments = found.soft_moments(scale, np.zeros((2, 80)))
    z = -scale * ((X[:, None] - X[None, :80]) ** 2).sum(axis=2)
    s = np.exp(z - z.max(axis=1, keepdims=True))
    s /= s.sum(axis=1, keepdims=True)
    expected = [s[codes == j].T @ s[codes == j] for j in range(2)]
    assert ((s >= 1e-6).sum(axis=1) > 32).all() == (scale < 1)
    np.testing.assert_allclose(moments, expected, atol=2e-3)
    np.testing.assert_allclose(mass, [s[codes == j].sum(axis=0) for j in range(2)], rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    arrays(np.float64, st.tuples(st.integers(1, 30), st.just(2)), elements=st.floats(-1e3, 1e3)),
    st.integers(1, 4),
    st.integers(1, 6),
    st.floats(0, 1e4),
)
def test_rows_are_probabilities_for_any_finite_input(X, n_groups, n_clusters, scale):
    codes = (np.arange(len(X)) % n_groups).astype(np.int32)
    centers = np.resize(X, (n_clusters, 2))
    found = potentials(X, codes, n_groups, centers, np.float32)
    mass, potential, logsum = found.soft(scale, np.zeros((n_groups, n_clusters)))
    np.testing.assert_allclose(mass.sum(axis=1), np.bincount(codes, minlength=n_groups), rtol=1e-5)
    assert (mass >= 0).all()
    assert np.isfinite(potential)
    assert np.isfinite(logsum)
    labels = found.hard(scale, np.zeros((n_groups, n_clusters)))[0]
    assert labels.min() >= 0
    assert labels.max() < n_clusters


def test_distances_that_are_computed_when_read(monkeypatch):
    rng = np.random.default_rng(0)
    X, centers, codes = rng.normal(size=(5000, 3)), rng.normal(size=(4, 3)), rng.integers(3, size=5000)
    monkeypatch.setattr(assignment, "_BLOCK_ROWS", 2 * TILE)
    lazy, table = SquaredDistances(X, centers), cdist(X, centers, "sqeuclidean")
    assert lazy.shape == table.shape
    labels, squares = lazy.nearest()
    np.testing.assert_array_equal(labels, table.argmin(axis=1))
    np.testing.assert_array_equal(squares, table.min(axis=1))
    found = [Potentials.empty(make_layout(codes, 3), 3, 4, np.float64) for _ in range(2)]
    for potentials, costs in zip(found, (lazy, table), strict=True):
        potentials.set_costs(costs)
    np.testing.assert_array_equal(found[0].a, found[1].a)
    least = table.min(axis=1)
    layout = found[0].layout
    for t in range(layout.n_tiles):
        rows = layout.order[layout.start[t] : layout.start[t] + layout.count[t]]
        np.testing.assert_array_equal(found[0].a[t, :, : len(rows)].T, table[rows] - least[rows][:, None])


@pytest.mark.parametrize("units", [1, 7, 400])
def test_points_that_can_move_are_the_cheapest_of_every_boundary(units):
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(3000, 2)), (np.arange(3000) % 2).astype(np.int32)
    found = potentials(X, codes, 2, X[:5], np.float64)
    prices = rng.normal(size=(2, 5))
    a = cdist(X, X[:5], "sqeuclidean")
    labels = (a + prices[codes]).argmin(axis=1)
    for j, rows, excess in found.movable(prices, labels, np.array([units, units])):
        assert (codes[rows] == j).all()
        np.testing.assert_allclose(excess, a[rows] - a[rows].min(axis=1, keepdims=True), atol=1e-12)
        for k in range(5):
            inside = np.flatnonzero((codes == j) & (labels == k))
            for other in set(range(5)) - {k}:
                regret = a[inside, other] + prices[j, other] - a[inside, k] - prices[j, k]
                cheapest = inside[np.argsort(regret)[:units]]
                assert np.isin(cheapest, rows).all()
