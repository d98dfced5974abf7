import math
from inspect import signature

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from fairclust import metrics as fm
from fairclust.metrics import METRICS, Scored, score_labels
from fairclust.metrics.registry import doc_entries, doc_sections


def sample(n=60, n_clusters=4, n_groups=3, seed=0):
    rng = np.random.default_rng(seed)
    weights = sp.random_array((n, n), density=0.3, rng=rng) + sp.eye_array(n)
    return {
        "X": rng.normal(size=(n, 3)),
        "labels": rng.integers(0, n_clusters, n),
        "groups": rng.integers(0, n_groups, n),
        "n_clusters": n_clusters,
        "W": weights,
        "truth": rng.integers(0, n_clusters, n),
        "numbers": {"age": rng.normal(size=n)},
    }


def score(data, metrics=None, **change):
    return score_labels(Scored(**{**data, **change}), metrics)


def test_help_describes_every_parameter_and_names_the_paper():
    for metric in METRICS.values():
        sections = doc_sections(metric.function.__doc__)
        assert list(doc_entries(sections["Parameters"])) == list(signature(metric.function).parameters)
        assert "Returns" in sections
        assert ("References" in sections) == (metric.source not in ("count", "ours"))


def test_scores_are_what_the_functions_return():
    data = sample()
    scores = score(data)
    assert list(scores) == list(METRICS)
    assert len({metric.label for metric in METRICS.values()}) == len(METRICS)
    table = fm.contingency(data["labels"], data["groups"], 4, 3)
    arguments = {
        "table": (table,),
        "X": (data["X"], data["labels"]),
        "W": (data["W"], data["labels"]),
        "truth": (data["labels"], data["truth"]),
        "numbers": (data["labels"],),
    }
    for name, value in scores.items():
        assert type(value) is float
        metric = METRICS[name]
        more = {"sensitive_features": data["numbers"]["age"]} if metric.needs == "numbers" else {}
        assert value == metric.function(*arguments[metric.needs], **more)


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(1, 8), st.integers(1, 4), st.integers(0, 10_000))
def test_scores_lie_in_the_declared_ranges(n, n_clusters, n_groups, seed):
    """The data include more clusters than points, a single cluster, a single group, and empty clusters."""
    for name, value in score(sample(n, n_clusters, n_groups, seed)).items():
        low, high = METRICS[name].range
        assert low <= value <= high or (math.isnan(value) and name == "dunn_index"), (name, value)


def test_only_missing_inputs_give_nan():
    scores = score(sample(), X=None, W=None, truth=None, numbers={})
    missing = {name for name, value in scores.items() if math.isnan(value)}
    assert missing == {name for name, metric in METRICS.items() if metric.needs != "table"}


def test_limits_give_nan():
    scored, many = Scored(**sample(n=60)), np.arange(33_001) % 2
    assert not math.isnan(score_labels(scored, ["dunn_index"])["dunn_index"])
    assert math.isnan(score_labels(Scored(many, many, many[:, None]), ["dunn_index"])["dunn_index"])


def test_the_number_of_clusters_asked_for_counts():
    """A cluster without points is counted, although it has no label."""
    data = sample()
    lost = score(data, n_clusters=5)
    assert lost["balance"] == lost["fairness_ratio"] == lost["smallest_cluster"] == 0.0
    assert lost["n_nonempty"] == 4.0
    kept = score(data)
    assert kept["balance"] > 0
    for name in ("fairness_error", "delta", "sse", "kmedians_cost", "dunn_index", "ncut"):
        assert lost[name] == kept[name]


def test_chosen_metrics_in_the_given_order():
    assert list(score(sample(), metrics=["sse", "balance"])) == ["sse", "balance"]
    assert score(sample(), metrics=[]) == {}
    assert list(score(sample(), metrics="sse")) == ["sse"]
    with pytest.raises(ValueError, match=r"unknown metrics.*beauty"):
        score(sample(), metrics=["balance", "beauty"])


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if metric.needs == "X"])
def test_malformed_points_and_labels_raise(name):
    X = [[0.0], [10.0], [2.0]]
    for points, codes, message in [
        (X, [0, 1], "one row"),
        ([1.0, 2.0], [0, 1], "one row"),
        (X, [0, 1, -1], "labels must lie"),
        (np.ma.masked_greater(X, 5), [0, 1, 0], "masked"),
        ([["a"], ["b"]], [0, 1], "finite numbers"),
        (np.empty((0, 1)), [], "no point"),
    ]:
        with pytest.raises(ValueError, match=message):
            METRICS[name].function(points, codes)


@pytest.mark.mirror
@pytest.mark.parametrize(
    ("name", "n_clusters", "published"),
    [
        ("elliptical", 2, {"fairness_ratio": 0, "awd": 0.4940, "dunn_index": 0.0644, "sse": 206.2982}),
        ("2d4c_no0", 4, {"fairness_ratio": 0, "awd": 0.3127, "dunn_index": 0.0076, "sse": 114.4834}),
        ("2d4c_no4", 4, {"fairness_ratio": 0, "awd": 0.1723, "dunn_index": 0.0057, "sse": 104.0023}),
    ],
)
def test_published_scores_of_plain_k_means(real, name, n_clusters, published):
    """All four metrics agree with the column Lloyd of Tables III and IV of Pan et al. (BFKM) to the printed digits."""
    from sklearn.cluster import KMeans

    data = real(name)
    labels = KMeans(n_clusters, n_init=10, random_state=0).fit_predict(data.X)
    scores = score_labels(Scored(labels, data.groups, data.X, n_clusters), published)
    assert {key: round(value, 4) for key, value in scores.items()} == published
