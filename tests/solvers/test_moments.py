import numba
import numpy as np
import pytest
from problems import from_blobs

from fairclust.kernels import assignment
from twins import softmax


@pytest.mark.parametrize("dtype, rtol", [(np.float64, 1e-11), (np.float32, 2e-4)])
@pytest.mark.parametrize("n_clusters", [1, 2, 3, 5, 8, 11])
def test_soft_moments_match_numpy(dtype, rtol, n_clusters):
    a, codes, potentials, _ = from_blobs(n_samples=1300, n_groups=3, n_clusters=n_clusters, dtype=dtype)
    prices = np.random.default_rng(1).normal(size=(3, n_clusters))
    s = softmax(-(2.0 * a + prices[codes]))
    mass, potential, logsum, moments = potentials.soft_moments(2.0, prices)
    for j in range(3):
        np.testing.assert_allclose(mass[j], s[codes == j].sum(axis=0), rtol=rtol)
        np.testing.assert_allclose(moments[j], s[codes == j].T @ s[codes == j], rtol=rtol, atol=1e-6)
    assert potential == pytest.approx((s * a).sum(), rel=rtol)
    assert logsum == pytest.approx(np.log(np.exp(-(2.0 * a + prices[codes])).sum(axis=1)).sum(), rel=rtol)
    # Both methods use this kernel.
    for one, other in zip(potentials.soft(2.0, prices), (mass, potential, logsum), strict=True):
        np.testing.assert_array_equal(one, other)


def test_moments_do_not_depend_on_the_blocks_of_tiles(monkeypatch):
    _, _, potentials, _ = from_blobs(n_samples=6000, n_groups=3, n_clusters=5, dtype=np.float32)
    prices = np.random.default_rng(1).normal(size=(3, 5))
    whole = potentials.soft_moments(2.0, prices)
    monkeypatch.setattr(assignment, "_PRODUCT_BYTES", 1)
    monkeypatch.setattr(assignment, "_LEAST_TILES", 5)
    for one, other in zip(potentials.soft_moments(2.0, prices), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_hard_counts_and_potential_match_numpy():
    a, codes, potentials, _ = from_blobs(n_samples=1300, n_groups=3, n_clusters=5)
    prices = np.random.default_rng(1).normal(size=(3, 5))
    labels, counts, potential = potentials.hard(1.5, prices)
    np.testing.assert_array_equal(labels, (1.5 * a + prices[codes]).argmin(axis=1))
    np.testing.assert_array_equal(counts, [np.bincount(labels[codes == j], minlength=5) for j in range(3)])
    assert potential == pytest.approx(a[np.arange(len(a)), labels].sum(), rel=1e-12)


def test_mean_gap_matches_numpy():
    a, _, potentials, _ = from_blobs(n_samples=1300, n_clusters=5)
    ordered = np.sort(a, axis=1)
    assert potentials.mean_gap() == pytest.approx((ordered[:, 1] - ordered[:, 0]).mean(), rel=1e-12)
    assert from_blobs(n_clusters=1).potentials.mean_gap() == 0


def test_results_do_not_depend_on_the_number_of_threads():
    _, _, potentials, _ = from_blobs(n_samples=90_000, n_clusters=8, dtype=np.float32)
    prices = np.random.default_rng(1).normal(size=(2, 8))
    before = numba.get_num_threads()
    try:
        found = []
        for threads in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
            numba.set_num_threads(threads)
            found.append([*potentials.soft_moments(3.0, prices), *potentials.hard(3.0, prices)])
    finally:
        numba.set_num_threads(before)
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_far_points_leave_normal_numbers():
    # exp(-big) divided by a row sum must not become denormal, because arithmetic on denormal numbers is slow.
    _, _, potentials, _ = from_blobs(n_clusters=8, dtype=np.float32)
    moments = potentials.soft_moments(1e6, np.zeros((2, 8)))[3]
    assert np.isfinite(moments).all()
    np.testing.assert_allclose(
        moments.sum(axis=(1, 2)), np.bincount(potentials.layout.group, potentials.layout.count), rtol=1e-4
    )
