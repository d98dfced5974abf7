import math

import numpy as np
import pandas as pd
import pytest

from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import Names
from fairclust.report.scoreboard import VERDICTS, judge, load_reasons, scoreboard, totals, write_scoreboard
from fairclust.reported import PAPERS, load_reported


def cell(dataset, method, k, lam, seed=0, status="ok", reason="", **metrics):
    return {
        **dict.fromkeys(METRICS, np.nan),
        **{"dataset": dataset, "method": method, "n_clusters": k, "lam": lam, "seed": seed},
        **{"status": status, "reason": reason, "objective": np.nan, "params": f'{{"lam": {lam}}}'},
        **{"n_rows": 100.0, "n_groups": 2.0},
        **metrics,
    }


@pytest.fixture(scope="module")
def board():
    scores = pd.DataFrame(
        [
            # Within the level 0.0185: cost 2 % above, fairness as printed, balance better by a third.
            cell("adult", "vfc_kmeans", 10, 9000.0, sse=10183.0, fairness_error=0.0184, balance=0.60),
            # Not fair enough by far, and cheap for that reason alone.
            cell("bank_3", "vfc_kmeans", 10, 0.0, sse=4900.0, fairness_error=0.95, balance=0.01),
            cell("bank_3", "vfc_kmeans", 10, 6000.0, sse=5000.0, fairness_error=0.90, balance=0.01),
            cell("census_ii", "vfc_kmeans", 20, 1.0, status="skipped", reason="no network\nmore"),
            cell("synthetic", "vfc_kmeans", 3, 1.0, sse=1.0, fairness_error=0.0, balance=1.0),
            cell("lastfm", "other", 4, 1.0, n_rows=5678.0, n_groups=5.0),
        ]
    )
    return scoreboard(scores)


def at(board, table, dataset, method="vfc_kmeans"):
    rows = board[(board.table == table) & (board.dataset == dataset) & (board.method == method)]
    return rows.set_index("metric")


def test_every_reported_cell_has_a_verdict(board):
    reported = load_reported()
    pd.testing.assert_frame_equal(board[reported.columns], reported)
    assert set(board.verdict) <= set(VERDICTS)
    silent = board[board.verdict.isin(["worse", "less fair", "not run", "not published enough"])]
    assert (silent.remark != "").all()
    assert (board.verdict.isin(["not run", "not published enough"]) == board.reproduced.isna()).all()


def test_verdicts_of_a_table(board):
    adult = at(board, "3", "adult")
    assert adult.loc["sse", "verdict"] == "reproduced"
    assert adult.loc["sse", "difference"] == pytest.approx(10183 / 9984.01 - 1)
    assert adult.loc["fairness_error", "verdict"] == "reproduced"
    assert adult.loc["balance", "verdict"] == "better"


def test_a_cost_without_the_fairness_is_not_called_better(board):
    bank = at(board, "3", "bank_3")
    assert bank.loc["sse", "verdict"] == "less fair"
    assert bank.loc["fairness_error", "verdict"] == "worse"
    assert "no setting of the grid meets the level" in bank.loc["sse", "remark"]


def test_why_there_is_no_value(board):
    assert at(board, "3", "census_ii").loc["sse", "remark"] == "skipped: no network"
    assert at(board, "3", "adult", "bera").loc["sse", "remark"] == "this method is not in the run"
    assert at(board, "3", "synthetic").loc["sse", "remark"] == "not run with K = 2"
    assert (
        at(board, "4", "synthetic_unequal", "vfc_ncut").loc["ncut", "remark"]
        == "this data set is not in the run"
    )
    missing = at(board, "4", "bank_3", "fair_sc").loc["ncut"]
    assert missing.verdict == "not published enough"
    assert missing.remark == "not available in the paper"


def test_counts_of_a_data_set_are_cells_too(board):
    data = at(board, "text", "lastfm", "data")
    assert data.loc["n_nodes", "verdict"] == "reproduced"
    assert data.loc["n_groups", "verdict"] == "worse"


@pytest.mark.parametrize(
    "metric, reported, value, decimals, verdict",
    [
        ("sse", 100.0, 105.0, 1, "reproduced"),
        ("sse", 100.0, 105.1, 1, "worse"),
        ("sse", 100.0, 94.9, 1, "better"),
        ("balance", 0.50, 0.40, 2, "worse"),
        ("balance", 0.50, 0.60, 2, "better"),
        # In its printed digits: 0.02 stands for anything from 0.015 to 0.025.
        ("fairness_error", 0.02, 0.025, 2, "reproduced"),
        ("fairness_error", 0.02, 0.0251, 2, "worse"),
        ("fairness_error", 0.0, 0.004, 2, "reproduced"),
        ("fairness_error", 0.0, 0.006, 2, "worse"),
        ("fairness_error", 0.5, math.inf, 2, "worse"),
        ("seconds", 100.0, 10.0, 1, "better"),
        ("accuracy", 0.5, 0.6, 2, "better"),
        ("nll", -10.0, -12.0, 1, "better"),
        # Printed as 11.167 in units of 1e5.
        ("sse", 1116700.0, 1116749.0, -2, "reproduced"),
    ],
)
def test_judgement(metric, reported, value, decimals, verdict):
    assert judge(metric, reported, value, decimals) == verdict


def test_totals_add_up(board):
    counted = totals(board).set_index("paper")
    assert (counted[list(VERDICTS)].sum(axis=1) == counted.cells).all()
    assert counted.loc["all", "cells"] == len(board)
    assert (counted.drop("all").sum() == counted.loc["all"]).all()
    assert list(counted.index) == [*(paper.short_name for paper in PAPERS.values()), "all"]


def test_reasons_name_cells_that_exist():
    reported, reasons = load_reported(), load_reasons()
    assert set(reasons.kind) <= {"deviation", "unpublished"}
    assert (reasons.reason != "").all()
    for reason in reasons.itertuples():
        rows = reported
        for name in ("paper", "table", "dataset", "method", "metric"):
            wanted = getattr(reason, name)
            rows = rows if wanted == "*" else rows[rows[name] == wanted]
        assert len(rows), reason


def test_the_scoreboard_is_written(board, tmp_path):
    scores = pd.DataFrame([cell("adult", "vfc_kmeans", 10, 9000.0, sse=10183.0, fairness_error=0.018)])
    write_scoreboard(scores, Names({"adult": "Adult"}, {}), tmp_path / "reproduction")
    table = pd.read_csv(tmp_path / "reproduction.csv")
    assert len(table) == len(load_reported())
    text = (tmp_path / "reproduction.md").read_text()
    assert "| VFC | 3 | Adult | VFC K-means | SSE | 9,984.01 | 10,183.00 | +2.0 % | reproduced |" in text
    assert text.index("- VFC: 90 cells; 2 reproduced") < text.index("| paper |")
