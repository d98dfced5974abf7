"""The passes of a mixture against plain NumPy on the full N x K matrix."""

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from fairclust.kernels.mixture import Components
from fairclust.kernels.tiles import TILE
from fairclust.methods.mixture import rows
from fairclust.methods.mixture.rows import Columns, Rows
from toys import with_one_thread_and_several


def columns_of(n_numeric, sizes, shift=0.0, unit=1.0):
    numeric, categorical = np.split(np.arange(n_numeric + len(sizes)), [n_numeric])
    return Columns(numeric, categorical, sizes, np.full(n_numeric, shift), unit)


def problem(n_samples, n_numeric, sizes, n_clusters, n_groups, shared):
    """Draw points, categories (some unknown) and components. Groups take turns."""
    rng = np.random.default_rng(0)
    n_levels = sum(sizes)
    codes = rng.integers(sizes, size=(n_samples, len(sizes)))
    codes[rng.random(codes.shape) < 0.1] = -1
    const, means = rng.normal(size=n_clusters), rng.normal(size=(n_clusters, n_numeric))
    roots = rng.uniform(0.5, 1.3, size=(1, 1) if shared else means.shape) + 0 * means
    tables = np.hstack([rng.normal(size=(n_clusters, n_levels)), np.zeros((n_clusters, 1))])
    components = Components(const, means, roots, roots * means, tables)
    X = np.hstack([rng.normal(size=(n_samples, n_numeric)), codes])
    return X, np.arange(n_samples) % n_groups, components


def twin(X, levels, components):
    """Compute z_ik = log(pi_k f_k(x_i)) in the order of the rows."""
    const, means, roots, _, tables = components
    return const - (((X[:, None] - means) * roots) ** 2).sum(axis=2) + tables.T[levels].sum(axis=1)


def twin_moments(X, levels, components, w, n_levels):
    away = X[:, None] - components.means
    inside = (levels[:, :, None] == np.arange(n_levels)).any(axis=1)
    return (
        w.sum(axis=0),
        (w[:, :, None] * away).sum(axis=0),
        (w[:, :, None] * away**2).sum(axis=0),
        w.T @ inside.astype(float),
    )


# Numbers of numeric features, categories of each other feature, and whether all components share one variance.
KINDS = [
    (2, (), True), (2, (), False), (0, (3, 2), True), (3, (3, 2), True), (3, (3,), False), (0, (4, 3, 5, 2, 6), True),
    (2, (40, 50), True),
]  # fmt: skip


