"""Estimators within scikit-learn's tools: scores, distances, pipelines, searches, frames."""

import io

import numpy as np
import pandas as pd
import pytest
import sklearn
from matplotlib.figure import Figure
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairclust
from fairclust import ClusterSharesDisplay, FairnessScorer, FrontDisplay, PriceFairKMeans, cheapest_fair
from fairclust.metrics import balance

WITH_CENTERS = [
    "KMeans",
    "PriceFairKMeans",
    "PriceFairKMedians",
    "VariationalFairKMeans",
    "VariationalFairKMedians",
]


@pytest.fixture
def people(grouped_blobs):
    X, codes = grouped_blobs(n_samples=150)
    return pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(np.array(["f", "m"])[codes], name="sex")


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", WITH_CENTERS)
def test_distances_and_score(name, people):
    X, sex = people[0] + 1e6, people[1]
    model = getattr(fairclust, name)(3, random_state=0)
    distances = model.fit_transform(X, sensitive_features=sex)
    expected = np.linalg.norm(X.to_numpy()[:, None] - model.cluster_centers_, axis=2)
    np.testing.assert_allclose(distances, expected, atol=1e-6)
    labels = model.predict(X, sensitive_features=sex)
    power = 1 if name.endswith("Medians") else 2
    cost = (expected[np.arange(len(X)), labels] ** power).sum()
    assert model.score(X, sensitive_features=sex) == pytest.approx(-cost)
    assert model.score(X, sample_weight=np.full(len(X), 2.0), sensitive_features=sex) == pytest.approx(
        -2 * cost
    )
    # If a method has rounded fractional rows, their labels differ from what it predicts.
    if hasattr(model, "cost_") and not model.n_rounded_:
        assert cost == pytest.approx(model.cost_, rel=1e-5)


def test_output_frames_on_request(people):
    X, sex = people
    model = fairclust.PriceFairKMeans(2, random_state=0).set_output(transform="pandas")
    found = model.fit_transform(X, sensitive_features=sex)
    assert list(found) == ["pricefairkmeans0", "pricefairkmeans1"] and found.index.equals(X.index)
    polars = pytest.importorskip("polars")
    model.set_output(transform="polars")
    assert isinstance(model.transform(polars.DataFrame(X.to_dict("list"))), polars.DataFrame)


@pytest.mark.parametrize("name", [*WITH_CENTERS, "FairMixture", "BalancedFairKMeans"])
def test_the_groups_pass_through_a_pipeline(name, people, routing):
    X, sex = people
    model = getattr(fairclust, name)(2, random_state=0)
    pipe = make_pipeline(StandardScaler(), model).fit(X, sensitive_features=sex)
    scaled = StandardScaler().fit_transform(X)
    alone = sklearn.base.clone(model).fit(scaled, sensitive_features=sex)
    np.testing.assert_array_equal(pipe[-1].labels_, alone.labels_)
    np.testing.assert_array_equal(pipe.fit_predict(X, sensitive_features=sex), alone.labels_)
    if hasattr(model, "predict"):
        expected = alone.predict(scaled, sensitive_features=sex)
        np.testing.assert_array_equal(pipe.predict(X, sensitive_features=sex), expected)
        assert pipe.score(X, sensitive_features=sex) == alone.score(scaled, sensitive_features=sex)


def test_scores_of_a_pipeline_are_those_of_its_last_step(people):
    X, sex = people
    pipe = make_pipeline(StandardScaler(), fairclust.KMeans(3, random_state=0))
    pipe.fit(X, kmeans__sensitive_features=sex)
    score = FairnessScorer("sse")(pipe, X, sensitive_features=sex)
    assert score == pytest.approx(-pipe[-1].inertia_)
    labels = pipe.predict(X)
    found = FairnessScorer("balance")(pipe, X, sensitive_features=sex)
    assert found == balance(labels, sensitive_features=sex)
    assert FairnessScorer("delta")(pipe, X, sensitive_features=sex) <= 0


