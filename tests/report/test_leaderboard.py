import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from frames import cell, frame

from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import (
    compared,
    cost_at,
    deviation,
    instances_of,
    interval,
    kinds_of_data,
    load_leaderboard,
    make_leaderboard,
    mean_ranks,
    place_labels,
)
from fairclust.report.page_tables import leaderboards

NAMES = Names(
    datasets={"d": "Data D"},
    methods={"mine": "Mine", "other": "Other", "random": "Random", "famous": "Famous et al."},
    families={"random": "control"},
    ours={"mine", "mine_too"},
)


def points(*rows, dataset="d", k=3, **more):
    """Make cells from method, cost, fairness ratio and seed (default 0). Each cost is its own setting of a start."""
    return frame(
        cell(
            dataset, method, k, seed=seed[0] if seed else 0, params={"n": cost if not seed else ratio}, sse=cost,
            fairness_ratio=ratio, objective=cost, n_nonempty=k, **more,
        )
        for method, cost, ratio, *seed in rows
    )  # fmt: skip


def board_of(*parts):
    """Return the leaderboard of cells."""
    return make_leaderboard(pd.concat(parts, ignore_index=True), NAMES)


def shown(board):
    """Return what the page shows of the only cost."""
    (found,) = leaderboards(board, NAMES)
    return found


def summary(board, level=None):
    rows = board[(board.cost == "sse") & board.dataset.isna()]
    return rows[rows.level.isna() if level is None else rows.level == level].set_index("method")


def test_deviation_of_shares_by_hand():
    # Groups of 60 and 40 rows: the second cluster should have 30 and 20.
    assert deviation([[30, 30], [20, 20]]) == 0
    assert deviation([[31, 29], [20, 20]]) == 0  # one row more or less does not count
    assert deviation([[40, 20], [10, 30]]) == pytest.approx(1 - 11 / 20)
    assert deviation([[60, 0], [40, 0]]) == math.inf


def test_the_front_of_a_start_is_read_between_neighbouring_settings():
    costs, unfair = np.array([100.0, 110.0, 140.0]), np.array([0.6, 0.31, 0.0])
    # Half way between .31 and .6 lies .455, and one percentage point is allowed.
    assert cost_at(0.445, costs, unfair) == (pytest.approx(105), 110)
    assert cost_at(0.6, costs, unfair) == (100, 100)
    assert cost_at(0.0, costs[:2], unfair[:2]) == (math.inf, math.inf)
    # The two settings differ too much in their costs, or in their deviations.
    assert cost_at(0.445, np.array([100.0, 110.1]), unfair[:2]) == (110.1, 110.1)
    assert cost_at(0.445, costs[:2], np.array([0.6, 0.29])) == (110, 110)
    # Labels reach a level as clusterings do.
    beside = place_labels(points(("mine", 100, 1.0)), "sse", 100.0, 0.11 + 1e-12)
    assert beside.reached.tolist() == [False, True, True, True]


def test_no_cost_between_two_settings_is_the_best_known():
    rows = [("mine", 106, 0.55), ("other", 100, 0.4), ("other", 110, 0.6)]
    board = board_of(points(*rows))
    # Between its settings, the other method would cost 104.5.
    assert instances_of(board, "sse", 0.5).iloc[0].to_dict() == {"mine": 106, "other": 106}


def test_distances_are_medians_over_starts_and_what_is_not_reached_is_infinite():
    rows = [("mine", 100 + seed, 1.0, seed) for seed in range(3)]
    rows += [("other", 110, 1.0, 0), ("other", 90, 0.7, 1)]
    board = board_of(points(*rows))
    values = instances_of(board, "sse", 0.0)
    # One of the two starts of the other method does not reach the level, and the larger of two middle values counts.
    assert values.mine.tolist() == [101] and values.other.tolist() == [math.inf]
    assert summary(board, 0.0).excess.to_dict() == {"mine": pytest.approx(0.01), "other": math.inf}
    assert summary(board, 0.5).excess["mine"] == pytest.approx(101 / 90 - 1)
    assert summary(board).reached.to_dict() == {"mine": 4, "other": 1}


def test_a_method_is_compared_where_it_was_run_and_has_the_cost():
    fits = ["d late timeout", "d absent skipped", "d partly ok", "d partly skipped", "d partly unscored"]
    # One method has another cost, and fails on the first data set as the other one does.
    fits += ["d graph timeout", "e graph unscored", "d slow timeout", "e slow ok"]
    cells = [points(("mine", 100, 1.0), dataset=name) for name in "de"]
    for dataset, method, status in map(str.split, fits):
        row = (method, 100 if status == "ok" else math.nan, 1.0)
        cells.append(points(row, dataset=dataset, status=status.replace("unscored", "ok")))
    found = board_of(*cells).query("level == 0 and dataset.notna() and method != 'mine'")
    expected = {("d", "late", math.inf, 1), ("d", "partly", 100, 1), ("d", "slow", math.inf, 1)}
    expected.add(("e", "slow", 100, 0))
    assert set(zip(found.dataset, found.method, found.value, found.failed, strict=True)) == expected


