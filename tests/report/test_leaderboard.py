import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairclust.metrics.table import METRICS
from fairclust.report.leaderboard import dominated_area, instance_scores, leaderboard, pareto, settings

numbers = st.floats(0, 10, allow_nan=False).map(lambda value: round(value, 1))


def points(*rows, dataset="d", k=3):
    """Rows of method, cost, balance."""
    return pd.DataFrame(
        [
            {
                **dict.fromkeys(METRICS, np.nan),
                **{"dataset": dataset, "n_clusters": k, "method": m, "sse": c, "balance": b},
                **{"fairness_error": 1 - b, "params": f'{{"n": {i}}}', "status": "ok", "seed": 0},
                **{"lam": np.nan, "objective": c},
            }
            for i, (m, c, b) in enumerate(rows)
        ]
    )


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), st.booleans())
def test_front_against_its_definition(found, higher):
    cost, fair = np.array(found).T
    gain = fair if higher else -fair
    slow = [
        not any(
            cost[j] <= cost[i] and gain[j] >= gain[i] and (cost[j] < cost[i] or gain[j] > gain[i])
            for j in range(len(cost))
        )
        for i in range(len(cost))
    ]
    assert pareto(cost, fair, higher).tolist() == slow


def test_what_is_not_finite_is_never_on_the_front():
    on = pareto(np.array([1, 2, np.nan, 3]), np.array([np.inf, 0.5, 0.1, np.nan]), higher=False)
    assert on.tolist() == [False, True, False, False]


def test_area_by_hand():
    assert dominated_area(np.array([0.0]), np.array([1.0])) == 1
    assert dominated_area(np.array([0.5, 0.0]), np.array([1.0, 0.5])) == pytest.approx(0.75)
    # Beaten points, and points outside of the box, add nothing.
    area = dominated_area(np.array([0.5, 0.0, 0.6, 1.5, 0.2]), np.array([1.0, 0.5, 0.7, 2.0, -1.0]))
    assert area == pytest.approx(0.75)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=8))
def test_area_against_counting(found):
    x, y = np.array(found).T
    xs, ys = np.meshgrid(*[(np.arange(200) + 0.5) / 200] * 2)
    covered = ((xs[..., None] >= x) & (ys[..., None] <= y)).any(axis=-1).mean()
    assert dominated_area(x, y) == pytest.approx(covered, abs=0.02)


def test_scores_of_an_instance_by_hand():
    at = points(
        ("plain", 100, 0.0), ("fair", 100, 0.0), ("fair", 120, 1.0), ("half", 110, 0.5), ("far", 900, 1.0)
    )
    # The box: costs from 100 to 140, balance from 0 to 1.
    scores = instance_scores(at, "sse", "balance")
    assert scores == pytest.approx({"plain": 0, "fair": 0.5, "half": 0.375, "far": 0})
    assert instance_scores(at, "sse", "fairness_error") == pytest.approx(scores)


def test_instances_that_do_not_count():
    assert instance_scores(points(("a", 1, 0.0), ("a", 2, 1.0)), "sse", "balance") is None
    assert instance_scores(points(("a", 1, 1.0), ("b", 2, 0.5)), "sse", "balance") is None
    assert instance_scores(points(("a", 1, 1.0), ("b", 2, 0.5)), "ncut", "balance") is None


def test_an_infinite_error_is_the_worst_and_not_the_box():
    at = points(("plain", 100, 0.0), ("a", 110, 0.5), ("b", 120, 1.0))
    at.loc[0, "fairness_error"] = np.inf
    scores = instance_scores(at, "sse", "fairness_error")
    assert scores["plain"] == 0
    assert scores["b"] == pytest.approx(0.5)


def test_ranks_ties_and_missing_methods():
    one = points(("plain", 100, 0.0), ("a", 120, 1.0), ("b", 120, 1.0))
    two = points(("plain", 10, 0.0), ("a", 12, 1.0), dataset="e")
    board = leaderboard(pd.concat([one, two]), ["plain", "b", "a", "gone"], "sse", "balance")
    assert list(board.index) == ["a", "plain", "b", "gone"]
    assert board.loc["a", "mean_rank"] == (1.5 + 1) / 2
    assert board.loc["b", "mean_rank"] == (1.5 + 4) / 2
    assert board.loc["plain", "mean_rank"] == (3 + 2) / 2
    assert board.loc["gone", "mean_rank"] == 4
    assert board.loc["b", "mean_score"] == pytest.approx(0.25)
    assert board.covered.to_dict() == {"a": 2, "b": 1, "plain": 2, "gone": 0}
    assert np.isnan(board[("e", 3)].loc["b"])


def test_settings_are_the_best_starts():
    starts = pd.concat(
        [points(("a", 5, 0.5)), points(("a", 4, 0.4)), points(("a", 3, 0.9)).assign(status="error")]
    )
    assert settings(starts).sse.tolist() == [4]
    assert settings(starts[:0]).empty
