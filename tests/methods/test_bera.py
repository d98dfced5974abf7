import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import cluster

from fairclust import fair_assignment
from fairclust.methods import BeraFairKMeans
from twins import cheapest_shares, share_rows


def test_attributes_agree(grouped_blobs):
    X, codes = grouped_blobs()
    model = BeraFairKMeans(4, random_state=0).fit(X, sensitive_features=codes)
    plain = cluster.KMeans(4, n_init=10, random_state=0).fit(X)
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_)
    assert plain.inertia_ < model.cost_ <= model.lp_cost_ * (1 + 1e-9)
    assert model.cost_ == pytest.approx(model.lp_cost_, rel=0.01)
    assert model.price_of_fairness_ == pytest.approx(model.cost_ / plain.inertia_)
    costs, fairness = ([record[name] for record in model.history_] for name in ("clustering", "fairness"))
    assert costs == [pytest.approx(plain.inertia_), model.lp_cost_, model.cost_]
    assert fairness[0] > 10
    assert fairness[1:] == [0, model.violation_]
    assert not hasattr(model, "predict")


def test_price_of_fairness_if_k_means_costs_nothing():
    equal = BeraFairKMeans(2, random_state=0).fit(np.ones((8, 1)), sensitive_features=np.arange(8) % 2)
    assert equal.price_of_fairness_ == 1
    # Each group has its own place.
    X = np.repeat([[0.0], [1.0]], 4, axis=0)
    apart = BeraFairKMeans(2, random_state=0).fit(X, sensitive_features=X[:, 0])
    assert apart.cost_ > 0
    assert apart.price_of_fairness_ == np.inf


@given(
    st.integers(0, 2**32 - 1),
    st.integers(8, 60),
    st.integers(1, 5),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9]),
)
@settings(max_examples=60)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_program_against_highs_and_the_rounding_against_its_bound(
    seed, n, n_clusters, n_groups, tolerance
):
    rng = np.random.default_rng(seed)
    inside = np.eye(n_groups)[rng.permutation(np.arange(n) % n_groups)].astype(bool)
    # Rounded numbers tie, and groups that lie apart make the bounds expensive.
    X = np.round(rng.normal(size=(n, 2)) + inside @ rng.normal(size=(n_groups, 2)), rng.integers(3))
    model = BeraFairKMeans(n_clusters, tolerance=tolerance, n_init=1, random_state=0)
    model.fit(X, sensitive_features=inside.argmax(axis=1))
    distances = cdist(X, model.cluster_centers_, "sqeuclidean")
    shares, close = inside.mean(axis=0), {"rel": 1e-6, "abs": 1e-6 * distances.max()}
    lower, upper = (1 - tolerance) * shares, np.minimum(shares / (1 - tolerance), 1)
    best = cheapest_shares(distances, share_rows(inside, lower, upper), 0)
    assert model.lp_cost_ == pytest.approx(best, **close)
    assert model.cost_ == pytest.approx(distances[np.arange(n), model.labels_].sum())
    assert model.cost_ <= model.lp_cost_ * (1 + 1e-6) + close["abs"]
    table, sizes = (
        inside.T @ np.eye(n_clusters)[model.labels_],
        np.bincount(model.labels_, minlength=n_clusters),
    )
    off = np.maximum(np.outer(lower, sizes) - table, table - np.outer(upper, sizes))
    assert model.violation_ == pytest.approx(off.max(initial=0), abs=1e-9)
    # The published bound is 4 D + 3, where D is the largest number of groups that a row is in, which is 1.
    assert off.max() < 2


def test_prices_from_a_sample_of_many_rows_change_nothing(grouped_blobs):
    X, codes = grouped_blobs(n_samples=9000, n_groups=3)
    model = BeraFairKMeans(4, n_init=1, random_state=0).fit(X, sensitive_features=codes)
    distances = cdist(X, model.cluster_centers_, "sqeuclidean")
    least = fair_assignment(distances, codes, tolerance=0.2).lower_bound
    assert model.lp_cost_ == pytest.approx(least, rel=1e-5)
