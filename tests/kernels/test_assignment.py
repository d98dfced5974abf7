"""The assignment kernel against plain NumPy."""

import numba
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import logsumexp, softmax

from fairclust.kernels.fast import FAST, log, quotient
from fairclust.kernels.points import NearestPoints, TiledPoints
from fairclust.kernels.tiles import TILE
from toys import with_one_thread_and_several


def twin(X, codes, centers, scale, offset, squared=True):
    """Return the potentials, the softmax rows, the sum of the logarithms and the exponents."""
    a = ((X[:, None] - centers) ** 2).sum(axis=2)
    a = a if squared else np.sqrt(a)
    z = -(scale * a) - offset[codes]
    return a, softmax(z, axis=1), logsumexp(z, axis=1).sum(), z


def potentials(X, codes, n_groups, centers, dtype, squared=True):
    found = TiledPoints.pack(X, codes, n_groups, len(centers), squared=squared, dtype=dtype)
    found.measure(centers)
    return found


@pytest.mark.parametrize("n_samples", [1, 2, TILE - 1, TILE, TILE + 1, 3 * TILE + 17])
@pytest.mark.parametrize("squared, n_clusters", [(True, 1), (False, 2), (True, 4), (False, 5), (True, 70)])
@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-12), (np.float32, 3e-5)])
def test_passes_match_numpy(n_samples, squared, n_clusters, dtype, rtol):
    rng = np.random.default_rng(n_samples)
    X, codes = rng.normal(size=(n_samples, 3)), rng.integers(3, size=n_samples).astype(np.int32)
    centers, offset = rng.normal(size=(n_clusters, 3)), rng.normal(size=(3, n_clusters)) * 3
    found = potentials(X, codes, 3, centers, dtype, squared)
    a, s, logsum, _ = twin(X, codes, centers, 2.5, offset, squared)
    close = {"rtol": rtol, "atol": rtol}
    *sums, moments = found.soft(2.5, offset, curved=True)
    for mass, potential, total in (sums, found.soft(2.5, offset)[:3]):
        np.testing.assert_allclose(mass, [s[codes == j].sum(axis=0) for j in range(3)], **close)
        assert potential == pytest.approx((s * a).sum(), rel=rtol)
        assert total == pytest.approx(logsum, rel=rtol, abs=rtol)
    np.testing.assert_allclose(moments, [s[codes == j].T @ s[codes == j] for j in range(3)], **close)
    for scale, labels, counts, cost, *_ in ((2.5, *found.hard(2.5, offset)), (1.0, *found.priced(offset))):
        of_cluster = scale * a + offset[codes]
        each = [np.bincount(labels[codes == j], minlength=n_clusters) for j in range(3)]
        np.testing.assert_array_equal(counts, each)
        assert cost == pytest.approx(a[np.arange(n_samples), labels].sum(), rel=rtol)
        np.testing.assert_allclose(of_cluster[np.arange(n_samples), labels], of_cluster.min(axis=1), **close)
    assert found.priced(offset)[3] == pytest.approx((a + offset[codes]).min(axis=1).sum(), rel=rtol, abs=rtol)
    ordered = np.sort(a, axis=1)
    gap = (ordered[:, 1] - ordered[:, 0]).mean() if n_clusters > 1 else 0.0
    assert found.mean_gap() == pytest.approx(gap, rel=rtol)
    if n_clusters > 1:
        priced, nearest = a + offset[codes], (a + offset[codes]).argmin(axis=1)
        ordered = np.sort(priced, axis=1)
        own = np.bincount(nearest, a[np.arange(n_samples), nearest], n_clusters)
        without = np.bincount(nearest, ordered[:, 1] - ordered[:, 0], n_clusters)
        np.testing.assert_allclose(found.losses(offset), [own, without], rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 5001.0, 1e6])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_large_scales_and_far_data_keep_their_digits(dtype, scale, far):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) + far
    codes = (np.arange(1000) % 2).astype(np.int32)
    centers, offset = X[:5], scale * rng.normal(size=(2, 5)) * 0.1 + 1e5
    found = potentials(X, codes, 2, centers, dtype)
    a, s, _, z = twin(X, codes, centers, scale, offset)
    m, p, lse, _ = found.soft(scale, offset)
    assert np.isfinite([p, lse]).all()
    np.testing.assert_allclose(m.sum(axis=1), [500, 500], rtol=1e-6)
    assert p == pytest.approx((s * a).sum(), rel=1e-3 if dtype == np.float32 else 1e-6)
    assert (found.hard(scale, offset)[0] == z.argmax(axis=1)).mean() > 0.998


