import numpy as np
import pandas as pd
import pytest
from frames import cell, frame
from hypothesis import given
from hypothesis import strategies as st

from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import dominated_areas, load_leaderboard, make_leaderboard, on_equal_terms

NAMES = Names(
    datasets={"d": "Data D"}, methods={"a": "A", "b": "B", "plain": "Plain"}, ours={"a"},
    order=["plain", "a", "b"],
)  # fmt: skip


def points(*rows, dataset="d", k=3):
    """Make cells from method, cost, balance and seed (default 0). Each cost is its own setting."""
    return frame(
        cell(
            dataset, method, k, seed=seed[0] if seed else 0, params={"n": cost if not seed else 1}, sse=cost,
            balance=balance, fairness_error=1 - balance, objective=cost,
        )
        for method, cost, balance, *seed in rows
    )  # fmt: skip


def board_of(cells, fairness="balance", leaderboard=None):
    """Return the methods by rank, indexed by name, and the scores of each method on each instance."""
    board = make_leaderboard(cells, NAMES) if leaderboard is None else leaderboard
    board = board[(board.cost == "sse") & (board.fairness == fairness)]
    return board[board.dataset.isna()].set_index("method"), board[board.dataset.notna()].set_index("method")


def area(x, y):
    # The arrays also have points of other sets, before and after, which must not change the area.
    x, y = np.array([0.0, *x, 0.1]), np.array([1.0, *y, 0.5])
    found = dominated_areas(x, y, np.array([0] + [1] * (len(x) - 2) + [2]), 4)
    assert found[[0, 2, 3]].tolist() == pytest.approx([1, 0.45, 0])
    return float(found[1])


@given(st.lists(st.tuples(st.floats(-0.5, 1.5), st.floats(-0.5, 1.5)), min_size=1, max_size=8))
def test_area_against_counting(found):
    x, y = np.array(found).T
    xs, ys = np.meshgrid(*[(np.arange(100) + 0.5) / 100] * 2)
    covered = ((xs[..., None] >= x) & (ys[..., None] <= y)).any(axis=-1).mean()
    assert area(list(x), list(y)) == pytest.approx(covered, abs=0.03)


def test_scores_of_an_instance_by_hand():
    at = points(
        ("plain", 100, 0.0), ("fair", 100, 0.0), ("fair", 120, 1.0), ("half", 110, 0.5), ("far", 900, 1.0)
    )
    # The box has costs from 100 to 140 and balances from 0 to 1.
    for fairness in ("balance", "fairness_error"):
        scores = board_of(at, fairness)[1].score
        assert scores.to_dict() == pytest.approx({"plain": 0, "fair": 0.5, "half": 0.375, "far": 0})


def test_instances_that_do_not_count():
    for cells in (points(("a", 1, 0.0), ("a", 2, 1.0)), points(("a", 1, 1.0), ("b", 2, 0.5))):
        assert make_leaderboard(cells, NAMES).empty


def test_an_infinite_error_is_the_worst_and_not_the_box():
    at = points(("plain", 100, 0.0), ("a", 110, 0.5), ("b", 120, 1.0))
    at.loc[0, "fairness_error"] = np.inf
    scores = board_of(at, "fairness_error")[1].score
    assert scores["plain"] == 0
    assert scores["b"] == pytest.approx(0.5)


def test_a_method_is_compared_only_where_it_was_run():
    one = points(("plain", 100, 0.0), ("a", 115, 1.0), ("b", 110, 1.0))
    two = points(("plain", 10, 0.0), ("a", 12, 1.0), dataset="e")
    methods, instances = board_of(pd.concat([one, two], ignore_index=True))
    # b was not run on e, which does not count as zero, and it beats both rivals on the other instance.
    assert list(methods.index) == ["b", "a", "plain"]
    assert methods.wins.to_dict() == pytest.approx({"b": 1.0, "a": 0.5, "plain": 0.0})
    assert methods.instances.to_dict() == {"b": 1, "a": 2, "plain": 2}
    assert set(instances.index[instances.dataset == "e"]) == {"a", "plain"}


