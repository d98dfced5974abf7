"""Several columns, sizes, weights and budgets in the price estimators."""

import pickle

import numpy as np
import pytest

from fairclust import KMeans, NotSupported, PriceFairKMeans, PriceFairKMedians
from fairclust.metrics import fairness_ratio
from toys import two_columns


@pytest.fixture
def people():
    return two_columns(1200)


@pytest.mark.parametrize("cls", [PriceFairKMeans, PriceFairKMedians])
def test_each_column_keeps_its_bound(cls, people):
    X, columns = people
    model = cls(4, tolerance={"sex": 0.05, "race": 0.2}, n_init=2, random_state=0)
    labels = model.fit_predict(X, sensitive_features=columns)
    assert model.violation_ == pytest.approx(0, abs=1e-9)
    assert fairness_ratio(labels, sensitive_features=columns["sex"]) >= 0.95 - 1e-9
    assert fairness_ratio(labels, sensitive_features=columns["race"]) >= 0.8 - 1e-9
    assert model.groups_[0] == "f & a" and model.offset_.shape == (len(model.groups_), 4)
    assert 0 <= model.gap_ < 0.01
    crossed = cls(4, tolerance=0.2, crossed=True, n_init=2, random_state=0).fit(X, sensitive_features=columns)
    assert fairness_ratio(crossed.labels_, sensitive_features=columns["sex"] + columns["race"]) >= 0.8 - 1e-9


def test_balanced_k_means_needs_no_groups(people):
    X, _ = people
    model = PriceFairKMeans(4, size_max=1.0, n_init=2, random_state=0).fit(X)
    assert np.bincount(model.labels_).tolist() == [300] * 4
    assert (model.predict(X) != model.labels_).sum() == model.n_rounded_
    assert model.groups_.tolist() == ["all rows"]


def test_sizes_of_single_clusters_are_kept_from_many_starts(people):
    X, _ = people
    least, most = [500, 0, 0], [600, 400, 300]
    model = PriceFairKMeans(3, size_min=least, size_max=most, init="k-means++", random_state=0).fit(X)
    sizes = np.bincount(model.labels_)
    assert (least <= sizes).all() and (sizes <= most).all()


@pytest.mark.parametrize("n_clusters, size_max", [(2, 2.0), (4, 2000)])
def test_a_largest_size_may_be_more_than_any_cluster_can_have(people, n_clusters, size_max):
    X, _ = people
    bounded, free = (
        PriceFairKMeans(n_clusters, random_state=0, size_min=0, size_max=size).fit(X)
        for size in (size_max, None)
    )
    assert bounded.cost_ == pytest.approx(free.cost_, rel=1e-3)


def test_predict_sums_the_prices_of_new_combinations(people):
    X, columns = people
    seen = ~((columns["sex"] == "f") & (columns["race"] == "c"))
    model = PriceFairKMeans(4, tolerance=0.1, n_init=1, random_state=0, precision="double")
    model.fit(X[seen], sensitive_features=columns[seen])
    model = pickle.loads(pickle.dumps(model))
    assert "f & c" not in model.groups_
    labels = model.predict(X[seen], columns[seen])
    assert (labels != model.labels_).sum() == model.n_rounded_
    prices = dict(zip(model.groups_, model.offset_, strict=True))
    new = prices["m & c"] + prices["f & a"] - prices["m & a"]
    rows = X[~seen]
    reduced = ((rows[:, None] - model.cluster_centers_) ** 2).sum(axis=2) + new
    np.testing.assert_array_equal(model.predict(rows, columns[~seen]), reduced.argmin(axis=1))
    with pytest.raises(ValueError, match=r"\['race'\] has groups not seen in fit: 'd'"):
        model.predict(X[:1], {"sex": ["f"], "race": ["d"]})
    with pytest.raises(ValueError, match="no column 'race'"):
        model.predict(X[:1], {"sex": ["f"]})
    model = PriceFairKMeans(4, tolerance=0.3, crossed=True, n_init=1, random_state=0)
    model.fit(X[seen], sensitive_features=columns[seen])
    with pytest.raises(ValueError, match="combinations not seen in fit, such as f & c"):
        model.predict(rows, columns[~seen])


