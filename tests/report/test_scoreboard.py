from dataclasses import replace

import pytest
from a_paper import NAMES, material, programs, reported, table
from frames import starts

import publish
from fairclust.pipeline.papers import ClaimSpec
from fairclust.report import agreement
from fairclust.report.claims import load_claims, make_claims
from fairclust.report.tables import load_evidence, make_scoreboard, make_table, row_verdicts, summary


@pytest.fixture
def files(tmp_path):
    """Write the evidence of two tables and the claims of a paper with five rows."""
    values = reported(
        tmp_path,
        "1,town,10,4,own,sse,100.0,",
        "1,town,10,4,own,balance,0.30,",
        "rival,sse,200.0",
        "rival,balance,0.30",
        "1,city,10,4,own,sse,1.0,",
        "2,town,10,,own,sse,,N/A",
        "2,town,,,data,n_nodes,7,",
    )
    own = starts("own", [100.0] * 3, lam=4, balance=0.3, n_rows=7)
    rival = starts("rival", [150.0] * 3, lam=1, balance=0.3, n_rows=7)
    given = material(own, rival, values=values, paper="p", title="P")
    labels = programs(("own", "sse", "", 100.0), kind="labels").assign(lam=4.0)
    matched = table(match={"fairness": "balance", "order": "sse"})
    make_table(replace(given, programs=labels), matched, tmp_path / "t1")
    make_table(given, table(number="2", settings={"own": {}}), tmp_path / "t2")
    claim = ClaimSpec(
        text="Own is cheaper.", check="compare", datasets=["town"], methods=["own", "rival"], metrics=["sse"]
    )
    make_claims(given, {"c": claim}, tmp_path / "claims")
    return [tmp_path / "t1.evidence.csv", tmp_path / "t2.evidence.csv"], tmp_path / "claims.csv"


def test_the_summary_counts_rows_and_not_values(files):
    board = load_evidence(files[0])
    rows = row_verdicts(board)
    assert (len(board), len(rows)) == (7, 5)
    assert rows.set_index(["table", "dataset", "method"]).verdict.to_dict() == {
        ("1", "town", "own"): "agrees",
        ("1", "town", "rival"): "agrees",
        ("1", "city", "own"): "not comparable",
        ("2", "town", "own"): "not comparable",
        ("2", "town", "data"): "agrees",
    }
    assert rows.seeds.to_list() == [3, 3, 0, 3, 1]
    counts = {"agree": 3, "agree with the program": 0, "differ": 0, "not comparable": 2}
    claims = load_claims(files[1])
    assert summary(board, {"p": claims}, {"p": "P"}) == [
        {"paper": "P", "rows": 5, **counts, "claims that hold": "1 of 1", "that hold in part": 0}
    ]
    # A claim that could not be tested or compared does not count.
    partly = claims.assign(verdict="holds in part")
    assert summary(board, {"p": partly}, {"p": "P"})[0]["that hold in part"] == 1
    other = claims.assign(verdict="not comparable")
    assert summary(board, {"p": other}, {"p": "P"})[0]["claims that hold"] == "0 of 0"
    assert summary(board, {}, {"p": "P"})[0]["claims that hold"] == "–"


def test_the_scoreboard_is_written(files, tmp_path):
    make_scoreboard(files[0], [files[1]], {"p": "Paper"}, NAMES, tmp_path / "scoreboard")
    board = load_evidence([tmp_path / "scoreboard.csv"])
    assert len(board) == 7
    text = (tmp_path / "scoreboard.md").read_text()
    head, rest = text.split("| paper | table |")
    assert "| Paper | 5 | 3 | 0 | 0 | 2 | 1 of 1 | 0 |" in head
    (own,) = [line for line in rest.splitlines() if line.startswith("| Paper | 1 | Town | 10 | Own, λ = 4 |")]
    assert "| λ = 4 | 3 | agrees | the mean over the starts has every reported value |" in own
    (rival,) = [line for line in rest.splitlines() if "| Rival |" in line]
    assert "| agrees | as fair as reported, and at a lower cost: the cause is unknown |" in rival


def test_the_picture_shows_every_compared_value(files, tmp_path):
    board = load_evidence(files[0])
    board.loc[board.metric == "balance", "reported"] = 0.0
    board.loc[0, ["value_verdict", "program_mean"]] = "agrees with the program", 90.0
    points = agreement.compared(board, {"p": "Paper"}, NAMES)
    # Two values of the first row, the cost of the second, whose balance chose the setting, and a count.
    assert points.verdict.to_list() == ["agrees"] * 3 + ["agrees with the program"]
    assert points.reported.to_list() == [0.0, 200.0, 7.0, 90.0]
    assert points.text.iloc[-1] == (
        "Paper, Table 1: Town, Own, λ = 4: SSE 100.0, program 90.0: agrees with the program"
    )
    dots = agreement.picture(points)["dots"]
    zero, ours = dots[0], dots[3]
    # A zero stands at the lower end of its axis, and a value below the reported one below the diagonal.
    left, bottom = 58, agreement.SIZE - 44
    assert zero["x"] == left and zero["y"] < bottom
    assert ours["x"] - left < bottom - ours["y"]
    publish.draw(points, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_a_run_without_papers_has_an_empty_scoreboard(tmp_path):
    make_scoreboard([], [], {}, NAMES, tmp_path / "scoreboard")
    assert load_evidence([tmp_path / "scoreboard.csv"]).empty