@pytest.mark.parametrize("n_samples", [1, 3 * TILE + 17])
@pytest.mark.parametrize("n_numeric, sizes, shared", KINDS)
@pytest.mark.parametrize("n_clusters, n_groups", [(1, 1), (4, 2), (5, 3)])
@pytest.mark.parametrize("dtype, tol", [(np.float64, 1e-11), (np.float32, 2e-5)])
@pytest.mark.parametrize("merge", [False, True])
def test_passes_match_numpy(
    monkeypatch, n_samples, n_numeric, sizes, shared, n_clusters, n_groups, dtype, tol, merge
):
    monkeypatch.setattr(rows, "DTYPE", dtype)
    X, groups, components = problem(n_samples, n_numeric, sizes, n_clusters, n_groups, shared)
    columns = columns_of(n_numeric, sizes, shift=0.5)
    tiles = Rows(columns, X, groups, n_groups).tiles(merge=merge)
    means = components.means - 0.5
    moved = components._replace(means=means, root_means=components.roots * means)
    numeric, levels = X[:, :n_numeric], columns.levels(X)
    z = twin(numeric, levels, components)
    psi, member = softmax(z, axis=1), np.eye(n_groups)[groups].T
    close = {"rtol": tol, "atol": 5 * tol * n_samples}
    sums, logsum, hard = tiles.table(moved, with_hard=True)
    assert logsum == pytest.approx(logsumexp(z, axis=1).sum(), rel=tol, abs=tol * n_samples)
    np.testing.assert_allclose(sums, member @ psi, **close)
    np.testing.assert_array_equal(hard, member @ np.eye(n_clusters)[z.argmax(axis=1)])
    np.testing.assert_allclose(tiles.table(moved, sharpness=5.0)[0], member @ softmax(5 * z, axis=1), **close)
    np.testing.assert_array_equal(tiles.group_sizes, member.sum(axis=1))
    C = np.random.default_rng(1).normal(size=(n_groups, n_clusters))
    pull = 0.7 + C[groups] - (C[groups] * psi).sum(axis=1, keepdims=True)
    for alpha, table, w in ((1.0, None, psi), (0.7, C, psi * pull)):
        for kept in (False, True):
            tiles.table(moved)
            found, again = tiles.moments(None if kept else moved, alpha=alpha, C=table)
            for a, b in zip(found, twin_moments(numeric, levels, components, w, sum(sizes)), strict=True):
                np.testing.assert_allclose(a, b, **close)
            assert again == (0 if kept else pytest.approx(logsum))
    if merge:
        # Rows with the same categories are one point, unless they have numbers as well.
        assert tiles.n_samples == n_samples
        assert (tiles.n_points < n_samples) == (n_numeric == 0 and n_samples > 1)
    else:
        np.testing.assert_allclose(tiles.log_joint(moved), z, rtol=100 * tol, atol=10 * tol)
    scaled = Rows(columns._replace(unit=3.0), X, groups, n_groups).tiles(merge=merge)
    np.testing.assert_allclose(3 * scaled.rows.points, tiles.rows.points, rtol=1e-6)


def test_points_far_from_all_means_have_finite_sums():
    X = np.array([[1e4], [-1e4], [0.0]])
    means, roots = np.array([[0.0], [1.0]]), np.full((2, 1), np.sqrt(0.5e4))
    components = Components(np.zeros(2), means, roots, roots * means, np.zeros((2, 1)))
    tiles = Rows(columns_of(1, ()), X, np.zeros(3, int), 1).tiles()
    sums, logsum, _ = tiles.table(components)
    assert np.isfinite(logsum)
    np.testing.assert_allclose(sums, [[2.0, 1.0]], atol=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e12])
def test_small_weights_keep_all_digits(unit):
    X, groups, components = problem(3 * TILE, 2, (), 4, 2, shared=True)
    X[0] *= unit
    tiles = Rows(columns_of(2, ()), X, groups, 2).tiles()
    tiles.table(components)
    C = np.random.default_rng(1).normal(size=(2, 4))
    # Weights of the second call would be below the normal range of float32.
    for part, small in zip(
        tiles.moments(C=C)[0], tiles.moments(alpha=2.0**-130, C=C * 2.0**-130)[0], strict=True
    ):
        assert np.isfinite(part).all()
        np.testing.assert_array_equal(small * 2.0**130, part)


def test_threads_and_kept_responsibilities_change_nothing():
    X, groups, components = problem(60_000, 3, (3, 2), 6, 3, True)
    C = np.random.default_rng(0).normal(size=(3, 6))

    def moments():
        tiles = Rows(columns_of(3, (3, 2)), X, groups, 3).tiles()
        tiles.table(components)
        return tiles.moments(C=C)[0], tiles.moments(components, C=C)[0]

    (first, *kept), others = with_one_thread_and_several(moments)
    for other in (*kept, *others):
        np.testing.assert_equal(other, first)


def test_more_combinations_than_an_integer_holds():
    codes = np.random.default_rng(0).integers(2, size=(50, 40))
    twice = Rows(columns_of(0, (2,) * 40), np.vstack([codes, codes]), np.zeros(100, int), 1)
    tiles = twice.tiles(merge=True)
    assert (tiles.n_points, tiles.n_samples) == (50, 100)
