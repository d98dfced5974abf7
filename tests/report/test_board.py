"""The board of runs and submissions. Its fronts and ranks are compared with a slow implementation."""

import math

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame

from fairclust.metrics.table import METRICS
from fairclust.pipeline.submissions import NOTIONS, SubmissionError
from fairclust.report.board import (
    FROM_LABELS,
    MOST_COST,
    VERIFIED,
    make_board,
    rank_methods,
    verified_points,
    write_board,
)
from fairclust.report.names import Names


def point(cost, balance, method="a", dataset="adult", k=10, status=VERIFIED, **more):
    values = {"sse": cost, "balance": balance, "data_hash": "d"}
    own = {"dataset": dataset, "n_clusters": k, "method": method, "setting": "", "status": status}
    return own | values | more


def board_of(*points):
    return make_board(pd.DataFrame(points))


def slow_ranks(cost, fairness, higher):
    """Remove one front after the other. Each front is found by comparing all pairs of points."""
    sign = 1 if higher else -1
    left = {i for i in range(len(cost)) if math.isfinite(cost[i]) and math.isfinite(fairness[i])}
    cheapest = min((cost[i] for i in range(len(cost)) if math.isfinite(cost[i])), default=0)
    left -= {i for i in left if cost[i] > MOST_COST * cheapest}
    ranks, rank = [None] * len(cost), 0
    while left:
        rank += 1
        front = [
            i
            for i in left
            if not any(
                cost[j] <= cost[i]
                and sign * fairness[j] >= sign * fairness[i]
                and (cost[j], fairness[j]) != (cost[i], fairness[i])
                for j in left
            )
        ]
        for i in front:
            ranks[i] = rank
        left -= set(front)
    return ranks


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("seed", range(5))
def test_ranks_agree_with_a_slow_implementation(notion, seed):
    rng = np.random.default_rng(seed)
    metric = NOTIONS[notion]
    cost = rng.integers(100, 260, 40).astype(float)
    fairness = rng.integers(0, 12, 40) / 12
    cost[3], fairness[5], fairness[6] = np.nan, np.nan, np.inf
    pairs = zip(cost, fairness, strict=True)
    board = board_of(*(point(c, 0.5, method=str(i)) | {metric: f} for i, (c, f) in enumerate(pairs)))
    board = board.assign(order=board.method.astype(int)).sort_values("order")
    found = [None if pd.isna(rank) else int(rank) for rank in board[f"{notion}_rank"]]
    assert found == slow_ranks(cost, fairness, METRICS[metric].direction == "higher")
    assert board[f"{notion}_front"].tolist() == [rank == 1 for rank in found]


def test_data_sets_and_k_are_ranked_separately_and_high_costs_have_no_rank():
    board = board_of(
        point(100, 0.2), point(150, 0.4), point(160, 0.3), point(201, 0.9),
        point(900, 0.1, k=5), point(1, 0.0, dataset="bank"),
    )  # fmt: skip
    ranks = board.set_index(["dataset", "n_clusters", "cost"]).balance_rank
    assert ranks.loc["adult", 10].tolist() == [1, 1, 2, pd.NA]
    assert ranks.loc["adult", 5].tolist() == ranks.loc["bank", 10].tolist() == [1]


def test_points_that_differ_by_rounding_alone_are_both_on_the_front():
    board = board_of(point(100, 0.3), point(100 * (1 + 1e-13), 0.3 - 1e-14, method="b", status=FROM_LABELS))
    assert board.balance_front.tolist() == [True, True]


def test_a_graph_is_compared_by_its_cut():
    board = board_of(
        point(np.nan, 0.2, dataset="lastfm", ncut=0.5),
        point(np.nan, 0.1, dataset="lastfm", ncut=0.4),
        point(9, 0.2),
    )
    assert board.cost_metric.tolist() == ["sse", "ncut", "ncut"]
    assert board.cost.tolist() == [9, 0.4, 0.5]


def test_methods_are_ranked_by_the_mean_of_their_best_ranks():
    board = board_of(
        point(100, 0.2, "a"), point(120, 0.3, "a"), point(130, 0.25, "b"), point(140, 0.5, "c"),
        point(100, 0.2, "b", k=5), point(100, 0.1, "a", k=5),
    )  # fmt: skip
    found = rank_methods(board, "balance").set_index("method")
    assert found.mean_rank.to_dict() == {"c": 1.0, "a": 1.5, "b": 1.5}
    assert found.data_sets.to_dict() == {"c": 1, "a": 2, "b": 2}
    assert found.on_front.to_dict() == {"c": 1, "a": 1, "b": 1}


def test_a_submission_of_other_data_than_the_run_is_refused():
    with pytest.raises(SubmissionError, match="'mine' on 'adult' was scored on other data"):
        board_of(point(1, 0.5), point(1, 0.5, "mine", status=FROM_LABELS, data_hash="e"))
    # Where the run has no such data set, there is nothing to compare with.
    board_of(point(1, 0.5), point(1, 0.5, "mine", "bank", status=FROM_LABELS, data_hash="e"))


def test_a_run_gives_the_best_start_of_every_setting():
    scores = frame(
        [
            cell(lam=1, seed=0, sse=11.0, balance=0.2, objective=5.0),
            cell(lam=1, seed=1, sse=12.0, balance=0.3, objective=4.0),
            cell(lam=2, seed=0, sse=13.0, balance=0.4, objective=4.0),
            cell(lam=2, seed=1, status="timeout"),
        ]
    ).drop(columns="proportionality")  # older scores have fewer metrics
    points = verified_points(scores, Names(methods={"vfc_kmeans": "VFC"}))
    assert points[["method", "setting", "sse", "balance"]].values.tolist() == [
        ["VFC", "lam=1", 12.0, 0.3],
        ["VFC", "lam=2", 13.0, 0.4],
    ]
    board = make_board(points)
    assert set(board.status) == {VERIFIED} and board.balance_rank.tolist() == [1, 1]
    assert board.proportional_rank.isna().all()


def test_names_of_strangers_are_escaped_on_the_page(tmp_path):
    evil = "<script>alert(1)</script> | x"
    board = board_of(
        point(1, 0.5, evil, status=FROM_LABELS, paper="https://example.org", submitted="2026-01-01")
    )
    paths = write_board(board, Names(), {}, "0.1", tmp_path)
    assert [path.name for path in paths] == ["board.csv", "board.parquet", "board.md"]
    text = paths[2].read_text()
    assert "<script>" not in text and r"alert(1)&lt;/script&gt; \| x" in text
    assert pd.read_csv(paths[0]).method.tolist() == pd.read_parquet(paths[1]).method.tolist() == [evil]
