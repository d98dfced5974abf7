"""Fair k-center against all centres and all assignments of a few points."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fairclust.methods import FairKCenter
from fairclust.methods.fair_k_center import least_radius_assignment
from twins import cheapest_shares, counts_of, share_rows


@pytest.mark.parametrize("seed", range(5))
def test_plain_radius_is_at_most_twice_the_best(seed):
    X = np.random.default_rng(seed).normal(size=(14, 2))
    model = FairKCenter(3, random_state=seed).fit(X, sensitive_features=np.arange(14) % 2)
    D = cdist(X, X)
    best = min(D[:, list(rows)].min(axis=1).max() for rows in combinations(range(14), 3))
    assert best <= model.plain_radius_ <= 2 * best
    np.testing.assert_array_equal(model.cluster_centers_, X[model.center_indices_])
    assert model.plain_radius_ == pytest.approx(D[:, model.center_indices_].min(axis=1).max())


@pytest.mark.parametrize("n_groups, tolerance", [(2, 0.2), (2, 0.0), (3, 0.5)])
@pytest.mark.parametrize("seed", range(3))
def test_assignment_has_the_radius_of_the_full_program(seed, n_groups, tolerance):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_groups), rng.integers(n_groups, size=30 - n_groups)])
    distances = cdist(rng.normal(size=(30, 2)) + codes[:, None], rng.normal(size=(3, 2)))
    shares = np.bincount(codes) / 30
    lower, upper = shares * (1 - tolerance), shares / (1 - tolerance)
    labels, radius = least_radius_assignment(distances, codes, lower=lower, upper=upper)
    assert radius == distances[np.arange(30), labels].max()
    rows = share_rows(np.eye(n_groups)[codes], lower, upper)
    fair = (r for r in np.unique(distances) if cheapest_shares((distances > r) * 1.0, rows, 0) < 1e-6)
    assert radius <= next(fair) * (1 + 1e-12)
    table = counts_of(labels, codes, 3)
    sizes = table.sum(axis=0)
    assert (table > np.outer(lower, sizes) - 2).all()
    assert (table < np.outer(upper, sizes) + 2).all()


def test_more_than_forty_clusters():
    """The sets of clusters that points can reach do not fit into one key of 63 bits."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(300, 2)), np.arange(300) % 2
    model = FairKCenter(70, tolerance=0.5, random_state=0).fit(X, sensitive_features=codes)
    away = np.linalg.norm(X - model.cluster_centers_[model.labels_], axis=1)
    assert away.max() == pytest.approx(model.radius_)
    assert model.violation_ < 2
    # The first centres count as much as the last ones.
    distances = np.full((2, 100), 9.0)
    distances[[0, 1], [0, 1]] = 0
    labels, radius = least_radius_assignment(distances, np.zeros(2, int), lower=np.zeros(1), upper=np.ones(1))
    assert radius == 0 and labels.tolist() == [0, 1]
