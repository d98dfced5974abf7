"""The answer in words, the report of a fit in one file, and the audit of labels that another program made."""

import re
from textwrap import dedent

import numpy as np
import pandas as pd
import pytest
from commands import refused, run, told

from fairclust.cli.labels import read_labels
from fairclust.cli.results import _kept
from fairclust.messages import UserError
from outline import Outline

N = 240


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    old = rng.random(N) < 0.5
    frame = pd.DataFrame(
        {
            "sex": np.where(rng.random(N) < 0.3 + 0.4 * old, "f", "m"),
            "age": rng.normal(35, 4, N) + 25 * old,
            "town": rng.choice(["<b>x</b>", "y"], N),
        }
    )
    path = tmp_path / "people & co.csv"
    frame.to_csv(path, index=False)
    return path


OPTIONS = ("--sensitive", "sex", "--n-clusters", 2, "--set", "n_init=2")


def test_the_report_is_one_file_with_the_whole_answer(people, tmp_path, capsys):
    report = tmp_path / "out.html"
    text = told(run(capsys, "fit", people, *OPTIONS, "--tolerance", "0.1", "--report", report))
    assert f"report: {report}; open it in a browser" in text
    source = report.read_text(encoding="utf-8")
    assert len(source) < 1_000_000
    page = Outline(source)
    # Nothing is loaded, and names of columns and values are text.
    assert not [
        tag for tag, attrs in page.tags if {"src", "href"} & {*attrs} or tag in ("script", "link", "b>")
    ]
    assert not re.search(r"url\(|@import|https?://", source.replace("http://www.w3.org", ""))
    assert "<b>x</b>" not in source and "2 clusters of people & co.csv" in page.text
    headings = ["The answer", "What each cluster is like", "Groups in the clusters", "Who pays"]
    headings += ["Cost and fairness", "The rows in two dimensions", "What became of each column"]
    headings += ["How to make it again"]
    assert re.findall("<h2>(.*?)</h2>", source) == headings
    for line in text.splitlines()[1:5]:
        assert line.partition(": ")[2][1:] in page.text
    assert "fairclust fit" in page.text and "--tolerance 0.1" in page.text
    frame = pd.read_csv(people)
    whole = (frame["sex"] == "f").mean()
    assert f"{90 * whole:.1f} % to {whole / 0.009:.1f} %" in page.text
    # Two maps of all rows, one of which is shown.
    assert sum(tag == "circle" for tag, _ in page.tags) == 2 * N
    # Every figure has a name, and every table head a scope.
    assert all(attrs.get("aria-label") for tag, attrs in page.tags if tag == "svg")
    assert all(attrs.get("scope") for tag, attrs in page.tags if tag == "th")


