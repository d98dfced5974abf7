"""The passes of a mixture against plain NumPy on the full N x K matrix."""

import numba
import numpy as np
import pytest
from scipy.special import logsumexp

import fairclust.kernels.mixture as module
from fairclust.kernels.mixture import Components, MixtureTiles
from fairclust.kernels.tiles import TILE

SIZES = np.array([3, 2])


def problem(n_samples, n_numeric, n_categorical, n_clusters, n_groups, shared, seed=0):
    """Draw points, categories (some unknown), groups and components."""
    rng = np.random.default_rng(seed)
    sizes = SIZES[:n_categorical]
    n_levels = int(sizes.sum())
    X = rng.normal(size=(n_samples, n_numeric))
    levels = (
        np.stack([rng.integers(size, size=n_samples) for size in sizes], axis=1) if n_categorical else None
    )
    levels = np.zeros((n_samples, 0), int) if levels is None else levels + np.r_[0, SIZES[0]][:n_categorical]
    levels[rng.random(levels.shape) < 0.1] = n_levels
    groups = np.arange(n_samples) % n_groups
    tables = np.hstack([rng.normal(size=(n_clusters, n_levels)), np.zeros((n_clusters, 1))])
    shape = (1, 1) if shared else (n_clusters, n_numeric)
    components = Components(
        rng.normal(size=n_clusters),
        rng.normal(size=(n_clusters, n_numeric)),
        rng.uniform(0.5, 3, size=shape),
        tables,
    )
    return X, levels.astype(np.int32), groups, components


def twin(X, levels, components):
    """Compute z_ik = log(pi_k f_k(x_i)) in the order of the rows."""
    const, means, precisions, tables = components
    far = ((X[:, None] - means) ** 2 * np.broadcast_to(precisions, means.shape)).sum(axis=2)
    return (
        const - 0.5 * far + sum((tables[:, column].T for column in levels.T), np.zeros((len(X), len(const))))
    )


def twin_moments(X, levels, components, w, n_levels):
    away = X[:, None] - components.means
    return (
        w.sum(axis=0),
        (w[:, :, None] * away).sum(axis=0),
        (w[:, :, None] * away**2).sum(axis=0),
        np.stack([w[(levels == e).any(axis=1)].sum(axis=0) for e in range(n_levels)], axis=1)
        if n_levels
        else np.zeros((w.shape[1], 0)),
    )


def softmax(z):
    return np.exp(z - logsumexp(z, axis=1, keepdims=True))


KINDS = [(2, 0, True), (2, 0, False), (0, 2, True), (3, 2, True), (3, 1, False)]


@pytest.mark.parametrize("n_samples", [1, 3 * TILE + 17])
@pytest.mark.parametrize("n_numeric, n_categorical, shared", KINDS)
@pytest.mark.parametrize("n_clusters, n_groups", [(1, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-11), (np.float32, 2e-5)])
def test_passes_match_numpy(n_samples, n_numeric, n_categorical, shared, n_clusters, n_groups, dtype, tol):
    X, levels, groups, components = problem(n_samples, n_numeric, n_categorical, n_clusters, n_groups, shared)
    n_levels = int(SIZES[:n_categorical].sum())
    shift = np.full(n_numeric, 0.5)
    tiles = MixtureTiles.pack(X, levels, n_levels, groups, n_groups, shift, dtype)
    moved = components._replace(means=components.means - shift)
    z = twin(X, levels, components)
    psi = softmax(z)
    sums, logsum, _ = tiles.table(moved)
    assert logsum == pytest.approx(logsumexp(z, axis=1).sum(), rel=tol, abs=tol * n_samples)
    by_group = np.stack([psi[groups == j].sum(axis=0) for j in range(n_groups)])
    np.testing.assert_allclose(sums, by_group, rtol=tol, atol=tol * n_samples)
    rng = np.random.default_rng(1)
    C = rng.normal(size=(n_groups, n_clusters))
    c = C[groups]
    for alpha, table, w in (
        (1.0, None, psi),
        (0.7, C, psi * (0.7 + c - (c * psi).sum(axis=1, keepdims=True))),
    ):
        for known in (False, True):
            kept = tiles.room(len(moved.const)) if known else None
            tiles.table(moved, psi=kept)
            found, again = tiles.moments(moved, alpha=alpha, C=table, psi=kept)
            expected = twin_moments(X, levels, components, w, n_levels)
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_allclose(a, b, rtol=tol, atol=5 * tol * n_samples)
            if not known:
                assert again == pytest.approx(logsum)
    out = tiles.log_joint(moved)
    np.testing.assert_allclose(out, z[tiles.layout.order], rtol=100 * tol, atol=10 * tol)
    labels = np.empty(n_samples, int)
    labels[tiles.layout.order] = out.argmax(axis=1)
    counts = [np.bincount(labels[groups == j], minlength=n_clusters) for j in range(n_groups)]
    np.testing.assert_array_equal(tiles.table(moved, with_hard=True)[2], counts)
    scaled = MixtureTiles.pack(X, levels, n_levels, groups, n_groups, shift, dtype, unit=3.0)
    np.testing.assert_allclose(3 * scaled.points, tiles.points, rtol=1e-6)


