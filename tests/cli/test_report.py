"""`fairclust report`: the page for a user's own table."""

import re

import numpy as np
import pandas as pd
import pytest
from commands import refused, run, told


def test_the_page_compares_methods_on_the_table(people, tmp_path, capsys):
    out = tmp_path / "page.html"
    options = ("--sensitive", "sex", "--n-clusters", "3", "--starts", 2, "--out", out)
    said = told(run(capsys, "report", people, *options, "--methods", "vfc"))
    assert "12 fits\n" in said and f"page: {out}" in said  # k-means and five weights, each with two starts
    page = out.read_text()
    # The answers name a method for each K, although the report of a table does not count empty clusters.
    answers = page.partition("The cheapest method at almost full fairness</span>")[2].partition("</table>")[0]
    assert answers.count("<tr>") == 2 and "people.csv" in answers
    for section in ("fronts", "leaderboard", "settings", "times", "origin"):
        assert f'id="{section}"' in page
    assert '<section id="papers">' not in page and '<article id="paper-' not in page
    assert "people.csv, K = 3" in page and "VariationalFairKMeans" in page
    # The page has the shares of the groups in every cluster for each method.
    assert len(re.findall(r"<span>people\.csv, K = 3: \w+", page)) == 2
    assert str(tmp_path) not in page


def test_settings_that_fail_are_named_on_the_page(people, tmp_path, capsys):
    frame = pd.read_csv(people)
    frame["sex"] = np.where(frame.index < 50, "x", frame.sex)
    frame.to_csv(people, index=False)
    out = tmp_path / "page.html"
    options = ("--sensitive", "sex", "--n-clusters", "2", "--starts", 1, "--out", out)
    said = told(run(capsys, "report", people, *options, "--methods", "backurs"))
    assert "1 of them failed" in said
    assert "fairlets are made for two groups, found 3" in out.read_text()


@pytest.mark.parametrize(
    "option, value, message",
    [
        ("--starts", "0", "--starts: 0 is no number of starts"),
        ("--out", "nowhere/page.html", "--out: there is no folder nowhere"),
        ("--methods", "prise", "there is no method 'prise'; did you mean 'price'?"),
    ],
)
def test_impossible_requests_of_a_report(people, capsys, option, value, message):
    arguments = ("--sensitive", "sex", "--n-clusters", "2", option, value)
    assert message in refused(run(capsys, "report", people, *arguments))


def test_labels_of_another_program_are_a_method_of_the_page(people, tmp_path, capsys):
    out, labels = tmp_path / "page.html", tmp_path / "elsewhere.csv"
    pd.DataFrame({"cluster": np.arange(600) % 3}).to_csv(labels, index=False)
    options = ("--sensitive", "sex", "--n-clusters", "3", "--starts", 1, "--out", out, "--labels", labels)
    said = told(run(capsys, "report", people, *options, "--methods", "kmeans"))
    assert "1 fits\n" in said
    assert "elsewhere" in out.read_text()
    labels.write_text("cluster\n0\n1\n")
    assert "has 2 labels; the data have 600 rows" in refused(run(capsys, "report", people, *options))