def test_mean_of_a_number(people):
    X, columns = people
    age = np.round(40 + 10 * X[:, 0])
    given = {"sex": columns["sex"], "age": age}
    model = PriceFairKMeans(
        4, tolerance=0.2, mean_tolerance={"age": 0.1}, n_init=1, random_state=0, precision="double"
    )
    labels = model.fit_predict(X, sensitive_features=given)
    means = np.bincount(labels, age) / np.bincount(labels)
    assert (np.abs(means - age.mean()) / age.std() <= 0.11).all()
    assert fairness_ratio(labels, sensitive_features=columns["sex"]) >= 0.8 - 1e-9
    assert (model.predict(X, given) != labels).sum() == model.n_rounded_
    # A new number gets the price of the nearest known number. A new combination has the sum of its values' prices.
    new = {"sex": columns["sex"], "age": age + 0.2}
    np.testing.assert_array_equal(model.predict(X, new), model.predict(X, given))


def test_weights(people):
    X, columns = people
    weights = np.random.default_rng(0).uniform(1, 5, len(X))
    model = PriceFairKMeans(4, tolerance=0.1, size_max=1.2, n_init=1, random_state=0)
    model.fit(X, sensitive_features=columns, sample_weight=weights)
    assert model.violation_ <= weights.max()
    distances = ((X - model.cluster_centers_[model.labels_]) ** 2).sum(axis=1)
    assert model.cost_ == pytest.approx(weights @ distances, rel=1e-5)
    assert model.lower_bound_ <= model.cost_ * (1 + 1e-6) and model.gap_ < 0.02
    assert np.bincount(model.labels_, weights).max() <= 1.2 * weights.sum() / 4 + weights.max()
    assert (model.predict(X, columns) != model.labels_).sum() == model.n_rounded_
    with pytest.raises(NotSupported, match=r"PriceFairKMedians takes no sample_weight.*PriceFairKMeans"):
        PriceFairKMedians(4).fit(X, sensitive_features=columns, sample_weight=weights)


@pytest.mark.parametrize("least", [1e-50, 1e-320])
def test_weights_may_be_too_small_for_single_precision(people, least):
    X, columns = people
    weights = np.where(np.arange(1200) < 1190, 1.0, least)
    model = PriceFairKMeans(4, n_init=1, random_state=0)
    model.fit(X, sensitive_features=columns["sex"], sample_weight=weights)
    assert model.violation_ < 1 and model.gap_ < 0.01


@pytest.mark.parametrize("cls", [PriceFairKMeans, PriceFairKMedians])
def test_a_budget_is_in_the_unit_of_the_data(people, cls):
    X, columns = people[0][:200], people[1]["sex"][:200]
    free = cls(3, tolerance=0.999, n_init=1, random_state=0).fit(100 * X, sensitive_features=columns)
    model = cls(3, max_cost=1.02 * free.cost_, n_init=1, random_state=0)
    assert model.fit(100 * X, sensitive_features=columns).cost_ <= model.max_cost
    assert 0 < model.tolerance_bound_ < model.tolerance_ < 1
    with pytest.raises(NotSupported, match="without any bounds it is"):
        model.set_params(max_cost=0.9 * free.cost_).fit(100 * X, sensitive_features=columns)
    again = model.set_params(max_cost=None).fit(X, sensitive_features=columns)
    assert not hasattr(again, "tolerance_") and not hasattr(again, "tolerance_bound_")


def test_a_budget_above_the_cost_of_plain_clustering_can_be_met_beside_a_far_point():
    # From fair centres, plain clustering ends at a cost above the budget here.
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.lognormal(sigma=3, size=60), rng.normal(size=60)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = PriceFairKMeans(3, max_cost_increase=0.05, random_state=0)
    model.fit(X, sensitive_features=np.arange(60) % 2)
    assert model.cost_ <= 1.05 * KMeans(3, n_init=10, random_state=0).fit(X).inertia_ * (1 + 1e-6)
