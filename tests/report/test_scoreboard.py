from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from a_paper import NAMES, reported, table
from frames import frame, starts

from fairclust.pipeline.papers import ClaimSpec
from fairclust.report.claims import make_claims
from fairclust.report.material import Material
from fairclust.report.tables import (
    count_verdicts,
    load_verdicts,
    make_scoreboard,
    make_table,
    row_verdicts,
    table_verdicts,
)


@pytest.fixture
def files(tmp_path):
    """Write the verdicts of two tables and the claims of a paper with five rows."""
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
    cells = frame([*own, *starts("rival", [150.0] * 3, lam=1, balance=0.3, n_rows=7)])
    matched = table(match={"fairness": "balance", "order": "sse"})
    labels = pd.DataFrame(
        [
            {"table": "1", "dataset": "town", "n_clusters": 10.0, "lam": 4.0, "method": "own", "metric": "sse"}
            | {"program": "theirs", "kind": "labels", "variant": "", "setting": "", "runs": 1}
            | {"mean": 100.0, "sd": np.nan, "low": 100.0, "high": 100.0}
        ]
    )  # fmt: skip
    material = Material({}, values, cells, pd.DataFrame(), NAMES, paper="p", title="P")
    make_table(replace(material, programs=labels), matched, tmp_path / "t1")
    make_table(material, table(number="2", settings={"own": {}}), tmp_path / "t2")
    claim = ClaimSpec(
        text="Own is cheaper.", check="compare", datasets=["town"], methods=["own", "rival"], metrics=["sse"]
    )
    make_claims(material, {"c": claim}, tmp_path / "claims")
    return [tmp_path / "t1.verdicts.csv", tmp_path / "t2.verdicts.csv"], tmp_path / "claims.csv"


def test_the_summary_counts_rows_and_not_values(files):
    board = load_verdicts(files[0])
    rows = row_verdicts(board)
    assert (len(board), len(rows)) == (7, 5)
    assert rows.set_index(["table", "dataset", "method"]).verdict.to_dict() == {
        ("1", "town", "own"): "reproduced",
        ("1", "town", "rival"): "better",
        ("1", "city", "own"): "not run",
        ("2", "town", "own"): "unpublished",
        ("2", "town", "data"): "reproduced",
    }
    assert rows["values"].sum() == len(board)
    assert count_verdicts(rows) == {
        "as printed": {"reproduced": 2},
        "matched fairness": {"better": 1},
        "not compared": {"not run": 1, "unpublished": 1},
    }
    # The verdict of a table as a whole is about the rows that could be compared.
    assert table_verdicts(board).to_numpy().tolist() == [
        ["p", "1", "holds in part", "1 of 2 compared rows agree; 1 better; 1 not run"],
        ["p", "2", "holds", "1 of 1 compared rows agree; 1 unpublished"],
    ]
    assert table_verdicts(board[board.verdict == "not run"]).verdict.tolist() == ["not tested"]
    assert table_verdicts(board[board.verdict == "better"]).verdict.tolist() == ["does not hold"]


def test_the_scoreboard_is_written(files, tmp_path):
    make_scoreboard(files[0], [files[1]], {"p": "Paper"}, NAMES, tmp_path / "scoreboard")
    board = load_verdicts([tmp_path / "scoreboard.csv"])
    assert len(board) == 7
    text = (tmp_path / "scoreboard.md").read_text()
    head, _, rest = text.partition("| paper |")
    assert "- Paper, as printed: 2 rows; 2 reproduced." in head
    assert "- Paper, at matched fairness: 1 row; 1 better." in head
    assert "- Paper, claims: 1; 1 holds." in head
    (own,) = [line for line in rest.splitlines() if line.startswith("| Paper | 1 | Town | 10 | Own, λ=4 |")]
    assert "| lam=4 | 3 | SSE 100.0 ± 0.0 (100.0; 0.0 %; labels 100.0) agrees; Balance 0.3" in own
    (rival,) = [line for line in rest.splitlines() if "| Rival |" in line]
    assert "SSE 150.0 ± 0.0 (200.0; -25.0 %) lower" in rival
    assert "| better | unknown | reason not known |" in rival
    assert "5 rows hold 7 reported values." in text


def test_a_run_without_papers_has_an_empty_scoreboard(tmp_path):
    make_scoreboard([], [], {}, NAMES, tmp_path / "scoreboard")
    assert load_verdicts([tmp_path / "scoreboard.csv"]).empty
