"""Plain k-means steps in one pass over the points, and points for equal rows."""

import numpy as np
import pytest

from fairclust.kernels.points import NearestPoints, TiledPoints


@pytest.mark.parametrize("n_features, most_tiles", [(1, 128), (4, 2), (7, 128)])
def test_plain_steps_in_one_pass_agree_with_those_that_store_distances(monkeypatch, n_features, most_tiles):
    monkeypatch.setattr("fairclust.kernels.assignment._LEAST_TILES", most_tiles)
    monkeypatch.setattr("fairclust.kernels.assignment._PRODUCT_BYTES", 1)
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


def test_equal_rows_of_a_group_are_one_point():
    rng = np.random.default_rng(0)
    X, groups = rng.integers(3, size=(900, 3)).astype(float), rng.integers(2, size=900).astype(np.int32)
    points = TiledPoints.pack(X, groups, 2, 4, dtype=np.float64)
    joined, mean = points.of_distinct_rows()
    assert joined.n_samples == len(np.unique(np.c_[X, groups], axis=0)) == pytest.approx(900 / mean)
    np.testing.assert_allclose(joined.group_sizes * mean, points.group_sizes)
    prices, centers = rng.normal(size=(2, 4)), rng.normal(size=(4, 3))
    for one in (joined, points):
        one.measure(centers)
    for found, expected in zip(
        joined.soft_moments(2.0, prices), points.soft_moments(2.0, prices), strict=True
    ):
        np.testing.assert_allclose(mean * found, expected)
    assert mean * joined.priced(prices)[3] == pytest.approx(points.priced(prices)[3])


def test_few_equal_rows_stay_as_they_are():
    X = np.random.default_rng(0).normal(size=(900, 3))
    assert TiledPoints.pack(X, np.zeros(900, np.int32), 1, 4).of_distinct_rows() is None
