"""Points with integer weights give the same results as points that are repeated as many times."""

import numpy as np
import pytest

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.points import TiledPoints
from fairclust.kernels.tiles import make_layout
from toys import make_grouped_blobs


@pytest.fixture(params=[np.float32, np.float64])
def both(request):
    """Return two potentials of the same points: with integer weights scaled to mean 1, and with repeated rows."""
    rng = np.random.default_rng(0)
    times, codes = rng.integers(1, 4, 700), rng.integers(3, size=700)
    costs = rng.random((700, 5))
    weighted = Potentials.empty(make_layout(codes, 3), 3, 5, request.param)
    weighted.weigh(times / times.mean())
    weighted.set_costs(costs)
    rows = np.repeat(np.arange(700), times)
    plain = Potentials.empty(make_layout(codes[rows], 3), 3, 5, request.param)
    plain.set_costs(costs[rows])
    return weighted, plain, times.mean(), rows


def test_soft_rows_and_their_moments(both):
    weighted, plain, mean, _ = both
    offset = np.random.default_rng(1).normal(size=(3, 5))
    for one, other in zip(weighted.soft_moments(4.0, offset), plain.soft_moments(4.0, offset), strict=True):
        np.testing.assert_allclose(np.asarray(one) * mean, other, rtol=2e-5)
    np.testing.assert_allclose(weighted.group_sizes * mean, plain.group_sizes)
    assert weighted.row_min_sum * mean == pytest.approx(plain.row_min_sum, rel=1e-6)


def test_sums_of_points():
    X, codes = make_grouped_blobs(n_samples=300)
    times = np.random.default_rng(0).integers(1, 4, 300)
    labels = np.arange(300, dtype=np.int32) % 4
    weighted = TiledPoints.pack(X, codes, 2, 4, weights=times / times.mean())
    rows = np.repeat(np.arange(300), times)
    plain = TiledPoints.pack(X[rows], codes[rows], 2, 4)
    for one, other in zip(weighted.sums(labels), plain.sums(labels[rows]), strict=True):
        np.testing.assert_allclose(one * times.mean(), other, rtol=1e-9, atol=1e-9)
