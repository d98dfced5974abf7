import numpy as np
import pytest
from scipy.spatial.distance import cdist

from fairclust.kernels.medoid import medoids
from fairclust.methods import VariationalFairKMedians
from twins import vfc


def medoid_row(X, members):
    return members[cdist(X[members], X[members]).sum(axis=0).argmin()]


def medoids_of(X, labels, n_clusters):
    return X[[medoid_row(X, np.flatnonzero(labels == k)) for k in range(n_clusters)]]


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("lam", [5.0, 60.0])
def test_replays_the_papers_iteration(grouped_blobs, n_groups, lam):
    X, codes = grouped_blobs(n_groups=n_groups, seed=n_groups)
    start = X[np.random.default_rng(1).choice(len(X), 4, replace=False)]
    labels, energies, inner, centers = vfc(
        lambda centers: cdist(X, centers), lambda labels: medoids_of(X, labels, 4), start, codes, lam,
        target=np.bincount(codes) / len(codes),
    )  # fmt: skip
    model = VariationalFairKMedians(4, lam=lam, init=start, precision="double", match_reference=True)
    model.fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose([step["objective"] for step in model.history_], energies, rtol=1e-6)
    assert model.n_inner_iter_ == inner
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    np.testing.assert_array_equal(X[model.medoid_indices_], centers)
    assert model.medoid_gap_ == 0


def test_lam_zero_alternates_medoids(grouped_blobs):
    X, codes = grouped_blobs(n_samples=500)
    model = VariationalFairKMedians(4, lam=0, init=X[:4], tol=0.0).fit(X, sensitive_features=codes)
    centers = X[:4]
    while True:
        labels = cdist(X, centers).argmin(axis=1)
        new = medoids_of(X, labels, 4)
        if (new == centers).all():
            break
        centers = new
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_array_equal(model.cluster_centers_, centers)


def test_bounded_search_states_its_error(grouped_blobs, monkeypatch):
    X, codes = grouped_blobs(n_samples=3000, n_features=15, seed=4)
    exact = VariationalFairKMedians(3, lam=300, init=X[:3]).fit(X, sensitive_features=codes)
    monkeypatch.setattr("fairclust.solvers.alternation._EXACT_SIZE", 10)
    monkeypatch.setattr("fairclust.solvers.alternation._MAX_EVALUATIONS", 1)
    rough = VariationalFairKMedians(3, lam=300, init=X[:3]).fit(X, sensitive_features=codes)
    assert exact.medoid_gap_ == 0
    assert 0 < rough.medoid_gap_ < 0.05
    cost = np.linalg.norm(X - rough.cluster_centers_[rough.labels_], axis=1).sum()
    assert cost <= sum(own.cost for own in medoids(X, rough.labels_, 3)) * (1 + rough.medoid_gap_)


def test_given_centers_that_never_move_need_not_be_rows(grouped_blobs):
    X, codes = grouped_blobs()
    model = VariationalFairKMedians(2, lam=5, init=[[0.0] * 3, [0.5] * 3], max_iter=1)
    with pytest.warns(UserWarning, match="stopped after 1 outer steps"):
        model.fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(model.medoid_indices_, [-1, -1])
