import numpy as np
import pytest

from fairclust.solvers.alternation import Prototypes, mean_centers, overshot


class Rows:
    """The least that `mean_centers` needs."""

    def __init__(self, X, n_clusters):
        self.X, self.n_clusters = X, n_clusters

    def sums(self, labels):
        one = np.eye(self.n_clusters)[labels]
        return one.sum(axis=0), one.T @ self.X


def test_centres_beyond_the_means_keep_three_quarters_of_the_fall():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), rng.integers(3, size=60)
    points = Rows(X, 3)

    def cost(centers):
        return ((X - centers[labels]) ** 2).sum()

    start = Prototypes(X[:3])
    first = overshot(mean_centers(points, labels, start), start)
    np.testing.assert_allclose(first.centers, [X[labels == k].mean(axis=0) for k in range(3)])
    before = first
    labels = np.where(labels == 0, rng.integers(2, size=60), labels)
    means = mean_centers(points, labels, before)
    beyond = overshot(means, before)
    fall = cost(before.centers) - cost(means.centers)
    assert cost(before.centers) - cost(beyond.centers) == pytest.approx(0.75 * fall)
    # The third cluster has the same points as before.
    np.testing.assert_array_equal(beyond.centers[2], means.centers[2])
    np.testing.assert_allclose(
        beyond.centers[:2] - means.centers[:2], (means.centers - before.centers)[:2] / 2
    )
    at_rest = overshot(mean_centers(points, labels, beyond), beyond)
    np.testing.assert_array_equal(at_rest.centers, means.centers)
