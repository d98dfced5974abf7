import numpy as np
import pytest

from fairclust.methods import BalancedFairKMeans
from fairclust.metrics import awd, contingency, fairness_ratio, sse
from twins import bfkm_objective, bfkm_sweep, means_of


def fit(X, codes, n_clusters=4, **params):
    return BalancedFairKMeans(n_clusters, random_state=0, **params).fit(X, sensitive_features=codes)


@pytest.mark.parametrize("n_groups", [1, 2, 3])
def test_objective_never_rises_and_is_that_of_the_labels(grouped_blobs, n_groups):
    X, codes = grouped_blobs(n_groups=n_groups)
    model = fit(X, codes, rho=3000.0, lam=2e4, tol=0)
    objectives = [record["objective"] for record in model.history_]
    assert len(objectives) == model.n_iter_ > 3
    assert (np.diff(objectives) <= 1e-9 * objectives[0]).all()
    assert model.converged_
    assert model.history_[-1]["moved"] == 0
    np.testing.assert_allclose(model.cluster_centers_, means_of(X, model.labels_, 4))
    whole = bfkm_objective(X, codes, model.cluster_centers_, model.labels_, 3000.0, 2e4)
    assert model.objective_ == objectives[-1] == pytest.approx(whole)
    assert model.history_[-1]["clustering"] == pytest.approx(sse(X, model.labels_))


@pytest.mark.parametrize("match_reference", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2, 3, 5])
@pytest.mark.parametrize("rho, lam", [(0.0, 0.0), (300.0, 0.0), (0.0, 2000.0), (1e3, 1e3)])
def test_a_sweep_agrees_with_the_transcription(grouped_blobs, n_groups, rho, lam, match_reference):
    for seed in range(3):
        X, codes = grouped_blobs(60, n_groups=n_groups, seed=seed)
        before = np.random.RandomState(0).permutation(np.arange(60) % 4)
        expected = bfkm_sweep(X, codes, means_of(X, before, 4), before, rho, lam, match_reference)
        model = fit(X, codes, rho=rho, lam=lam, max_iter=1, match_reference=match_reference)
        np.testing.assert_array_equal(model.labels_, expected)
        assert model.history_[0]["moved"] == (expected != before).sum() > 0
        assert model.history_[0]["clustering"] == pytest.approx(sse(X, expected))


def test_the_best_start_is_kept(grouped_blobs):
    X, codes = grouped_blobs()
    rng, model = np.random.RandomState(3), BalancedFairKMeans(6, rho=100.0)
    one = [model.set_params(random_state=rng).fit(X, sensitive_features=codes).objective_ for _ in range(5)]
    model.set_params(n_init=5, random_state=np.random.RandomState(3)).fit(X, sensitive_features=codes)
    assert model.objective_ == min(one) < max(one)


@pytest.mark.mirror
@pytest.mark.parametrize(
    "name, rho, published, tolerance",
    [
        # The start hardly matters here, and all digits agree with the paper.
        ("elliptical", 500, (343.9640, 0.8835, 0.0480), 5e-5),
        # This is the only published value of rho.
        ("ds577", 1800, (518.1536, 0.8019, 0.0242), 0.03),
    ],
)
def test_published_numbers_of_frkm(real, name, rho, published, tolerance):
    data = real(name)
    X, codes = data.X, data.groups
    model = fit(X, codes, data.card["n_clusters"], rho=rho, n_init=10, match_reference=True)
    table = contingency(model.labels_, codes)
    assert sse(X, model.labels_) == pytest.approx(published[0], rel=tolerance)
    assert fairness_ratio(table) == pytest.approx(published[1], abs=tolerance)
    assert awd(table) == pytest.approx(published[2], abs=tolerance)
