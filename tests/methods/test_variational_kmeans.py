import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import ConvergenceWarning

from fairclust import methods
from fairclust.base import Diverged
from fairclust.methods import VariationalFairKMeans
from fairclust.metrics import contingency
from twins import counts_of, means_of, padded_fairness, vfc


@pytest.mark.parametrize(("n_groups", "lipschitz"), [(1, 2.0), (2, 1.0), (3, 2.0)])
@pytest.mark.parametrize("lam", [5.0, 200.0])
def test_replays_the_papers_update(grouped_blobs, n_groups, lam, lipschitz):
    X, codes = grouped_blobs(n_groups=n_groups, seed=n_groups)
    start = X[np.random.default_rng(1).choice(len(X), 4, replace=False)]
    labels, energies, inner, _ = vfc(
        lambda centers: cdist(X, centers, "sqeuclidean"), lambda labels: means_of(X, labels, 4), start, codes, lam,
        target=np.bincount(codes) / len(codes), lipschitz=lipschitz,
    )  # fmt: skip
    model = VariationalFairKMeans(
        4, lam=lam, lipschitz=lipschitz, init=start, precision="double", match_reference=True
    ).fit(X, sensitive_features=codes)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose([step["objective"] for step in model.history_], energies, rtol=1e-6)
    assert model.n_inner_iter_ == inner
    assert model.n_energy_rises_ == (np.diff(energies) > 0).sum()


def test_single_precision_follows_double(grouped_blobs):
    X, codes = grouped_blobs(n_samples=3000, seed=4)
    single, double = (
        VariationalFairKMeans(4, lam=400, init=X[:4], precision=p, match_reference=True).fit(
            X, sensitive_features=codes
        )
        for p in ("single", "double")
    )
    assert (single.labels_ == double.labels_).mean() > 0.999
    assert single.history_[-1]["objective"] == pytest.approx(double.history_[-1]["objective"], rel=1e-4)


def test_lam_zero_is_lloyd(grouped_blobs):
    X, codes = grouped_blobs()
    model = VariationalFairKMeans(4, lam=0, init=X[:4], tol=0.0).fit(X, sensitive_features=codes)
    lloyd = SklearnKMeans(4, init=X[:4], n_init=1, tol=0.0).fit(X)
    np.testing.assert_array_equal(model.labels_, lloyd.labels_)


@pytest.mark.parametrize("cls, lam", [(VariationalFairKMeans, 500), (methods.VariationalFairNCut, 1)])
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


def test_diverged_names_the_step():
    X = np.array([[0.0], [1e30], [2e30], [3e30]])
    with pytest.raises(Diverged, match="inner updates"), np.errstate(all="ignore"):
        model = VariationalFairKMeans(2, lam=1.0, init=X[:2], match_reference=True)
        model.fit(X, sensitive_features=[0, 1, 0, 1])


def energy(X, codes, model):
    """Compute the energy of labels at the means of their clusters."""
    k = model.n_clusters
    cost = ((X - means_of(X, model.labels_, k)[model.labels_]) ** 2).sum()
    return cost + model.lam * padded_fairness(counts_of(model.labels_, codes, k), model.target_)


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("lam", [60.0, 600.0])
def test_accelerated_reaches_no_higher_energy_from_the_same_centers(grouped_blobs, n_groups, lam):
    worse, restarts = [], 0
    for seed in range(10):
        X, codes = grouped_blobs(n_samples=3000, n_groups=n_groups, seed=seed)
        fits = [
            VariationalFairKMeans(
                4, lam=lam, init=X[:4], match_reference=r, precision="double", random_state=0
            )
            for r in (False, True)
        ]
        fast, plain = (energy(X, codes, fit.fit(X, sensitive_features=codes)) for fit in fits)
        restarts += fits[1].n_restarts_
        worse.append((fast - plain) / plain)
    assert restarts == 0
    assert (np.array(worse) <= 1e-6).mean() >= 0.8
    assert np.median(worse) <= 0


def test_accelerated_energies_are_those_of_the_labels_and_never_rise(grouped_blobs):
    X, codes = grouped_blobs(n_samples=3000, n_groups=3, seed=1)
    model = VariationalFairKMeans(5, lam=600, random_state=0, precision="double")
    model.fit(X, sensitive_features=codes)
    energies = np.array([step["objective"] for step in model.history_])
    assert len(energies) > 2
    assert (np.diff(energies) <= 0).all()
    assert model.n_energy_rises_ == 0
    assert model.converged_
    assert model.n_inner_iter_ >= sum(step["inner_iter"] for step in model.history_)
    distance = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.history_[-1]["clustering"] == pytest.approx(distance)
    # The means of the labels cost at most as much as the centres for which the labels were found.
    assert energy(X, codes, model) <= energies[-1] * (1 + 1e-12)


@given(
    seed=st.integers(0, 10_000),
    n_samples=st.integers(3, 60),
    n_groups=st.integers(1, 4),
    n_clusters=st.integers(1, 3),
    lam=st.sampled_from([0.0, 1e-6, 1.0, 50.0, 1e4]),
    kind=st.sampled_from(["normal", "few values", "equal", "far", "tiny"]),
    method=st.sampled_from(["VariationalFairKMeans", "VariationalFairKMedians"]),
)
@settings(max_examples=120, deadline=None)
def test_odd_inputs(seed, n_samples, n_groups, n_clusters, lam, kind, method):
    rng = np.random.default_rng(seed)
    X = {
        "normal": lambda: rng.normal(size=(n_samples, 2)),
        "few values": lambda: rng.integers(0, 2, (n_samples, 2)).astype(float),
        "equal": lambda: np.ones((n_samples, 2)),
        "far": lambda: rng.normal(size=(n_samples, 2)) + 1e6,
        "tiny": lambda: rng.normal(size=(n_samples, 2)) * 1e-6,
    }[kind]()
    codes = rng.integers(0, n_groups, n_samples)
    model = getattr(methods, method)(n_clusters, lam=lam, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        labels = model.fit_predict(X, sensitive_features=codes)
    assert set(np.unique(labels)) <= set(range(n_clusters))
    assert (np.diff([step["objective"] for step in model.history_]) <= 0).all()
    np.testing.assert_array_equal(model.predict(X, codes), labels)


@pytest.mark.parametrize("cls", [VariationalFairKMeans, methods.VariationalFairKMedians])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("lam", [1.0, 1e6])
def test_extreme_weights_keep_all_clusters(grouped_blobs, cls, lam):
    X, codes = grouped_blobs(n_samples=900, n_groups=2, seed=3)
    model = cls(6, lam=lam, random_state=0).fit(X, sensitive_features=codes)
    assert len(np.unique(model.labels_)) == 6
    if lam > 1:
        table = contingency(model.labels_, codes, n_clusters=6)
        shares = table / table.sum(axis=0)
        assert np.abs(shares - model.target_[:, None]).max() < 0.05