def test_a_method_that_is_worse_than_random_labels_is_shown_as_such():
    rows = [("mine", 100, 1.0), ("random", 200, 0.97), ("famous", 230, 1.0), ("other", 150, 0.5)]
    board = board_of(*(points(*rows, dataset=name) for name in "abc"))
    # It is perfectly fair, and fairer than the other one, but labels drawn at random would be cheaper.
    assert summary(board).worse.to_dict() == {"mine": 0, "other": 0, "random": 1, "famous": 1}
    assert list(summary(board).index) == ["mine", "other", "random", "famous"]
    found = shown(board)
    labels = [row["Method"] for row in found["table"].records]
    assert labels == ["Mine (ours)", "Other", "Random", "Famous et al., no better than random labels"]


def test_random_labels_under_a_good_name_are_shown_as_such():
    # The luckiest of many draws costs 1 % less than the others. A method without any result is not judged.
    rows = [("mine", 100, 1.0), ("other", 190, 1.0)]
    rows += [("random", 200, 0.97, seed) for seed in range(5)]
    rows += [("famous", 200 - seed / 2, 1.0, seed) for seed in range(5)]
    worse = summary(board_of(points(*rows), points(("late", 1, 1.0), status="timeout"))).worse
    assert worse.to_dict() == {"mine": 0, "other": 0, "late": 0, "random": 1, "famous": 1}


def test_plain_kmeans_with_random_labels_for_fairness_is_no_fair_method():
    rows = [("mine", 110, 0.99), ("other", 130, 0.95), ("random", 400, 0.95), ("famous", 100, 0.3)]
    rows += [("famous", 400, 0.95)]
    cells = pd.concat([points(*rows, dataset=name) for name in "abc"], ignore_index=True)
    board = board_of(cells)
    # Its only setting that is fair enough has random labels, so that its cost at every level is theirs.
    assert set(instances_of(board, "sse").famous) == {math.inf, 400}
    assert summary(board).worse.to_dict() == {"mine": 0, "other": 0, "random": 1, "famous": 1}
    assert set(summary(board).index[-2:]) == {"famous", "random"}
    # Where the other methods are unfair, the first screen names neither.
    few = shown(board_of(cells[~cells.method.isin(["mine", "other"])]))
    assert {text for row in few["kinds"].records for text in list(row.values())[2:]} == {"–"}
    assert few["random"] == "Famous et al."


def test_few_data_sets_have_no_interval_and_starts_are_a_range():
    rows = [("mine", 100, 1.0), ("other", 110, 1.0)]
    cells = [points(*rows, dataset=name) for name in "abcd"] + [points(("mine", 100, 1.0, 1), dataset="a")]
    for dataset, expected in ((None, "0.0 %, 4 of 4"), ("e", "0.0 % (0.0–0.0 %), 5 of 5")):
        cells += [] if dataset is None else [points(*rows, dataset=dataset)]
        mine = shown(board_of(*cells))["table"].records[0]
        assert (mine["Within 0 %"], mine["Starts"]) == (expected, "1–2")


def test_the_first_sentence_says_where_ours_lose():
    one = points(("mine", 100, 1.0), ("other", 80, 1.0))
    two = points(("mine", 100, 1.0), ("other", 120, 1.0), ("other", 99, 0.5), dataset="e")
    board = board_of(one, two)
    found = shown(board)
    where = "5 of 8 settings (a data set, a K and a level of fairness)"
    assert found["losses"] == f"Our methods lose on {where}, by more than 0.1 %."
    how_often = "on 3 of 8 settings, and dearer on 5."
    assert found["duel"] == f"Mine (ours) is cheaper than Other, the best of all others, {how_often}"
    values = instances_of(board, "sse", 0.0)
    assert compared(values["mine"], values["other"]) == (1, 1, 2)
    assert {row["Place"] for row in found["kinds"].records} == {"cheapest", "cheapest of others"}


def test_where_ours_were_not_run_they_do_not_lose():
    tried = points(("mine", 90, 1.0), ("other", 100, 1.0))
    absent = points(("other", 80, 1.0), ("famous", 90, 1.0), dataset="e")
    alone = points(("mine", 90, 1.0), ("mine_too", 95, 1.0), dataset="f")
    said = shown(board_of(tried, absent, alone))["losses"]
    assert said.startswith("No other method is cheaper than ours on any of 4 settings")


def test_kinds_of_data_leave_out_data_with_few_methods():
    names = ("mine", "other", "famous", "third", "fourth")
    full = points(*((name, 100 + place, 1.0) for place, name in enumerate(names)))
    thin = points(("other", 99, 1.0), ("famous", 98, 1.0), dataset="e")
    board = board_of(full, thin)
    (methods,) = [methods for _, level, methods in kinds_of_data(board, "sse") if level == 0]
    assert methods.method.tolist() == list(names)