def test_a_method_that_failed_everywhere_has_a_zero_and_a_skipped_one_does_not_count():
    at = points(("plain", 100, 0.0), ("a", 120, 1.0), ("b", 110, 1.0))
    for status, instances in (("timeout", 1), ("skipped", 0)):
        bad = at.copy()
        bad.loc[2, ["status", "sse", "balance", "objective"]] = [status, np.nan, np.nan, np.nan]
        methods = board_of(bad)[0]
        assert methods.instances.get("b", 0) == instances
        if instances:
            assert methods.loc["b", ["score", "failed"]].tolist() == [0, 1]


def test_every_method_with_starts_gets_the_same_number():
    rows = [("plain", 100, 0.0, 0)]
    rows += [("a", 120 + seed, 1.0, seed) for seed in range(5)]
    rows += [("b", 110 + seed, 1.0, seed) for seed in range(3)]
    cells = on_equal_terms(points(*rows))
    assert cells.groupby("method").seed.nunique().to_dict() == {"plain": 1, "a": 3, "b": 3}
    assert cells.groupby("method").starts.first().to_dict() == {"plain": 1, "a": 3, "b": 3}
    # Starts within a fit count, too, so b is shown with thirty starts and a with three.
    inner = points(*rows)
    inner.loc[inner.method == "b", "params"] = '{"n": 1.0, "n_init": 10.0}'
    assert on_equal_terms(inner).groupby("method").starts.first()["b"] == 30


def test_scores_are_means_over_starts_beside_the_best():
    rows = [("plain", 100, 0.0, 0), ("a", 120, 1.0, 0), ("a", 130, 1.0, 1)]
    rows += [("b", 130, 1.0, 0), ("b", 130, 1.0, 1)]
    found = board_of(points(*rows))[1]
    # The box ends at 140, so a start at 120 dominates half of it and a start at 130 a quarter.
    assert found.loc["a", ["score", "best"]].tolist() == pytest.approx([0.375, 0.5])
    assert found.loc["a", "sd"] == pytest.approx(np.std([0.5, 0.25], ddof=1))
    assert found.loc["b", ["score", "sd", "best"]].tolist() == pytest.approx([0.25, 0, 0.25])
    assert np.isnan(found.loc["plain", "sd"])
    assert found.seconds.to_dict() == {"plain": 0.5, "a": 1.0, "b": 1.0}


def test_a_method_on_less_than_a_fifth_of_the_instances_has_no_rank():
    rows = [("plain", 100, 0.0), ("a", 120, 1.0)]
    cells = [points(*rows, k=k) for k in range(3, 8)]
    often = [*cells, points(*rows, ("b", 115, 1.0), k=8)]
    found = board_of(pd.concat(often, ignore_index=True))[0]
    assert found["rank"].fillna(0).to_dict() == {"a": 1, "plain": 2, "b": 0}
    # It is nobody's rival, so it takes no wins away.
    assert found.wins.to_dict() == {"a": 1.0, "plain": 0.0, "b": 1.0}
    fifth = [*cells[1:], points(*rows, ("b", 115, 1.0), k=8)]
    assert board_of(pd.concat(fifth, ignore_index=True))[0]["rank"].to_dict()["b"] == 1


def test_the_file_holds_every_board_with_its_starts(tmp_path):
    for cells in (points(("plain", 100, 0.0), ("a", 120, 1.0)), points(("a", 1, 1.0))[:0]):
        made = make_leaderboard(cells, NAMES)
        made.to_csv(tmp_path / "board.csv", index=False)
        read = load_leaderboard(tmp_path / "board.csv")
        pd.testing.assert_frame_equal(read, made.astype({"starts": str}), check_dtype=False)
        assert read.groupby(["cost", "fairness"]).ngroups == (2 if len(cells) else 0)
        if len(cells):
            methods, _ = board_of(cells, leaderboard=read)
            assert methods["rank"].to_dict() == {"a": 1, "plain": 2}
            assert methods.label["a"] == "A" and methods.ours["a"]
            assert methods.starts.tolist() == ["1", "1"]
