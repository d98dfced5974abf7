"""Methods that add a penalty for each sensitive column, and methods that take only one column."""

import numpy as np
import pytest

from fairclust import (
    BalancedFairKMeans,
    FairletTreeClustering,
    FairMixture,
    KMeans,
    NotSupported,
    VariationalFairKMeans,
    VariationalFairNCut,
)
from fairclust.metrics import contingency, delta, sse
from toys import two_columns
from twins import padded_fairness

K = 3


@pytest.fixture
def people():
    return two_columns(600)


def tables(labels, columns):
    return [contingency(labels, np.unique(columns[name], return_inverse=True)[1], K) for name in columns]


def unfairness(labels, columns):
    """Sum over columns of the cross-entropy of equation 4."""
    return sum(padded_fairness(n, n.sum(axis=1) / n.sum(), 0) for n in tables(labels, columns))


def gaps(labels, columns):
    return sum(
        float(((n / n.sum(axis=1, keepdims=True) - n.sum(axis=0) / n.sum()) ** 2).sum())
        for n in tables(labels, columns)
    )


def test_the_variational_energy_has_the_penalty_of_every_column(people):
    X, columns = people
    model = VariationalFairKMeans(K, lam=200.0, random_state=0).fit(X, sensitive_features=columns)
    distances = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    energy = distances + 200 * unfairness(model.labels_, columns)
    assert model.history_[-1]["objective"] == pytest.approx(energy, rel=1e-4)
    assert set(model.target_) == {"sex", "race"}
    for lone in columns:
        other = VariationalFairKMeans(K, lam=200.0, random_state=0).fit(X, sensitive_features=columns[lone])
        assert unfairness(model.labels_, columns) < unfairness(other.labels_, columns)


def test_predict_repeats_the_fit_and_adds_up_prices_of_new_combinations(people):
    X, columns = people
    seen = ~((columns["sex"] == "f") & (columns["race"] == "c")).to_numpy()
    model = VariationalFairKMeans(K, lam=200.0, random_state=0).fit(X[seen], sensitive_features=columns[seen])
    np.testing.assert_array_equal(model.predict(X[seen], columns[seen]), model.labels_)
    n_sex, n_race = tables(model.labels_, columns[seen])
    slopes = [1 / n.sum(axis=0) - (n.sum(axis=1) / n.sum())[:, None] / n for n in (n_sex, n_race)]
    new = 200 * (slopes[0][0] + slopes[1][2])
    reduced = ((X[~seen][:, None] - model.cluster_centers_) ** 2).sum(axis=2) + new
    assert (model.predict(X[~seen], columns[~seen]) == reduced.argmin(axis=1)).mean() > 0.97


def test_sweeps_add_the_gaps_of_every_column(people):
    X, columns = people
    model = BalancedFairKMeans(K, rho=1e4, random_state=0).fit(X, sensitive_features=columns)
    assert model.objective_ == pytest.approx(sse(X, model.labels_) + 1e4 * gaps(model.labels_, columns))
    objective = [record["objective"] for record in model.history_]
    assert (np.diff(objective) <= 1e-9 * objective[0]).all()
    for lone in columns:
        other = BalancedFairKMeans(K, rho=1e4, random_state=0).fit(X, sensitive_features=columns[lone])
        assert gaps(model.labels_, columns) < gaps(other.labels_, columns)


def test_mixtures_add_the_deltas_of_every_column(people):
    X, columns = people
    fits = [
        FairMixture(K, lam=lam, max_iter=60, random_state=0).fit(X, sensitive_features=columns)
        for lam in (0, 20)
    ]
    plain, fair = (sum(delta(n) for n in tables(model.labels_, columns)) for model in fits)
    assert fits[1].hard_delta_ == pytest.approx(fair)
    assert fair < plain / 2


@pytest.mark.parametrize("seed", [8, 9, 11])
def test_calibration_never_raises_the_sum_of_the_deltas(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2))
    a = X[:, 0] + rng.normal(size=300) / 2 > 0
    columns = {"a": a, "b": np.where(a, X[:, 1] + rng.normal(size=300) > 0, rng.random(300) < 0.05)}
    plain, fair = (
        FairMixture(2, lam=0, calibrate=calibrate, random_state=0).fit(X, sensitive_features=columns)
        for calibrate in (False, True)
    )
    assert fair.hard_delta_ <= plain.hard_delta_


def test_other_methods_refuse_several_columns_by_name(people):
    X, columns = people
    for cls in (KMeans, FairletTreeClustering, VariationalFairNCut):
        for given in (columns, columns.to_dict("list"), columns.to_numpy(dtype=str)):
            with pytest.raises(NotSupported, match=f"{cls.__name__} takes one sensitive column, found 2"):
                cls(K).fit(X, sensitive_features=given)
    reference = VariationalFairKMeans(K, match_reference=True)
    with pytest.raises(NotSupported, match="match_reference takes one sensitive column"):
        reference.fit(X, sensitive_features=columns)
    with pytest.raises(ValueError, match="target must be a mapping of sensitive column to shares"):
        VariationalFairKMeans(K, target=np.array([0.5, 0.5])).fit(X, sensitive_features=columns)
