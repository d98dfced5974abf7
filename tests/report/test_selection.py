from pathlib import Path

import pytest
from a_paper import reported
from frames import cell, frame, starts

from fairclust.pipeline.papers import MatchSpec
from fairclust.report.selection import at_level, choose, reported_level, shareable

BY_LAM = MatchSpec(fairness="fairness_error")


def test_the_first_setting_that_is_fair_enough():
    grid = [(500, 1, 0.7, 480.0), (1800, 1, 0.81, 518.0), (1800, 9, 0.805, 515.0), (5000, 1, 0.9, 530.0)]
    cells = frame(
        cell("town", "own", 3, lam, 0, params={"rho": rho}, fairness_ratio=ratio, sse=sse, objective=rho)
        for rho, lam, ratio, sse in grid
    )
    choice = at_level(cells, 0.8, MatchSpec(fairness="fairness_ratio"))
    assert (choice.spread("sse").mean, choice.setting) == (518.0, "λ = 1, rho = 1,800")
    # The smallest lambda has three settings, of which the one with the lowest objective is chosen.
    assert at_level(cells, 0.6, MatchSpec(fairness="fairness_ratio")).spread("sse").mean == 480.0
    assert choose(cells).spread("sse").mean == 480.0
    assert (
        at_level(cells, 0.8, MatchSpec(fairness="fairness_ratio", order="fairness_ratio")).setting
        == "λ = 1, rho = 5,000"
    )
    assert choose(cells, "fairness_ratio").spread("sse").mean == 530.0
    assert choose(cells, "sse").setting == "λ = 1, rho = 500"


def test_a_front_of_a_metric_that_should_be_high_is_read_between_settings():
    cells = frame(
        cell
        for lam, (fair, cost) in enumerate(((0.2, 60.0), (0.4, 90.0), (0.8, 110.0)))
        for cell in starts("own", [cost], lam=lam, balance=fair)
    )
    found = at_level(cells, 0.6, MatchSpec(fairness="balance", order="sse"))
    assert found.setting == "between λ = 1 and λ = 2" and found.spread("sse").mean == pytest.approx(100)


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
        assert at_level(cells, 0.7 + 0.1, BY_LAM).reached == is_reached


def test_only_whole_folders_are_shortened(monkeypatch):
    monkeypatch.setattr(Path, "cwd", lambda: Path("/app"))
    kept = "b/app/x /apple ../app </app>"
    assert shareable(f"'/app/x' file:///app at=/app {kept}") == f"'./x' file://. at=. {kept}"
