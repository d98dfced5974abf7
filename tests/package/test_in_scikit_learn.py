"""Estimators within scikit-learn's tools: scores, distances, pipelines, frames."""

import io

import numpy as np
import pandas as pd
import pytest
import sklearn
from matplotlib.figure import Figure
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairclust
from fairclust import FrontDisplay

WITH_CENTERS = [name for name in fairclust.methods.__all__ if hasattr(getattr(fairclust, name), "transform")]


@pytest.fixture
def people(grouped_blobs):
    X, codes = grouped_blobs(n_samples=150)
    return pd.DataFrame(X, columns=["a", "b", "c"]), pd.Series(np.array(["f", "m"])[codes], name="sex")


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
@sklearn.config_context(enable_metadata_routing=True)
def test_the_groups_pass_through_a_pipeline(name, people):
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


@pytest.mark.parametrize("name", [name for name in WITH_CENTERS if name != "SociallyFairKMeans"])
def test_verbose_prints_the_steps(name, people, capsys):
    X, sex = people
    getattr(fairclust, name)(2, random_state=0).fit(X, sensitive_features=sex)
    assert capsys.readouterr().out == ""
    getattr(fairclust, name)(2, random_state=0, verbose=1).fit(X, sensitive_features=sex)
    assert len(capsys.readouterr().out.splitlines()) >= 1


def test_a_display_draws_names_as_they_are():
    groups = ["$\\input{a}$", "_hidden", "$", "", "a\x01b"]
    shown = [r"\$\input{a}\$", " _hidden", r"\$", " ", "a b"]
    points = pd.DataFrame({"method": groups, "$\\x$": range(5), "sse": range(5)})
    front = FrontDisplay(points).plot("$\\x$", "sse", ax=Figure().subplots())
    front.figure_.savefig(io.BytesIO(), format="svg")
    assert [text.get_text() for text in front.ax_.get_legend().get_texts()] == shown
    assert front.ax_.get_ylabel() == "SSE (lower is better)"
    assert {line.get_label() for line in front.ax_.lines} == {*shown}
    other = FrontDisplay(points.assign(smallest_cluster=9)).plot(y="smallest_cluster", ax=Figure().subplots())
    assert other.ax_.get_ylabel() == "Smallest cluster"
