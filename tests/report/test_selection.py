import pytest
from a_paper import reported
from frames import frame, starts

from fairclust.pipeline.papers import MatchSpec
from fairclust.report.selection import at_level, choose, reported_level

BY_LAM = MatchSpec(fairness="fairness_error")
BY_COST = MatchSpec(fairness="fairness_ratio", order="sse")


@pytest.mark.parametrize("metric, sign", [("balance", 1), ("fairness_error", -1)])
def test_a_front_is_read_between_the_settings_on_both_sides_of_the_level(metric, sign):
    rows = [(sign * fair + (sign < 0), cost) for fair, cost in ((0.2, 60.0), (0.4, 90.0), (0.8, 110.0))]
    cells = frame(
        cell
        for lam, (fair, cost) in enumerate(rows)
        for cell in starts("own", [cost], lam=lam, **{metric: fair})
    )
    found = at_level(cells, sign * 0.6 + (sign < 0), MatchSpec(fairness=metric, order="sse"))
    assert found.setting == "between lam=1 and lam=2"
    assert found.spread("sse").mean == pytest.approx(100)


def test_levels_are_within_the_printed_digits(tmp_path):
    values = reported(
        tmp_path,
        "own,fairness_error,0.02",
        "rival,sse,100",
        "2,town,10,,own,balance,0.30,",
        "2,town,10,4,rival,balance,0.40,",
        "2,town,10,9,rival,balance,0.45,",
    )
    assert reported_level(BY_LAM, "1", values, "town", "own") == (0.02, pytest.approx(0.025))
    assert reported_level(BY_LAM, "1", values, "town", "rival") is None
    assert reported_level(BY_LAM, "1", values, "town", "rival", own="own")[1] == pytest.approx(0.025)
    assert reported_level(BY_LAM, "1", values, "town", "own", n_clusters=5) is None
    other = MatchSpec(fairness="balance", table="2")
    # Here 2 % is more than half a unit of the last digit.
    assert reported_level(other, "1", values, "town", "rival", lam=4.0) == (0.4, pytest.approx(0.392))
    assert reported_level(other, "1", values, "town", "rival") == (0.45, pytest.approx(0.441))
    assert reported_level(other, "1", values, "city", "own") is None


def test_a_level_at_its_edge_is_reached():
    # In floating point .7 + .1 is slightly less than .8.
    for error, is_reached in ((0.8, True), (0.8001, False)):
        cells = frame(starts("own", [1.0], fairness_error=error))
        assert choose(cells, 0.7 + 0.1, BY_LAM).reached == is_reached