def test_kinds_of_data_need_all_of_their_instances():
    small = points(("mine", 100, 1.0), ("other", 99, 1.0), n_rows=50)
    large = points(("mine", 100, 1.0), ("other", 110, 1.0), dataset="e", n_rows=20_000)
    again = points(("mine", 100, 1.0), ("famous", 90, 1.0), dataset="f", n_rows=20_000)
    board = board_of(small, large, again)
    found = {kind: methods for kind, level, methods in kinds_of_data(board, "sse") if level == 0}
    assert found["below 10,000 rows, two groups (1 data set)"].method.tolist() == ["other", "mine"]
    assert found["10,000 rows or more, two groups (2 data sets)"].method.tolist() == ["mine"]


def test_a_kind_of_data_is_one_whatever_levels_its_data_reach():
    both = points(("mine", 100, 1.0), ("other", 110, 1.0))
    unfair = points(("mine", 100, 0.6), ("famous", 110, 0.6), dataset="e")
    board = board_of(both, unfair, points(("other", 90, 0.6), ("famous", 110, 0.6), dataset="f"))
    kinds = [(kind, level, methods.method.tolist()) for kind, level, methods in kinds_of_data(board, "sse")]
    assert {kind for kind, *_ in kinds} == {"10,000 rows or more, two groups (3 data sets)"}
    # No method was run on all three.
    assert [names for _, level, names in kinds if level == 0.5] == [[]]
    assert len(shown(board)["kinds"].records) == 2


def test_a_data_set_that_is_drawn_twice_has_other_starts():
    starts = [0, 0, 0, 0, 0, 1, 1]
    excess = pd.DataFrame(
        [(d, 2, value) for d in range(5) for value in starts], columns=["dataset", "n_clusters", "excess"]
    )
    # A median of starts is 1 in 11 % of the samples, and three of five in 1.1 %; with shared starts it would be 5 %.
    assert interval(excess) == (0, 0)


def test_the_interval_against_a_plain_loop():
    rng = np.random.default_rng(1)
    rows = [
        (d, k, 0.1 * d + 0.02 * k + 0.1 * rng.random()) for d in range(5) for k in range(3) for _ in range(4)
    ]
    excess = pd.DataFrame(rows, columns=["dataset", "n_clusters", "excess"])
    again, of = [], {at: part.excess.tolist() for at, part in excess.groupby(["dataset", "n_clusters"])}
    for _ in range(2000):
        medians = []
        for d in rng.integers(5, size=5):
            for k in range(3):
                medians.append(sorted(rng.choice(of[d, k]) for _ in range(4))[2])
        again.append(sorted(medians)[7])
    assert interval(excess) == pytest.approx(np.quantile(again, [0.025, 0.975]), abs=0.01)


def test_the_file_holds_the_leaderboard(tmp_path):
    stated = json.dumps({"cost_": 100, "lower_bound_": 99.0, "gap_": 0.02})
    rows = points(("mine", 100, 1.0), ("other", 110, 0.9), estimator=stated)
    for cells in (rows, rows[:1]):
        made = board_of(cells)
        made.to_csv(tmp_path / "board.csv", index=False)
        read = load_leaderboard(tmp_path / "board.csv")
        pd.testing.assert_frame_equal(read, made, check_dtype=False)
        assert len(read) == (0 if len(cells) == 1 else len(read))
    assert summary(board_of(rows)).certified["mine"] == 0.02


def test_the_critical_difference_is_that_of_demsar():
    names, n = ("a", "b", "c", "d", "e"), 10
    cells = []
    for data in range(n):
        # The first two costs are equal.
        costs = [100, 100.05, *(120 + (place + data) % 3 for place in range(3))]
        rows = [(name, cost, 1.0) for name, cost in zip(names, costs, strict=True)]
        cells += [points(*rows, dataset=str(data), k=k) for k in (2, 3)]
    ranks, differ, p = mean_ranks(board_of(*cells), "sse", 0.1)
    # Demsar (2006), Table 5: q of 2.728 for five methods at 5 %. A block is a data set, with both of its K.
    assert differ == pytest.approx(2.728 * math.sqrt(5 * 6 / (6 * n)), abs=1e-3)
    assert ranks["a"] == ranks["b"] == 1.5 and ranks.sum() == pytest.approx(15) and p < 0.05


def test_methods_of_one_family_compare_nothing():
    cells = [points(("mine", 9.0, 1.0), (other, 8.0, 1.0), dataset=other) for other in ("other", "famous")]
    board = make_leaderboard(pd.concat(cells), replace(NAMES, families={"mine": "one", "other": "one"}))
    assert set(board.dataset.dropna()) == {"famous"} and board.excess.notna().all()


def test_a_best_known_cost_of_zero_has_no_distance_but_losses():
    one = points(("mine", 100, 1.0), ("other", 110, 1.0))
    zero = points(("mine", 5, 1.0), ("other", 0, 1.0), dataset="e")
    alone = points(("mine", 5, 1.0), ("famous", 0, 1.0), dataset="f")
    board = board_of(one, zero, alone)
    found = shown(board)
    assert found["losses"].startswith("Our methods lose on 8 of 12 settings")
    mine, other = found["table"].records
    assert (mine["Within 0 %"], other["Within 0 %"]) == ("0.0 %, 1 of 1", "10.0 %, 1 of 1")
    assert make_leaderboard(zero, NAMES).empty
