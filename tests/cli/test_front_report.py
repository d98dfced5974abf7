"""The report of `fairclust front`, its answer in words, and labels of other programs on it."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from commands import run, told

from fairclust import FrontDisplay
from fairclust.cli.front import answer
from outline import Outline


@pytest.fixture
def front(people, tmp_path, capsys):
    """Run the command on the table with options; returns what it prints and the points that it writes."""

    def ran(*options):
        out = tmp_path / "front.csv"
        text = told(run(capsys, "front", people, "--sensitive", "sex", "--out", out, *options))
        return text, pd.read_csv(out)

    return ran


def test_the_report_of_a_front_is_in_the_words_of_a_user(front, tmp_path):
    page = tmp_path / "page.html"
    few = ("--n-clusters", 3, "--starts", 1)
    text, points = front(*few, "--methods", "price", "vfc", "--report", page)
    assert f"report: {page}; open it in a browser" in text
    source = page.read_text(encoding="utf-8")
    found = Outline(source)
    assert re.findall("<h2>(.*?)</h2>", source) == [
        *("The answer", "The cost of fairness", "All settings", "What became of each column"),
        "How to make it again",
    ]
    for word in ("family", "leaderboard", "ours", "cell of the run", "paper"):
        assert not re.search(rf"\b{word}\b", found.text.partition("The answer")[2], re.IGNORECASE)
    assert not [tag for tag, attrs in found.tags if {"src", "href"} & {*attrs} or tag in ("script", "link")]
    # The lines of the answer, and a row for each setting, are those that are printed and written.
    for line in re.findall("^(?:fairest|within 5 %): (.*)$", text, re.MULTILINE):
        assert line[1:] in found.text
    assert source.count("<title>") == 1 + 2 * len(points) and "--methods price vfc" in found.text
    # Marks at a place that is the better one in both values are dark.
    plain = points[points.method == "KMeans"].iloc[0]
    assert points.increase.to_numpy() == pytest.approx(points.sse / plain.sse - 1, abs=1e-12)
    beaten = [
        ((points.sse < of.sse) & (points.balance >= of.balance)).any()
        or ((points.sse == of.sse) & (points.balance > of.balance)).any()
        for of in points.itertuples()
    ]
    assert source.partition("All settings")[0].partition("Delta (lower")[0].count("class=pale") == sum(beaten)
    assert f"the {len(points) - sum(beaten)} on the front of cost and balance are bold" in found.text


def test_the_answer_names_the_fairest_setting_within_a_cost():
    rows = [
        ("KMeans", "", 100.0, 0.2),
        ("A", "x=1", 100.9, 0.5),
        ("A", "x=2", 104.0, 0.7),
        ("B", "", 120.0, 0.9),
    ]
    points = pd.DataFrame(rows, columns=["method", "setting", "sse", "balance"])
    points = points.assign(increase=points.sse / 100 - 1, delta=[0.5, 0.4, 0.3, 0.2])
    assert answer(points) == [
        "without a bound: k-means has a balance of 0.200 (sum of squared distances 100.0)",
        "fairest: B has a balance of 0.900 and costs 20.0 % more than k-means",
        "within 1 %: A x=1 has a balance of 0.500 and costs 0.9 % more than k-means",
        "within 5 %: A x=2 has a balance of 0.700 and costs 4.0 % more than k-means",
    ]
    assert answer(points[points.setting != "x=1"])[2] == "within 1 %: no setting costs so little"
    *_, within, said = answer(points.assign(balance=0.0))
    assert within == "within 5 %: A x=2 has a balance of 0.000 and costs 4.0 % more than k-means"
    assert said == "balance: no setting has every group in every cluster, so the lowest Delta counts"


def test_where_k_means_costs_nothing_no_cost_is_relative(people, front):
    people.write_text("sex,a\n" + "f,0.1\nf,0.1\nf,0.1\nm,0.7\nm,0.7\nm,0.7\n" * 9)
    text, points = front("--n-clusters", 2, "--starts", 1, "--methods", "price")
    assert points.increase[1:].isna().all() and "inf" not in text and "more than k-means" not in text


def test_empty_clusters_count_wherever_they_are():
    given, X = [("A", "", [0, 0, 2, 2]), ("A", "", [0, 0, 1, 1])], np.arange(4)[:, None]
    for k, balances in ((3, [0, 0]), ([3, 2], [0, 1]), (None, [0, 1])):
        front = FrontDisplay.from_predictions(X, given, sensitive_features=list("fmfm"), n_clusters=k)
        assert front.points.balance.tolist() == balances


def test_a_setting_that_fails_is_a_note(people, front, tmp_path):
    frame = pd.read_csv(people)
    frame["sex"] = np.where(frame.index < 50, "x", frame.sex)
    frame.to_csv(people, index=False)
    page = tmp_path / "page.html"
    text, points = front("--n-clusters", 2, "--starts", 1, "--methods", "backurs", "--report", page)
    assert "fairlets are made for two groups, found 3" in text
    assert "fairlets are made for two groups, found 3" in page.read_text(encoding="utf-8")
    assert points.method.tolist() == ["KMeans"]


def test_a_front_of_k_means_alone(people, capsys):
    # A name in brackets is no list in JSON.
    pd.read_csv(people).rename(columns={"sex": "[sex]"}).to_csv(people, index=False)
    options = ("--sensitive", "[sex]", "--n-clusters", 2, "--methods", "kmeans")
    assert "only k-means was fitted" in told(run(capsys, "front", people, *options))


def test_fit_audit_and_front_compare_with_the_same_kmeans(people, front, tmp_path, capsys):
    labels = tmp_path / "labels.csv"
    options = ("--sensitive", "sex", "--json")
    fitted = json.loads(told(run(capsys, "fit", people, *options, "--n-clusters", 5, "--out", labels)))
    audited = json.loads(told(run(capsys, "audit", labels, people, *options)))
    _, points = front("--n-clusters", 5, "--starts", 1, "--methods", "kmeans")
    plain = points.set_index("method").loc["KMeans"]
    for result in (fitted, audited):
        of = result["metrics"]["KMeans"]
        assert of["sse"] == pytest.approx(plain.sse, rel=1e-9)
        assert of["balance"] == pytest.approx(plain.balance, rel=1e-9)
        assert of["delta"] == pytest.approx(plain.delta, rel=1e-9)


@pytest.mark.browser
def test_the_report_of_a_front_in_a_browser(front, tmp_path, browser):
    page = tmp_path / "page.html"
    front("--n-clusters", 3, "--starts", 1, "--methods", "vfc", "--report", page)
    for width in (1400, 390):
        browser.resize(width)
        browser.open(page)
        assert browser.js("document.documentElement.scrollWidth") <= width
        widest = "Math.max(...[...document.querySelectorAll('caption span')].map(e => e.offsetWidth))"
        assert browser.js(widest) <= width
    assert browser.errors == []
