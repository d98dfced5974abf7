import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import ConvergenceWarning

from fairclust.base import Diverged
from fairclust.kernels.medoid import medoids
from fairclust.methods import VariationalFairKMeans, VariationalFairKMedians, VariationalFairNCut
from twins import counts_of, means_of, medoids_of, padded_fairness, vfc

WAYS = {VariationalFairKMeans: ("sqeuclidean", means_of), VariationalFairKMedians: ("euclidean", medoids_of)}


@pytest.mark.parametrize("n_groups, precision", [(1, "double"), (2, "double"), (3, "double"), (3, "single")])
@pytest.mark.parametrize("lam", [5.0, 60.0])
@pytest.mark.parametrize("cls", WAYS)
def test_replays_the_papers_update(grouped_blobs, cls, n_groups, lam, precision):
    (metric, update), (X, codes) = WAYS[cls], grouped_blobs(n_groups=n_groups, seed=n_groups)
    start = X[np.random.default_rng(1).choice(len(X), 4, replace=False)]
    labels, energies, inner, centers = vfc(
        lambda centers: cdist(X, centers, metric), lambda labels: update(X, labels, 4), start, codes, lam,
        target=np.bincount(codes) / len(codes),
    )  # fmt: skip
    model = cls(4, lam=lam, init=start, precision=precision, match_reference=True)
    model.fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers)
    if cls is VariationalFairKMedians:
        np.testing.assert_array_equal(X[model.medoid_indices_], centers)
    np.testing.assert_allclose([step["objective"] for step in model.history_], energies, rtol=1e-6)
    assert model.n_inner_iter_ == inner


def test_lam_zero_is_lloyd(grouped_blobs):
    X, codes = grouped_blobs()
    model = VariationalFairKMeans(4, lam=0, init=X[:4], tol=0.0).fit(X, sensitive_features=codes)
    lloyd = SklearnKMeans(4, init=X[:4], n_init=1, tol=0.0).fit(X)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)


@pytest.mark.parametrize("cls, lam", [(VariationalFairKMeans, 500), (VariationalFairNCut, 1)])
def test_a_target_other_than_the_shares_of_the_data(grouped_blobs, cls, lam):
    X, codes = grouped_blobs(n_samples=800, seed=2)
    labels = [
        cls(3, lam=lam, target=target, random_state=0).fit(X, sensitive_features=codes).labels_
        for target in ({"1": 0.4, "0": 0.6}, [0.6, 0.4], None)
    ]
    np.testing.assert_array_equal(labels[0], labels[1])
    assert (labels[0] != labels[2]).any()


def test_a_cluster_that_empties_restarts_from_fresh_seeds():
    # No point goes to the third centre, which is far off. After the restart, all three clusters have points.
    X = np.concatenate([np.random.default_rng(0).normal(m, 0.1, (50, 2)) for m in (0, 3, 6)])
    codes = np.tile([0, 1], 75)
    far = np.array([[0.0, 0.0], [5.0, 5.0], [1e3, 1e3]])
    model = VariationalFairKMeans(3, lam=1.0, init=far, random_state=0).fit(X, sensitive_features=codes)
    assert model.n_restarts_ >= 1
    assert len(np.unique(model.labels_)) == 3
    assert model.converged_


def test_distances_that_are_not_finite():
    X = np.array([[0.0], [1e30], [2e30], [3e30]])
    with pytest.raises(Diverged, match="potentials sum to inf"), np.errstate(all="ignore"):
        model = VariationalFairKMeans(2, lam=1.0, init=X[:2], match_reference=True)
        model.fit(X, sensitive_features=[0, 1, 0, 1])


def test_a_row_far_from_all_centres_collapses_the_papers_update(grouped_blobs):
    # The published program begins with exp(-a) without a shift, which is zero for squared distances above 745.13.
    X, codes = grouped_blobs(n_samples=200)
    model = VariationalFairKMeans(4, lam=9.0, init=X[:4], match_reference=True, max_iter=1)
    for least, n_used in ((745.0, 4), (745.3, 1)):
        X[-1] = X[:4].mean(axis=0) + np.eye(X.shape[1])[0] * 1e3
        nearest = X[cdist(X[-1:], X[:4]).argmin()]
        X[-1] = nearest + (X[-1] - nearest) * np.sqrt(least / ((X[-1] - nearest) ** 2).sum())
        assert cdist(X[-1:], X[:4], "sqeuclidean").min() == pytest.approx(least)
        with pytest.warns(ConvergenceWarning) as told:
            model.fit(X, sensitive_features=codes)
        assert len(np.unique(model.labels_)) == n_used
        assert ("zero for 1 rows" in str(told[0].message)) == (n_used == 1)
        np.testing.assert_array_equal(model.predict(X, codes), model.labels_)
    shifted = clone(model).set_params(match_reference=False, max_iter=100).fit(X, sensitive_features=codes)
    assert len(np.unique(shifted.labels_)) == 4


def energy(X, codes, model):
    """Compute the energy of labels at the best centres of their clusters."""
    k, labels = model.n_clusters, model.labels_
    if isinstance(model, VariationalFairKMedians):
        cost = medoids(X, labels, k, max_evaluations=len(X))[1].sum()
    else:
        cost = ((X - means_of(X, labels, k)[labels]) ** 2).sum()
    return cost + model.lam * padded_fairness(counts_of(labels, codes, k), model.target_)


@pytest.mark.parametrize(
    "cls, n_groups, lam, near",
    [
        (VariationalFairKMeans, 2, 60.0, 1e-6),
        (VariationalFairKMeans, 2, 600.0, 1e-6),
        (VariationalFairKMeans, 3, 60.0, 1e-6),
        (VariationalFairKMeans, 3, 600.0, 1e-6),
        # Medoids jump from row to row.
        (VariationalFairKMedians, 3, 200.0, 1e-2),
    ],
)
def test_accelerated_reaches_no_higher_energy_from_the_same_centers(grouped_blobs, cls, n_groups, lam, near):
    worse = []
    for seed in range(8):
        X, codes = grouped_blobs(n_samples=2000, n_groups=n_groups, seed=seed)
        model = cls(4, lam=lam, init=X[:4], precision="double", random_state=0)
        plain = clone(model).set_params(match_reference=True).fit(X, sensitive_features=codes)
        model.fit(X, sensitive_features=codes)
        assert (np.diff([step["objective"] for step in model.history_]) <= 0).all()
        assert model.n_inner_iter_ < plain.n_inner_iter_ / 2
        worse.append(energy(X, codes, model) / energy(X, codes, plain) - 1)
    # The two solvers can end in different minima.
    assert np.median(worse) <= 0
    assert (np.array(worse) <= near).mean() >= 0.75


def test_given_centers_that_never_move_need_not_be_rows(grouped_blobs):
    X, codes = grouped_blobs()
    model = VariationalFairKMedians(2, lam=5, init=[[0.0] * 3, [0.5] * 3], max_iter=1)
    with pytest.warns(UserWarning, match="stopped after 1 outer step"):
        model.fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(model.medoid_indices_, [-1, -1])
