"""Solvers see only sums over points, so points in two parts give the same results as in one part."""

import numpy as np
import pytest

from fairclust.kernels.bound import bound_iteration
from fairclust.kernels.points import NearestPoints, TiledPoints
from fairclust.methods.price.criteria import share_bounds
from fairclust.methods.price.fair_assignment import round_prices, solve
from fairclust.methods.price.steps import price_step
from fairclust.methods.variational.penalty import minimize_penalty
from fairclust.solvers.alternation import Alternation, Prototypes, alternate, mean_centers, plain_step
from toys import make_grouped_blobs


class InTwoPlaces:
    """The interface of `Points` for points in two parts. Each result is the sum or the union of those of the parts."""

    rounding, weights = 1e-14, None

    def __init__(self, X, codes, n_groups, n_clusters):
        self.cut, self.n_groups, self.n_clusters, self.n_samples = len(X) // 3, n_groups, n_clusters, len(X)
        shift = X.mean(axis=0)
        self.parts = [
            TiledPoints.pack(X[rows], codes[rows], n_groups, n_clusters, shift=shift, dtype=np.float64)
            for rows in (slice(self.cut), slice(self.cut, None))
        ]

    @property
    def row_min_sum(self):
        return sum(part.row_min_sum for part in self.parts)

    @property
    def group_sizes(self):
        return sum(part.group_sizes for part in self.parts)

    def _mean(self, name):
        return sum(getattr(part, name)() * part.n_samples for part in self.parts) / self.n_samples

    def mean_gap(self):
        return self._mean("mean_gap")

    def mean_excess(self):
        return self._mean("mean_excess")

    def measure(self, centers):
        for part in self.parts:
            part.measure(centers)

    def soft(self, scale, offset):
        return tuple(map(sum, zip(*(part.soft(scale, offset) for part in self.parts), strict=True)))

    def soft_moments(self, scale, offset):
        return tuple(map(sum, zip(*(part.soft_moments(scale, offset) for part in self.parts), strict=True)))

    def hard(self, scale, offset):
        labels, *sums = zip(*(part.hard(scale, offset) for part in self.parts), strict=True)
        return np.concatenate(labels), *map(sum, sums)

    def priced(self, prices):
        labels, *sums = zip(*(part.priced(prices) for part in self.parts), strict=True)
        return np.concatenate(labels), *map(sum, sums)

    def sums(self, labels):
        found = (part.sums(own) for part, own in zip(self.parts, np.split(labels, [self.cut]), strict=True))
        return tuple(map(sum, zip(*found, strict=True)))

    def movable(self, prices, labels, units):
        first, second = (
            {j: (rows, excess) for j, rows, excess in part.movable(prices, own, units)}
            for part, own in zip(self.parts, np.split(labels, [self.cut]), strict=True)
        )
        for j in first:
            rows = np.concatenate([first[j][0], second[j][0] + self.cut])
            yield j, rows, np.concatenate([first[j][1], second[j][1]])


@pytest.fixture
def both():
    X, codes = make_grouped_blobs(n_samples=1500, n_groups=3, seed=2)
    one = TiledPoints.pack(X, codes, 3, 4, dtype=np.float64)
    two = InTwoPlaces(X, codes, 3, 4)
    for points in (one, two):
        points.measure(X[:4])
    return one, two, X[:4], np.bincount(codes) / len(codes)


def test_bound_iteration(both):
    one, two, _, target = both
    options = {"lam": 300.0, "lipschitz": 2.0, "target": target, "max_iter": 1000, "tol": 1e-5}
    a, b = bound_iteration(one, **options), bound_iteration(two, **options)
    assert a.n_iter == b.n_iter
    np.testing.assert_allclose(a.mass, b.mass, rtol=1e-9)


def test_newton_on_the_energy(both):
    one, two, _, target = both
    a, b = (minimize_penalty(points, lam=300.0, target=target) for points in (one, two))
    assert a.energy == pytest.approx(b.energy, rel=1e-9)
    np.testing.assert_array_equal(a.labels, b.labels)


def test_bounded_tables_and_their_rounding(both):
    one, two, _, shares = both
    criterion = share_bounds(0.9 * shares, shares / 0.9)
    found = []
    for points in (one, two):
        solved = solve(points, criterion)
        found.append(round_prices(points, criterion, solved))
    np.testing.assert_array_equal(found[0][2], found[1][2])
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-9)


@pytest.mark.parametrize("kind", ["plain", "prices"])
def test_alternation(both, kind):
    one, two, centers, shares = both
    criterion = share_bounds(0.9 * shares, shares / 0.9)

    def assign(points, last):
        return plain_step(points, last) if kind == "plain" else price_step(points, last, criterion=criterion)

    def judge(step, before, now):
        return "at rest" if before and before.objective - now.objective < 1e-6 * now.objective else ""

    whole = Alternation(assign, mean_centers, judge)
    runs = [alternate(whole, points, Prototypes(centers), max_iter=50) for points in (one, two)]
    assert runs[0].verdict == runs[1].verdict == "at rest"
    assert runs[0].last.objective == pytest.approx(runs[1].last.objective, rel=1e-7)
    np.testing.assert_allclose(runs[0].prototypes.centers, runs[1].prototypes.centers, atol=1e-6)


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