def test_a_search_finds_the_cheapest_fair_setting(people, routing):
    X, sex = people
    search = GridSearchCV(
        fairclust.PriceFairKMeans(3, n_init=2, random_state=0),
        {"tolerance": [0.0, 0.3, 0.9]},
        scoring={"cost": FairnessScorer("sse"), "balance": FairnessScorer("balance")},
        refit=cheapest_fair(balance=0.35),
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    search.fit(X, sensitive_features=sex)
    means = pd.DataFrame(search.cv_results_)[["mean_test_cost", "mean_test_balance"]]
    fair = means[means.mean_test_balance >= 0.35]
    assert 0 < len(fair) < 3, "the grid has settings on both sides"
    assert search.best_index_ == fair.mean_test_cost.idxmax()
    assert search.best_estimator_.labels_.shape == (150,)
    alone = GridSearchCV(search.estimator, {"tolerance": [0.0, 0.9]}, scoring=FairnessScorer(), cv=3)
    assert alone.fit(X, sensitive_features=sex).best_params_ == {"tolerance": 0.0}


def test_no_setting_that_is_fair_enough():
    results = {
        "mean_test_cost": np.array([-3.0, -2.0]),
        "mean_test_balance": np.array([0.1, 0.4]),
        "mean_test_delta": np.array([-0.1, -0.4]),
    }
    with pytest.raises(ValueError, match=r"mean balance of 0\.5 or more; the largest is 0\.4"):
        cheapest_fair(balance=0.5)(results)
    with pytest.raises(ValueError, match="no setting meets balance, delta at once"):
        cheapest_fair(balance=0.3, delta=-0.2)(results)
    with pytest.raises(ValueError, match="metric must be one of"):
        FairnessScorer("smallest_cluster_of_all")


@pytest.mark.parametrize("name", WITH_CENTERS)
def test_verbose_prints_the_steps(name, people, capsys):
    X, sex = people
    getattr(fairclust, name)(2, random_state=0).fit(X, sensitive_features=sex)
    assert capsys.readouterr().out == ""
    getattr(fairclust, name)(2, random_state=0, verbose=1).fit(X, sensitive_features=sex)
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_a_scorer_of_several_columns_is_that_of_the_least_fair():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    groups = pd.DataFrame(
        {
            "sex": np.where(X[:, 0] + rng.normal(size=300) > 0, "m", "f"),
            "race": rng.choice(["a", "b", "c"], 300),
        }
    )
    model = PriceFairKMeans(3, tolerance=0.2, n_init=2, random_state=0).fit(X, sensitive_features=groups)
    labels = model.predict(X, groups)
    each = [balance(labels, sensitive_features=groups[name]) for name in groups]
    assert FairnessScorer("balance")(model, X, sensitive_features=groups) == min(each)
    assert min(each) > balance(labels, sensitive_features=groups)
    points = FrontDisplay.from_estimators([model], X, sensitive_features=groups).points
    assert points.balance[0] == min(
        balance(model.labels_, sensitive_features=groups[name]) for name in groups
    )


def test_displays_draw_names_as_they_are():
    groups = ["$\\input{a}$", "_hidden", "$", "", "a\x01b"] * 4
    shown = [r"\$\input{a}\$", " _hidden", r"\$", " ", "a b"]
    display = ClusterSharesDisplay.from_predictions([0, 1] * 10, sensitive_features=groups).plot(
        ax=Figure().subplots()
    )
    display.figure_.savefig(io.BytesIO(), format="svg")
    assert {text.get_text() for text in display.ax_.get_legend().get_texts()} == set(shown)
    points = pd.DataFrame({"method": groups[:5], "$\\x$": range(5), "sse": range(5)})
    front = FrontDisplay(points).plot("$\\x$", "sse", ax=Figure().subplots())
    front.figure_.savefig(io.BytesIO(), format="svg")
    assert [text.get_text() for text in front.ax_.get_legend().get_texts()] == shown