def test_results_do_not_depend_on_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 4))
    codes = rng.integers(2, size=len(X)).astype(np.int32)
    offset = rng.normal(size=(2, 12))
    found = potentials(X, codes, 2, X[:12], np.float32)
    one, several = with_one_thread_and_several(
        lambda: (*found.soft(3.0, offset, curved=True), *found.hard(3.0, offset))
    )
    np.testing.assert_equal(several, one)


@pytest.mark.parametrize("scale", [0.001, 30.0])
def test_moments_of_many_clusters_whether_points_have_shares_in_all_or_in_few(scale):
    rng = np.random.default_rng(0)
    X, codes, offset = rng.normal(size=(700, 3)), rng.integers(2, size=700), 0.1 * rng.normal(size=(2, 100))
    centers = rng.normal(size=(100, 3))
    moments = potentials(X, codes, 2, centers, np.float64).soft(scale, offset, curved=True)[3]
    s = twin(X, codes, centers, scale, offset)[1]
    assert (np.median((s > 1e-6).sum(axis=1)) == 100) == (scale < 1)
    np.testing.assert_allclose(moments, [s[codes == j].T @ s[codes == j] for j in range(2)], atol=2e-4)


@pytest.mark.parametrize("apart, spread", [(1.0, 1.0), (1e4, 1.0), (10.0, 1e-3)])
def test_distances_of_many_features_to_many_clusters_stay_accurate(apart, spread):
    # In clusters much closer than they are apart, the digits of matrix products would cancel.
    rng = np.random.default_rng(1)
    centers = apart * rng.normal(size=(70, 80))
    X = centers[rng.integers(70, size=900)] + spread * rng.normal(size=(900, 80))
    points = TiledPoints.pack(X, np.zeros(900, np.int32), 1, 70)
    near, table = points.for_plain_steps(), cdist(X, centers, "sqeuclidean")
    for found in (points, near):
        found.measure(centers)
        labels, _, cost = found.hard(1.0, np.zeros((1, 70)))
        np.testing.assert_array_equal(labels, table.argmin(axis=1))
        assert cost == pytest.approx(table.min(axis=1).sum(), rel=1e-4)


@pytest.mark.parametrize("n_features", [1, 4, 7])
def test_plain_steps_in_one_pass_agree_with_those_that_store_distances(n_features):
    rng = np.random.default_rng(n_features)
    X, codes = rng.normal(size=(2000, n_features)) + 100, rng.integers(0, 3, 2000).astype(np.int32)
    points = TiledPoints.pack(X, codes, 3, 5)
    near = NearestPoints(points)
    points.measure(X[:5])
    near.measure(X[:5])
    labels, counts, cost = points.hard(1.0, np.zeros((3, 5)))
    found = near.hard(1.0, np.zeros((3, 5)))
    np.testing.assert_array_equal(found[0], labels)
    np.testing.assert_array_equal(found[1], counts)
    assert found[2] == pytest.approx(cost, rel=1e-6)
    for sums, expected in zip(near.sums(labels), points.sums(labels), strict=True):
        np.testing.assert_allclose(sums, expected, rtol=1e-6)


def test_quotients_of_the_kernels_are_rounded_correctly():
    # The flag "arcp" allows compilers to approximate them, by an instruction whose digits depend on the processor.
    @numba.njit(fastmath=FAST)
    def quotients(x, out):
        for i in range(len(x)):
            out[i] = quotient(x[0], x[i])

    x = np.random.default_rng(0).random(10_000).astype(np.float32) + np.float32(1)
    out = np.empty_like(x)
    quotients(x, out)
    np.testing.assert_array_equal(out, x[0] / x)


def test_the_logarithm_of_the_kernels():
    @numba.njit(fastmath=FAST)
    def logs(x, out):
        for i in range(len(x)):
            out[i] = log(x[i])

    x = np.concatenate([np.arange(1.0, 300.0), 1 + np.logspace(-16, 0, 1000), np.logspace(0, 307, 10_000)])
    out = np.empty_like(x)
    logs(x, out)
    np.testing.assert_allclose(out, np.log(x), rtol=1e-15, atol=1e-15)
