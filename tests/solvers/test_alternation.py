import numpy as np
import pytest

from fairclust.solvers.alternation import Prototypes, overshot
from twins import means_of


def test_centres_beyond_the_means_keep_three_quarters_of_the_fall():
    rng = np.random.default_rng(0)
    X, labels = rng.normal(size=(60, 2)), rng.integers(3, size=60)

    def cost(centers):
        return ((X - centers[labels]) ** 2).sum()

    before = overshot(Prototypes(means_of(X, labels, 3)), Prototypes(X[:3]))
    labels = np.where(labels == 0, rng.integers(2, size=60), labels)
    means = means_of(X, labels, 3)
    beyond = overshot(Prototypes(means), before)
    fall = cost(before.centers) - cost(means)
    assert cost(before.centers) - cost(beyond.centers) == pytest.approx(0.75 * fall)
    np.testing.assert_allclose(beyond.centers - means, (means - before.centers) / 2)
    # Centres whose clusters have not changed return to the means.
    np.testing.assert_array_equal(overshot(Prototypes(means), beyond).centers, means)
