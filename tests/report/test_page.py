"""The page without a browser: its content, its links and tags, and that it loads nothing from elsewhere."""

import base64
import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from frames import cell
from frames import frame as table
from pages import NAMES, made_up_scores, make_page_folder

from fairclust.report.leaderboard import make_settings
from fairclust.report.selection import best_starts
from outline import Outline


@pytest.fixture(scope="module")
def frame():
    return made_up_scores()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    folder = tmp_path_factory.mktemp("page")
    make_page_folder(folder, frame)
    return folder


@pytest.fixture(scope="module")
def html(folder):
    return (folder / "report/index.html").read_text()


@pytest.fixture(scope="module")
def page(html):
    return Outline(html)


def packed(html):
    """Return the data of the page's script."""
    text = html.partition('id="data">')[2].partition("</script>")[0]
    return json.loads(gzip.decompress(base64.b64decode(text)))


def test_the_page_needs_nothing_from_elsewhere(html, page):
    beside = {"../figures/vfc/fig2.png"}
    assert all(link.startswith(("#", "data:,")) or link in beside for link in page.links)
    assert not re.search(r"url\(|@import|fetch\(|XMLHttpRequest|import\(", html)
    assert "default-src 'none'" in html


def test_ids_are_unique_and_links_have_targets(page):
    assert len(page.ids) == len(set(page.ids))
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)


def test_names_cannot_break_the_page(html, page):
    assert html.count("</script>") == 2
    assert "Bank &lt;J=3&gt; &amp; co" in html
    assert packed(html)["methods"][2]["label"] == NAMES.methods["bera"]


def test_a_table_of_a_paper_is_shown_as_printed(page, html):
    rows = page.tables["VFC, Table 3: Fair K-means"]
    assert rows[0][:3] == ["", "SSE", "Fairness error"]
    assert ["Adult"] in rows and ["Bank <J=3> & co"] in rows
    first = rows[rows.index(["Adult"]) + 1]
    assert first[:3] == ["VFC", "9,984.50 ✓9,984.01", "0.02 ✓0.02"]
    assert '10,020.00 <span class="s differs" title="differs">≠</span><br><small>10,300.00</small>' in html
    assert "≠ Bank &lt;J=3&gt; &amp; co, Bera &lt;/script&gt; et al.: Off: so." in html


def test_the_evidence_of_a_table_has_every_value(page):
    head, *body = page.tables["Evidence of VFC, Table 3: Fair K-means"]
    assert len(body) == 5
    rows = [dict(zip(head, row, strict=True)) for row in body]
    wanted = {"Data set": "Adult", "Method": "VFC K-means", "Metric": "SSE", "Reported": "9,984.01"}
    wanted |= {"Ours": "9,984.50 ± 2.00, best 9,975.50", "Verdict": "agrees"}
    wanted |= {"Starts and setting": "as printed; 2 of 2 starts; (printed: 9,000)"}
    assert wanted.items() <= rows[0].items()
    assert rows[2]["Why"] == "Off: so."
    # Only costs show the best start.
    assert rows[1]["Ours"] == "0.02 ± 2.00"
    assert (rows[4]["Ours"], rows[4]["Verdict"], rows[4]["Why"]) == ("–", "not comparable", "no data")


def test_the_page_opens_with_the_rows_by_verdict_and_a_picture_of_all_compared_values(page, html):
    assert page.tables["Rows of the papers' tables"][1:] == [["VFC", "3", "1", "0", "1", "1", "0 of 1", "1"]]
    first = html.partition("Which method is cheapest")[0]
    assert first.count('class="dot ') == 3
    text = "VFC, Table 3: Adult, VFC K-means, λ = 9,000: SSE 9,984.50, reported 9,984.01: agrees"
    assert f"<title>{text}</title>" in first


def test_a_paper_has_its_tables_then_figures_then_claims_then_evidence(html, page):
    section = html.partition('<details id="paper-vfc">')[2].partition('<section id="leaderboard">')[0]
    parts = ["VFC, Table 3", "<h4>Figures", "<h4>Claims", '<details class="evidence">']
    assert [section.index(part) for part in parts] == sorted(section.index(part) for part in parts)
    assert "<li>A remark on <code>lam</code>.</li>" in section
    # Figures without data, and those that were not drawn, are not shown.
    pictures = [of for tag, of in page.tags if tag == "img"]
    assert [(of["src"], of["alt"], of["width"]) for of in pictures] == [
        ("../figures/vfc/fig2.png", "Picture fig2", "4")
    ]


def test_papers_without_data_of_the_run_have_no_section(page, html):
    assert "paper-vfc" in page.ids
    assert "paper-other" not in page.ids
    assert "This run has no results for Other, 10 % noise: see" in html


def test_claims_have_a_verdict_and_numbers(page):
    head, *body = page.tables["Claims of VFC"]
    assert head == ["Verdict", "Claim", "Where", "Data set", "K", "Numbers"]
    assert ["holds in part", "VFC costs less", "Section 4", "all together", "–", "3 of 4"] in body
    assert (body[1][0], *body[1][3:5]) == ("holds", "Adult", "10")


def test_a_users_own_data_have_no_papers(tmp_path):
    reader = Outline(make_page_folder(tmp_path, made_up_scores(), papers={}).read_text())
    assert "papers" not in reader.ids and "#papers" not in reader.links
    assert reader.ids.index("fronts") < reader.ids.index("leaderboard") < reader.ids.index("missing")