def test_sharpness():
    X, levels, groups, components = problem(700, 2, 1, 4, 2, True)
    tiles = MixtureTiles.pack(X, levels, 3, groups, 2, np.zeros(2), np.float64)
    psi = softmax(5 * twin(X, levels, components))
    sums, _, _ = tiles.table(components, sharpness=5.0)
    np.testing.assert_allclose(sums, [psi[groups == j].sum(axis=0) for j in range(2)], rtol=1e-10)


def test_points_far_from_all_means_have_finite_sums():
    X = np.array([[1e4], [-1e4], [0.0]])
    components = Components(np.zeros(2), np.array([[0.0], [1.0]]), np.array([[1e4]]), np.zeros((2, 1)))
    tiles = MixtureTiles.pack(X, np.zeros((3, 0), np.int32), 0, np.zeros(3, int), 1, np.zeros(1))
    sums, logsum, _ = tiles.table(components)
    assert np.isfinite(logsum)
    np.testing.assert_allclose(sums, [[2.0, 1.0]], atol=1e-6)


def test_responsibilities_computed_again_are_the_same(monkeypatch):
    X, levels, groups, components = problem(2000, 3, 2, 4, 2, False)
    C = np.random.default_rng(0).normal(size=(2, 4))
    found = []
    for limit in (1 << 27, 0):
        monkeypatch.setattr(module, "_KEEP_BYTES", limit)
        tiles = MixtureTiles.pack(X, levels, 5, groups, 2, np.zeros(3))
        psi = tiles.room(len(components.const))
        tiles.table(components, psi=psi)
        found.append(tiles.moments(components, C=C, psi=psi)[0])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_do_not_change_a_bit():
    X, levels, groups, components = problem(60_000, 3, 2, 6, 3, True)
    tiles = MixtureTiles.pack(X, levels, 5, groups, 3, np.zeros(3))
    before = numba.get_num_threads()
    try:
        found = []
        for threads in (1, numba.config.NUMBA_NUM_THREADS):
            numba.set_num_threads(threads)
            moments, logsum = tiles.moments(components)
            found.append([*moments, logsum])
    finally:
        numba.set_num_threads(before)
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("n_numeric", [0, 2])
@pytest.mark.parametrize("sizes", [(3, 2), (4, 3, 5, 2, 6), (40, 50)])
def test_merged_points_have_the_same_sums(n_numeric, sizes):
    rng = np.random.default_rng(0)
    n_samples, n_groups, n_clusters, n_levels = 3000, 3, 4, sum(sizes)
    starts = np.cumsum(sizes) - sizes
    levels = np.stack([rng.integers(size, size=n_samples) for size in sizes], axis=1) + starts
    levels[rng.random(levels.shape) < 0.05] = n_levels
    levels = levels.astype(np.int32)
    X = rng.normal(size=(n_samples, n_numeric))
    groups = rng.integers(n_groups, size=n_samples)
    components = Components(
        rng.normal(size=n_clusters),
        rng.normal(size=(n_clusters, n_numeric)),
        np.ones((1, 1)),
        np.hstack([rng.normal(size=(n_clusters, n_levels)), np.zeros((n_clusters, 1))]),
    )
    C = rng.normal(size=(n_groups, n_clusters))
    shift = np.zeros(n_numeric)
    plain = MixtureTiles.pack(X, levels, n_levels, groups, n_groups, shift, np.float64)
    merged = MixtureTiles.pack(X, levels, n_levels, groups, n_groups, shift, np.float64, merge=True)
    assert merged.n_samples == plain.n_samples == n_samples
    np.testing.assert_array_equal(merged.group_sizes, np.bincount(groups))
    assert (merged.n_points < n_samples) == (n_numeric == 0)
    if len(sizes) == 5:
        assert merged.codes.shape[1] < 5
    for a, b in zip(*(t.table(components, with_hard=True) for t in (plain, merged)), strict=True):
        np.testing.assert_allclose(a, b)
    for a, b in zip(plain.moments(components, C=C)[0], merged.moments(components, C=C)[0], strict=True):
        np.testing.assert_allclose(a, b, atol=1e-9)


def test_more_combinations_than_an_integer_holds():
    rng = np.random.default_rng(0)
    levels = (rng.integers(2, size=(50, 40)) + 2 * np.arange(40)).astype(np.int32)
    twice = np.vstack([levels, levels])
    tiles = MixtureTiles.pack(
        np.zeros((100, 0)), twice, 80, np.zeros(100, int), 1, np.zeros(0), np.float64, merge=True
    )
    assert tiles.n_points == 50
    assert tiles.n_samples == 100


def test_sums_over_runs_of_tiles(monkeypatch):
    X, levels, groups, components = problem(5000, 3, 2, 4, 2, False)
    found = []
    for entries in (1, 10**9):
        monkeypatch.setattr(module, "_ENTRIES_PER_BLOCK", entries)
        found.append(
            MixtureTiles.pack(X, levels, 5, groups, 2, np.zeros(3), np.float64).moments(components)[0]
        )
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