def test_the_map_is_made_by_umap_where_it_is_installed(people, tmp_path, capsys, monkeypatch):
    # A package that places the rows by age alone.
    code = """
        import numpy as np
        class UMAP:
            def __init__(self, n_neighbors, init, random_state, n_jobs):
                self.init = init
            def fit_transform(self, X):
                assert self.init.shape == (len(X), 2)
                return np.repeat(X[:, :1], 2, axis=1)
        """
    (tmp_path / "umap.py").write_text(dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    run(capsys, "fit", people, *OPTIONS, "--report", tmp_path / "out.html")
    page = Outline((tmp_path / "out.html").read_text(encoding="utf-8"))
    sums = {float(attrs["cx"]) + float(attrs["cy"]) for tag, attrs in page.tags if tag == "circle"}
    assert "UMAP; all rows" in page.text and sums <= {479, 480, 481}


def test_an_audit_reports_what_a_fit_reports(people, tmp_path, capsys):
    labels, report = tmp_path / "labels.csv", tmp_path / "audit.html"
    fitted = told(run(capsys, "fit", people, *OPTIONS, "--method", "kmeans", "--out", labels))
    audited = told(run(capsys, "audit", labels, people, "--sensitive", "sex", "--report", report))
    assert audited.splitlines()[1] == "asked: nothing; these labels were given"

    def table(text):
        return (
            text[text.index("cluster  rows") :]
            .partition("\n\nlabels:")[0]
            .partition("\n\nreport:")[0]
            .rstrip()
        )

    assert table(audited) == table(fitted)
    assert "given labels" in report.read_text(encoding="utf-8")
    # An identifier undoes another order of the rows.
    frame = pd.read_csv(people).assign(person=[f"p{i}" for i in range(240)])
    frame.to_csv(people, index=False)
    named = pd.read_csv(labels)[["cluster"]].assign(person=frame["person"])
    named.sample(frac=1, random_state=0).to_csv(tmp_path / "named.csv", index=False)
    assert table(told(run(capsys, "audit", tmp_path / "named.csv", people, "--sensitive", "sex"))) == table(
        fitted
    )
    # Of a table with rows that are left out, the labels say which rows they are of.
    frame = pd.read_csv(people)
    frame.assign(sex=frame.sex.where(frame.index > 2)).to_csv(people, index=False)
    written = pd.read_csv(labels)
    written[3:].to_csv(labels, index=False)
    audited = told(run(capsys, "audit", labels, people, "--sensitive", "sex"))
    for columns in (["cluster"], ["row", "cluster"]):
        written[columns].to_csv(labels, index=False)
        assert told(run(capsys, "audit", labels, people, "--sensitive", "sex")) == audited
    written[["cluster"]][1:].to_csv(labels, index=False)
    message = refused(run(capsys, "audit", labels, people, "--sensitive", "sex"))
    assert "has 239 labels, but the table has 237 rows without those that are left out" in message
    assert "Fix: add the column 'row' with the number of the labelled row in the table" in message
    written[3:].assign(cluster=written.cluster + 1).to_csv(labels, index=False)
    message = refused(run(capsys, "audit", labels, people, "--sensitive", "sex"))
    assert "no row is in cluster 0, so the clusters seem to be numbered from 1. Fix: subtract 1" in message


def test_labels_belong_to_the_rows_that_columns_of_both_tables_name(tmp_path):
    table = pd.DataFrame({"person": range(8, 0, -1), "sex": ["f", "m"] * 4, "Unnamed: 0": range(8)})
    labels = table.assign(cluster=[0, 0, 1, 1, 2, 2, 1, 2])
    rows = np.array([1, 2, 4, 5, 6, 7, 8, 9])

    def read(frame, **options):
        frame.to_csv(tmp_path / "labels.csv", index=False)
        return read_labels(tmp_path / "labels.csv", rows, table=table, **options).tolist()

    more = pd.concat([labels, labels.tail(1).assign(person=9)]).sample(frac=1, random_state=0)
    assert read(labels) == read(more) == labels.cluster.tolist()
    # Numbers of a column without a name belong to its own file.
    assert read(labels[["Unnamed: 0", "cluster"]][::-1]) == labels.cluster.tolist()[::-1]
    assert read(labels[["sex", "cluster"]]) == labels.cluster.tolist()
    for other in (labels.assign(person=range(10, 2, -1)), labels[["sex", "cluster"]][::-1]):
        with pytest.raises(UserError, match=r"rows differ from those of the table in the column '[ps]e"):
            read(other)
        assert len(read(other.assign(row=rows))) == 8
    with pytest.raises(UserError, match="the first is 2 in row 6"):
        read(labels, n_clusters=2)
    table["weight"] = table.person / 7
    assert (
        read(table.round(3).drop(columns="person").assign(cluster=labels.cluster)) == labels.cluster.tolist()
    )


def test_chance_stands_beside_shares(people, capsys):
    text = told(run(capsys, "fit", people, *OPTIONS))
    (line,) = [line for line in text.splitlines() if line.startswith("chance: ")]
    found = re.match(
        r"chance: 4 of the 4 shares of k-means are outside the ranges of random labels "
        r"\(cluster [01] has (.*) % [fm] instead of (.*) % to (.*) %\)",
        line,
    )
    share, low, high = map(float, found.groups())
    assert not low <= share <= high
    assert "they differ more than chance explains (chi-squared test, p = " in line
    # A share outside of its range has a star.
    ranges = re.findall(r"(\*?)([\d.]+) % \((.*?) to (.*?)\)", text)
    assert len(ranges) == 4
    for star, share, low, high in ranges:
        assert (float(low) <= float(share) <= float(high)) == (not star)


def test_a_cluster_without_a_small_group_says_what_was_due(people, capsys):
    frame = pd.read_csv(people)
    frame.loc[:1, "sex"] = "x"
    frame.to_csv(people, index=False)
    options = ("--sensitive", "sex", "--n-clusters", 5, "--set", "n_init=1")
    text = told(run(capsys, "fit", people, *options))
    found = re.search(
        r"met, up to whole rows \(cluster (\d) of (\d+) rows has none of x, although (.*) rows were due", text
    )
    assert float(found[3]) == pytest.approx(2 / N * int(found[2]), abs=0.05)
    assert "--min-balance would change that" in text


ASKED = {
    **dict.fromkeys(("batch_program", "backurs"), "sex: for each row of the largest group, at least "),
    "interpolated_transport": "no bound on the labels",
    "random_labels": "no bound; the labels are drawn at random",
    "bera": "sex: in every cluster, each group has at least 0.8 times",
}


@pytest.mark.parametrize("method", ASKED)
def test_the_answer_states_what_a_method_keeps(people, capsys, method):
    text = told(run(capsys, "fit", people, "--sensitive", "sex", "--n-clusters", 2, "--method", method))
    assert text.splitlines()[1].startswith(f"asked: {ASKED[method]}")
    assert ("\nbounds " in text) == (method == "bera")


def test_combinations_that_nobody_bounded_explain_nothing(people, capsys):
    frame = pd.read_csv(people)
    frame["town"] = np.where((frame.sex == "f") & (frame.index > 8), "y", frame.town)
    frame.to_csv(people, index=False)
    options = ("--sensitive", "sex", "town", "--n-clusters", 5, "--set", "n_init=1")
    for crossed in (), ("--crossed",):
        text = told(run(capsys, "fit", people, *options, *crossed))
        assert ("rows has none of" in text) == bool(crossed)


def test_groups_that_cost_nothing_with_k_means_pay_too(people, capsys):
    rng = np.random.default_rng(0)
    people.write_text(
        "sex,a\n" + "".join(f"{'fm'[i % 2]},{rng.normal():.3f}\n" for i in range(60)) + "x,40\n" * 9
    )
    options = ("--sensitive", "sex", "--n-clusters", 3, "--set", "n_init=2")
    text = told(run(capsys, "fit", people, *options))
    (cost,) = re.findall(r"^sex x +([\d.]+) +0.000", text, re.MULTILINE)
    assert f"and rows of sex x, which cost nothing with k-means, cost up to {cost} each\n" in text
    # With as many clusters as different rows, k-means costs nothing.
    people.write_text("sex,a\n" + "f,1\nf,1\nf,1\nm,9\nm,9\nm,9\n" * 9)
    text = told(run(capsys, "fit", people, "--sensitive", "sex", "--n-clusters", 2))
    assert "who pays: rows of sex f and sex m, which cost nothing with k-means, cost up to" in text


def test_empty_clusters_are_counted(people, tmp_path, capsys):
    (tmp_path / "labels.csv").write_text("cluster\n" + "0\n2\n" * (N // 2))
    options = ("--sensitive", "sex", "--n-clusters", 5)
    text = told(run(capsys, "audit", tmp_path / "labels.csv", people, *options))
    assert "got: 3 of 5 clusters are empty; the largest difference" in text
    assert "0 of the 4 shares of these labels are outside the ranges of random labels, and together" in text
    clusters = [{"counts": {"f": n}, "size": n, "cluster": k} for k, n in enumerate([4, 0, 4])]
    result = {"clusters": clusters, "n_clusters": 3, "groups": {"f": 8}, "rows": 8}
    for violation, kept in (
        (0.0, "met in the other clusters"),
        (0.5, "met in the other clusters, up to whole rows"),
    ):
        assert _kept(result, violation) == ["1 of 3 clusters is empty", kept]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 390])
def test_the_report_in_a_browser(people, tmp_path, capsys, browser, width):
    told(run(capsys, "fit", people, *OPTIONS, "--report", tmp_path / "out.html"))
    browser.resize(width)
    browser.open(tmp_path / "out.html")
    assert browser.js("document.documentElement.scrollWidth") <= width
    drawn = "[...document.querySelectorAll('.map > div')].map(e => e.offsetHeight > 0)"
    assert browser.js(drawn) == [True, False]
    # The keys of the arrows choose what the colours are.
    browser.js("document.getElementById('clusters').focus()")
    browser.press("ArrowRight")
    assert browser.js(drawn) == [False, True]
    assert browser.errors == []
    assert all(url.startswith(("file:", "about:")) for url in browser.requests)