def test_the_page_begins_with_where_ours_lose_and_has_the_leaderboard_of_every_cost(page, html):
    sentence = html.index("settings (a data set, a K and a level of fairness)")
    assert sentence < html.index("Which method is cheapest at the fairness that I need?")
    head, *body = page.tables["SSE: distance to the best known"]
    assert {row[0].removesuffix(" (ours)") for row in body} == set(NAMES.methods.values())
    assert {row[0] for row in body if row[0].endswith("(ours)")} == {"VFC K-means (ours)"}
    assert "No method is compared with chance, because this run has no labels drawn at random" in html
    assert {row[head.index("Starts")] for row in body} == {"2"}
    assert all(row[head.index("Within 50 %")].endswith(" of 2") for row in body)
    # The results come before the rule.
    assert html.index("SSE: distance to the best known") < html.index("The interval covers 95 %")
    assert "K-medians cost: distance to the best known" in page.tables
    assert "Ncut: distance to the best known" not in page.tables


def test_the_pictures_of_a_front_have_every_setting_but_those_with_empty_clusters(frame, html, tmp_path):
    points = best_starts(frame)
    charts = packed(html)["charts"]
    assert sum(len(chart["marks"]) for chart in charts) == len(points)
    for chart in charts:
        assert chart["costs"] == [0, 1] and len(chart["pictures"]) == 2 * 6
        assert all(of["at"].count(";") == len(chart["marks"]) - 1 for of in chart["pictures"].values())
    single = frame.assign(n_nonempty=np.where(frame.method == "kmeans", 1, 10))
    chart = packed(make_page_folder(tmp_path, single, papers={}).read_text())["charts"][0]
    assert "or with empty clusters: K-means (1)." in chart["pictures"]["0,3"]["note"]


def test_missing_cells_are_listed_without_names_of_users_and_passwords(page, html):
    rows = page.tables["Fits without a result"]
    assert ["timeout", "Bank <J=3> & co", NAMES.methods["bera"], "1", "longer than 5 s"] in rows
    reason = "no file ~/data.csv, no https://example.org/x?p=/a/b, 3/4"
    assert ["skipped", "10 % noise", NAMES.methods["bera"], "1", reason] in rows
    assert f"{Path.home()}/" not in html and "path: ~/adult.csv" in html and "anna" not in html


def test_a_mixture_of_versions_is_named(tmp_path, frame, html):
    assert "Fits of several versions" not in html
    mixed = frame.assign(versions=["numpy 1"] * 3 + ["numpy 2"] * (len(frame) - 3))
    page = make_page_folder(tmp_path, mixed).read_text()
    assert f"{len(frame) - 3} with numpy 2; 3 with numpy 1" in page


def test_the_page_is_the_same_each_time(folder, frame, tmp_path):
    again = make_page_folder(tmp_path / "again", frame)
    assert again.read_bytes() == (folder / "report/index.html").read_bytes()


def test_a_working_folder_that_is_named_as_a_part_of_the_page_breaks_nothing(frame, tmp_path, monkeypatch):
    scores = frame.assign(params=[json.dumps({"at": f"/code/a {lam}"}) for lam in frame.lam])
    plain = make_page_folder(tmp_path / "plain", scores).read_text()
    monkeypatch.setattr(Path, "cwd", lambda: Path("/code"))
    html = make_page_folder(tmp_path / "other", scores).read_text()
    assert html.count("</code>") == plain.count("</code>") > 0
    assert "at = /code/a" in str(packed(plain)) and "at = ./a" in str(packed(html))


def test_ten_thousand_cells_make_no_heavy_page(tmp_path):
    frame = made_up_scores(n_lams=500, n_seeds=1, datasets=[f"data set {i}" for i in range(10)])
    assert len(frame) > 10_000
    assert make_page_folder(tmp_path / "many", frame, papers={}).stat().st_size < 5e6


def test_a_run_without_any_result_has_a_page(tmp_path):
    frame = made_up_scores()
    frame[["status", "reason"]] = ["error", "broken"]
    text = make_page_folder(tmp_path / "none", frame).read_text()
    assert "No instance counts" in text and "Which method for what?" not in text


def test_settings_say_what_varies_and_what_is_certified():
    rows = [
        cell("d", method, 2, params=params, sse=10.0, kmedians_cost=10.6, estimator=json.dumps(stated))
        for method, params, stated in [
            ("a", {"lam": 5.0, "x": 1, "rho": 2}, {"cost_": 10.2, "lower_bound_": 10.0, "gap_": 2e-4}),
            ("a", {"lam": 5.0, "x": 1, "rho": 3.5}, {"cost_": 10.5, "lower_bound_": 10.0, "gap_": 0.2}),
            ("b", {"y": 1}, {}),
            ("c", {}, {}),
        ]
    ]
    found = make_settings(table(rows))
    assert found.setting.tolist() == ["λ = 5, rho = 2", "λ = 5, rho = 3.5", "", ""]
    # The second fit bounds the cost of K-medians.
    assert found.excess_sse.tolist() == pytest.approx([2e-4, np.nan, np.nan, np.nan], nan_ok=True)
    assert found.excess_kmedians_cost.tolist()[:2] == pytest.approx([np.nan, 0.2], nan_ok=True)
