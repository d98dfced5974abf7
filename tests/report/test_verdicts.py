import math

import numpy as np
import pandas as pd
import pytest
from a_paper import programs, reported, table
from frames import cell, frame, starts

from fairclust.messages import NOT_UNIQUE
from fairclust.report.selection import Spread
from fairclust.report.tables import evidence_of, row_verdicts, why
from fairclust.report.verdicts import (
    AGREES,
    AS_PROGRAM,
    BY_MEAN,
    BY_PROGRAM,
    BY_START,
    CHEAPER,
    DEARER,
    DIFFERS,
    LESS_FAIR,
    NOT_COMPARABLE,
    OFF,
    ON_FRONT,
    ONLY_UNJUDGED,
    compare_value,
    table_rows,
    value_verdict,
)

PRINTED = {"settings": {"own": {}, "rival": {}}}
MATCHED = {"match": {"fairness": "fairness_error", "order": "sse"}}


def judged(spec, values, *cells, programs=None):
    return table_rows(spec, values, frame([one for some in cells for one in some]), programs)


def said(row):
    """Return the verdict of a row, and the finding behind it."""
    return row.verdict, row.finding


def runs(mean, sd=math.nan, low=None, high=None, n=10):
    return Spread(mean, sd, mean if low is None else low, mean if high is None else high, n)


def reason_of(row):
    """Return what follows the finding."""
    return why(row).partition(": ")[2]


def only(rows):
    assert len(rows) == 1
    return rows[0]


def matched(values, *cells, **more):
    """Return the only row of a table that compares at matched fairness what is not published."""
    return only(judged(table(**MATCHED), values, *cells, **more))


@pytest.mark.parametrize(
    "metric, printed, decimals, ours, agrees",
    [
        # Two standard deviations, which count for at most 10 %.
        ("sse", 1000.0, 1, runs(1019.9, 10.0), "yes"),
        ("sse", 1000.0, 1, runs(1020.1, 10.0), "higher"),
        ("sse", 1000.0, 1, runs(979.9, 10.0), "lower"),
        ("sse", 1000.0, 1, runs(1099.0, 500.0), "yes"),
        ("sse", 1000.0, 1, runs(1101.0, 500.0), "higher"),
        # With fewer than ten starts the value must lie in their range, too.
        ("sse", 1000.0, 1, runs(1019.9, 10.0, 1009.0, 1030.0, n=9), "higher"),
        ("sse", 1000.0, 1, runs(1019.9, 10.0, 999.0, 1030.0, n=9), "yes"),
        # Between the smallest and the largest start.
        ("sse", 1000.0, 1, runs(1101.0, 20.0, 999.0, 1300.0), "start"),
        ("sse", 1000.0, 1, runs(1101.0, 20.0, 1001.2, 1300.0), "higher"),
        ("fairness_error", 0.0, 2, runs(math.inf, math.nan, 0.004, math.inf), "start"),
        ("fairness_error", 0.0, 2, runs(math.inf, math.nan, 0.006, math.inf), "higher"),
        # A single start has no deviation and no range: the printed digits or 0.1 % decide.
        ("sse", 100.0, 0, runs(100.5, n=1), "yes"),
        ("sse", 1000.0, 3, runs(1001.0, n=1), "yes"),
        ("sse", 1000.0, 3, runs(1001.1, n=1), "higher"),
        ("balance", 0.50, 2, runs(0.40, 0.0), "lower"),
        # A digit may be cut off: 0.029 is printed as 0.02.
        ("fairness_error", 0.02, 2, runs(0.029, 0.0), "yes"),
        ("fairness_error", 0.02, 2, runs(0.0301, 0.0), "higher"),
        ("fairness_error", 0.02, 2, runs(0.0149, 0.0), "lower"),
        ("kmedians_cost", 174.81, 2, runs(174.8184, 0.0), "yes"),
        ("nll", -10.0, 1, runs(-10.09, 0.0), "yes"),
        ("nll", -10.0, 1, runs(-12.0, 0.0), "lower"),
        # Two deviations of a fairness metric count for at most .02.
        ("fairness_error", 0.0, 2, runs(0.019, 0.1), "yes"),
        ("fairness_error", 0.0, 2, runs(0.021, 0.1), "higher"),
        # The paper prints 11.167 in units of 1e5.
        ("sse", 1116700.0, -2, runs(1116749.0, 0.0), "yes"),
    ],
)
def test_a_value_agrees(metric, printed, decimals, ours, agrees):
    assert compare_value(metric, printed, decimals, ours) == agrees


def test_a_row_is_judged_by_all_its_values(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "own,balance,0.30")

    def row(sse, balance):
        return only(judged(table(**PRINTED), values, starts("own", sse, balance=balance)))

    assert said(row([100.0] * 3, [0.3] * 3)) == (AGREES, BY_MEAN)
    # One start of three has the reported cost, and all of them the balance.
    assert said(row([100.0, 140.0, 140.0], [0.3] * 3)) == (AGREES, BY_START)
    near = row([95.0] * 3, [0.29] * 3)
    assert (said(near), near.direction) == ((DIFFERS, OFF), "cheaper, less fair")
    assert said(row([95.0] * 3, [0.2] * 3)) == (DIFFERS, OFF)
    assert said(row([50.0] * 3, [0.3] * 3)) == (DIFFERS, OFF)
    far = row([50.0] * 3, [0.2] * 3)
    assert [value.agrees for value in far.values] == ["lower", "lower"]
    assert why(far) == f"{OFF} (cheaper, less fair): the cause is unknown"
    # A value that agrees has its own verdict in a row that differs.
    half = row([50.0] * 3, [0.3] * 3)
    assert [value_verdict(half, value, "") for value in half.values] == [DIFFERS, AGREES]


def test_a_value_that_was_not_scored_keeps_a_row_from_being_reproduced(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "own,dunn_index,0.30")
    row = only(judged(table(**PRINTED), values, starts("own", [100.0, 100.0])))
    assert said(row) == (DIFFERS, OFF) and "no value for DI" in row.note
    nothing = only(judged(table(**PRINTED), values, starts("own", [np.nan, np.nan])))
    assert said(nothing) == (NOT_COMPARABLE, "this run has no value: the scorer has none for these metrics")


def test_at_matched_fairness_the_front_is_read_at_the_level(tmp_path):
    values = reported(tmp_path, "own,fairness_error,0.10", "own,sse,100.0", "own,awd,0.20")
    grid = [
        *starts("own", [60.0, 60.0], lam=1, fairness_error=0.505, awd=0.2),
        *starts("own", [90.0, 94.0], lam=2, fairness_error=[0.2, 0.21], awd=0.2),
        *starts("own", [111.0, 113.0], lam=3, fairness_error=0.005, awd=0.2),
    ]
    row = matched(values, grid)
    # At .10 the cost is more than reported, so the tolerance counts. The level of .105 is half way between the errors
    # of lambda 2 (.205) and 3 (.005), and so are the costs.
    assert (row.kind, row.choice.setting) == ("matched fairness", "between λ = 2 and λ = 3")
    assert row.choice.cells.sse.to_list() == pytest.approx([100.5, 103.5])
    assert row.choice.spread("fairness_error").mean == pytest.approx(0.105)
    assert (said(row), len(row.choice.cells)) == ((AGREES, ON_FRONT), 2) and row.choice.cells.lam.isna().all()
    # Neither the error nor another fairness metric is judged.
    assert [value.agrees for value in row.values] == ["", "yes", ""]
    assert "chose the setting" in row.values[0].note and "only the cost" in row.values[2].note

    def verdict(sse, error=0.1):
        return said(matched(values, starts("own", [sse, sse], lam=1, fairness_error=error)))

    assert verdict(101.9) == (AGREES, ON_FRONT)
    assert verdict(102.1) == (DIFFERS, DEARER)
    assert verdict(97.9) == (AGREES, CHEAPER)
    assert verdict(150.0, error=0.2) == (DIFFERS, LESS_FAIR)
    assert verdict(90.0, error=math.inf) == (DIFFERS, LESS_FAIR)
    # The level has a tolerance of 2 %, or of half a unit of its last digit.
    assert verdict(100.0, error=0.105) == (AGREES, ON_FRONT)
    assert verdict(90.0, error=0.107) == (DIFFERS, LESS_FAIR)
    # The tolerance does not make a row better: a front through the reported point is on the front.
    cells = [
        *starts("own", [20.0, 20.0], lam=1, fairness_error=0.20),
        *starts("own", [180.0, 180.0], lam=2, fairness_error=0.0),
    ]
    assert said(matched(values, cells)) == (AGREES, ON_FRONT)
    # Whatever orders the front, the reported metric is judged, which may be an accuracy.
    for metric, ours, finding in (("sse", 50.0, CHEAPER), ("accuracy", 150.0, "as fair as reported, and better"),
                                  ("accuracy", 9.0, DEARER.replace("cost", "value"))):  # fmt: skip
        values = reported(tmp_path, "own,balance,0.40", f"own,{metric},100.0")
        cells = list(starts("own", [ours] * 3, metric, lam=1, balance=0.41))
        for order in ("lam", metric):
            spec = table(match={"fairness": "balance", "order": order})
            assert only(judged(spec, values, cells)).finding == finding


def test_a_level_out_of_reach_shows_the_setting_nearest_to_the_reported_values(tmp_path):
    values = reported(tmp_path, "own,fairness_error,0.10", "own,sse,100.0")
    grid = [
        *starts("own", [60.0, 60.0], lam=1, fairness_error=0.30),
        *starts("own", [95.0, 95.0], lam=2, fairness_error=0.13),
        *starts("own", [300.0, 300.0], lam=3, fairness_error=0.12),
    ]
    row = matched(values, grid)
    assert (said(row), row.choice.setting) == ((DIFFERS, LESS_FAIR), "λ = 2")
    assert "nearest to the reported values" in row.note
    # Starts whose values scatter around the reported ones are no less fair than these.
    near = starts("own", [99.0, 101.0, 100.0], lam=1, fairness_error=[0.10, 0.13, 0.09])
    assert said(matched(values, near)) == (AGREES, ON_FRONT)


def test_infinite_errors_and_empty_clusters_are_no_ends_of_a_front(tmp_path):
    values = reported(tmp_path, "own,fairness_error,0.10", "own,sse,100.0")
    grid = [
        *starts("own", [60.0, 60.0], lam=0, fairness_error=math.inf),
        *starts("own", [70.0] * 3, lam=1, fairness_error=0.0, n_nonempty=[1, 1, 10]),
        *starts("own", [99.0, 99.0, 70.0], lam=3, fairness_error=0.05, n_nonempty=[10, 10, 1]),
    ]
    row = matched(values, grid)
    assert (said(row), row.choice.cells.lam.iloc[0]) == ((AGREES, ON_FRONT), 3.0)
    assert row.note == "2 of 3 starts ended well, others: empty clusters"


def test_without_a_published_setting_or_a_rule_the_lowest_objective_is_shown(tmp_path):
    values = reported(tmp_path, "own,sse,100.0")
    row = only(judged(table(), values, starts("own", [100.0] * 2, lam=1), starts("own", [90.0] * 2, lam=2)))
    assert (row.choice.cells.lam.iloc[0], row.kind, said(row)) == (2.0, "as printed", (DIFFERS, OFF))
    assert "publishes no setting" in row.note


def test_lost_solutions_are_noted(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "own,balance,0.30")
    spec = table(**PRINTED)
    lost = only(judged(spec, values, starts("own", [100.0] * 2, balance=0.3, status=["ok", "timeout"])))
    assert "1 of 2 starts ended well, others: timeout" in lost.note
    full = only(judged(spec, values, starts("own", [100.0] * 3, balance=0.3)))
    assert (said(full), full.note) == ((AGREES, BY_MEAN), "")


def test_impossible_values(tmp_path):
    values = reported(tmp_path, "own,sse,758.4", "own,balance,0.30")
    reason = {"method": "own", "kind": "not_comparable"}
    reason |= {"reason": "400 rows", "evidence": "run me"}
    spec = table(**PRINTED, reasons=[reason])
    row = only(judged(spec, values, starts("own", [758.4] * 2, balance=0.3)))
    assert row.verdict == NOT_COMPARABLE
    assert why(row) == "not judged here: 400 rows (evidence: run me)"
    # The verdict is the same whether or not the row was run.
    assert why(only(judged(spec, values, starts("own", [1.0], dataset="city")))) == why(row)


def test_rows_that_cannot_be_compared(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,,printed as N/A", "rival,sse,100.0")
    spec = table(**PRINTED, reasons=[{"method": "rival", "kind": "not_comparable", "reason": "which data?"}])
    own, rival = judged(spec, values, starts("own", [1.0]), starts("rival", [100.0]))
    assert said(own) == (NOT_COMPARABLE, "printed as N/A")
    assert (rival.verdict, reason_of(rival)) == (NOT_COMPARABLE, "which data?")
    assert rival.values[0].agrees == "" and value_verdict(rival, rival.values[0], "") == NOT_COMPARABLE


def test_why_a_row_was_not_run(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "1,town,10,4,rival,sse,100.0,", "1,city,10,,own,sse,100.0,")
    lost = [cell("city", "own", 10, None, 0, status="skipped", reason="no network\nmore")]
    other = starts("rival", [100.0], lam=5)
    found = {(row.dataset, row.method): row for row in judged(table(**PRINTED), values, lost, other)}
    assert {row.verdict for row in found.values()} == {NOT_COMPARABLE}
    assert reason_of(found["town", "own"]) == "the method is not in this run"
    assert reason_of(found["town", "rival"]) == "not run with the published setting λ = 4"
    assert reason_of(found["city", "own"]) == "skipped: no network"
    rows = judged(table(**PRINTED), values, starts("own", [1.0], k=5))
    assert reason_of(rows[0]) == "not run with K = 10"
    assert reason_of(rows[2]) == "the data set is not in this run"
    unsaid = reported(tmp_path, "1,town,,,own,sse,100.0,")
    several = judged(table(**PRINTED), unsaid, starts("own", [100.0]), starts("own", [100.0], k=5))
    assert said(only(several)) == (NOT_COMPARABLE, "this run has no value: the paper does not state K")
    assert said(only(judged(table(**PRINTED), unsaid, starts("own", [100.0])))) == (AGREES, BY_MEAN)


def test_causes_are_shown_conjectured_or_unknown(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "rival,sse,100.0", "plain,sse,100.0")
    reasons = [
        {"method": "own", "metric": "balance", "reason": "not about this"},
        {"method": "own", "reason": "an early stop", "evidence": "python benchmarks/x.py"},
        {"method": "rival", "reason": "other starts"},
        {"method": "plain", "reason": "two tables differ", "shown_by": "paper"},
    ]
    spec = table(settings={"own": {}, "rival": {}, "plain": {}}, reasons=reasons)
    cells = [*starts("own", [50.0]), *starts("rival", [150.0]), *starts("plain", [150.0])]
    rows = judged(spec, values, cells)
    assert [row.values[0].cause for row in rows] == ["command", "conjecture", "paper"]
    assert [reason_of(row) for row in rows] == [
        "an early stop (evidence: python benchmarks/x.py)",
        "conjecture: other starts",
        "two tables differ",
    ]
    spec = table(
        settings={"rival": {}}, reasons=[{"method": "rival", "reason": "Unknown. No program is published."}]
    )
    assert only(judged(spec, values[1:2], cells)).values[0].cause == "unknown"
    # Rows that differ need a reason, and rows that agree do not.
    unknown = judged(table(**PRINTED), values[:2], starts("own", [50.0]), starts("rival", [100.0]))
    assert [row.values[0].cause for row in unknown] == ["unknown", ""]
    assert [reason_of(row) for row in unknown] == ["the cause is unknown", ""]


def test_the_published_program_tells_who_differs(tmp_path):
    values, cells = reported(tmp_path, "own,sse,100.0"), list(starts("own", [140.0, 142.0]))
    spec = table(**PRINTED)
    # Ours has the program's value, which the paper does not print.
    theirs = programs(("own", "sse", "", 141.0))
    row = only(judged(spec, values, cells, programs=theirs))
    assert (row.verdict, why(row)) == (AS_PROGRAM, BY_PROGRAM.format(kind="program"))
    told = table(**PRINTED, reasons=[{"reason": "two tables differ", "shown_by": "paper"}])
    assert reason_of(only(judged(told, values, cells, programs=theirs))) == "two tables differ"
    assert value_verdict(row, row.values[0], "") == AS_PROGRAM
    line = evidence_of("paper", spec, [row]).iloc[0]
    assert (line.program, line.program_mean, line.program_low, line.program_runs) == ("theirs", 141, 140, 5)
    # Neither the paper nor we have it.
    other = programs(("own", "sse", "", 200.0))
    neither = only(judged(spec, values, cells, programs=other))
    assert said(neither) == (DIFFERS, OFF) and neither.values[0].cause == "unknown"
    assert reason_of(neither) == (
        "the cause is unknown; the paper's values are not those of its published program, and ours agree with neither"
    )
    guessed = table(**PRINTED, reasons=[{"method": "own", "reason": "other starts"}])
    assert only(judged(guessed, values, cells, programs=other)).values[0].cause == "conjecture"
    # The program has the printed value, and we do not: that is no reason.
    ours = only(judged(spec, values, cells, programs=programs(("own", "sse", "", 100.0))))
    assert said(ours) == (DIFFERS, OFF) and reason_of(ours) == "the cause is unknown"
    # One of several variants is enough, and it is the one that is shown.
    two = programs(("own", "sse", "last", 200.0), ("own", "sse", "best", 141.0))
    found = only(judged(spec, values, cells, programs=two))
    assert found.verdict == AS_PROGRAM and found.program.words == "best; as shipped"


def test_the_reason_says_where_the_printed_values_are(tmp_path):
    values, cells = reported(tmp_path, "own,sse,100.0"), list(starts("own", [140.0, 142.0]))
    ours, labels = (
        programs(("own", "sse", "", 141.0)),
        programs(("own", "sse", "labels", 100.0), kind="labels"),
    )
    for theirs, has in (
        (labels, "the published labels have"),
        (labels.assign(kind="program"), "another run has"),
    ):
        row = only(judged(table(**PRINTED), values, cells, programs=pd.concat([ours, theirs])))
        assert said(row) == (DIFFERS, OFF)
        assert (
            reason_of(row) == f"ours agrees with a run of the published program, and {has} the printed values"
        )


def test_a_row_says_if_its_embedding_is_not_unique(tmp_path):
    values = reported(tmp_path, "own,sse,100.0")
    warned = [f"FairSpectralClustering: {NOT_UNIQUE}", "stopped", ""]
    row = only(judged(table(**PRINTED), values, starts("own", [100.0] * 3, warnings=warned)))
    assert row.note == f"warning at 1 of 3 starts: {NOT_UNIQUE}"
    assert evidence_of("paper", table(**PRINTED), [row]).note.to_list() == [row.note]
    assert not only(judged(table(**PRINTED), values, starts("own", [100.0] * 3))).note


def test_a_row_at_matched_fairness_may_be_as_the_program(tmp_path):
    values = reported(tmp_path, "own,fairness_error,0.10", "own,sse,100.0")
    cells = list(starts("own", [140.0, 140.0], fairness_error=0.1))
    theirs = programs(("own", "sse", "", 141.0), ("own", "fairness_error", "", 0.1))
    assert said(matched(values, cells)) == (DIFFERS, DEARER)
    found = matched(values, cells, programs=theirs)
    assert found.verdict == AS_PROGRAM
    # Without the program's fairness its cost says neither that ours agrees nor that it differs.
    alone = matched(values, cells, programs=theirs[:1])
    assert (said(alone), alone.values[1].cause) == ((DIFFERS, DEARER), "unknown")
    # A run of the program that is far less fair than printed says nothing about the printed row.
    unfair = list(starts("own", [140.0, 140.0], fairness_error=0.3))
    elsewhere = programs(("own", "sse", "", 141.0), ("own", "fairness_error", "", 0.3))
    assert said(matched(values, unfair, programs=elsewhere)) == (DIFFERS, LESS_FAIR)


def test_the_tolerance_of_the_level_makes_no_row_better(tmp_path):
    values = reported(tmp_path, "own,balance,0.300", "own,sse,100.0")
    spec = table(match={"fairness": "balance", "order": "sse"})
    cells = list(starts("own", [50.0, 50.0], balance=0.296))
    assert said(only(judged(spec, values, cells))) == (AGREES, ON_FRONT)
    # Nor does a level that plain clustering reaches at no higher cost say anything about a fair method.
    plain = [*starts("own", [90.0] * 2, balance=0.31), *starts("plain", [80.0] * 2, balance=0.31)]
    controlled = table(match={"fairness": "balance", "order": "sse"}, control="plain")
    row = only(judged(controlled, values, plain))
    assert said(row) == (NOT_COMPARABLE, "plain clustering passes as well")
    assert not any(value.cause for value in row.values)
    # Another reported fairness value tells the method apart, if it has it and plain clustering has not.
    both = reported(tmp_path, "own,balance,0.300", "own,sse,100.0", "own,awd,0.100")
    for awd, verdict in ((0.1, AGREES), (0.2, NOT_COMPARABLE)):
        cells = [*starts("own", [90], balance=0.31, awd=awd), *starts("plain", [80], balance=0.31, awd=0.2)]
        assert only(judged(controlled, both, cells)).verdict == verdict


def test_other_readings_of_a_method_stand_below_it_and_do_not_count(tmp_path):
    values = reported(tmp_path, "own,sse,100.0")
    spec = table(settings={"own": {}}, variants={"own": ["plain", "mine"]})
    own, plain = judged(spec, values, starts("own", [150.0] * 2), starts("plain", [100.0] * 2))
    assert (own.role, said(own)) == ("paper", (DIFFERS, OFF))
    assert (plain.role, said(plain)) == ("variant", (AGREES, BY_MEAN))
    lines = evidence_of("paper", spec, [own, plain])
    assert list(lines.role) == ["paper", "variant"] and list(row_verdicts(lines).method) == ["own"]


def test_what_plain_clustering_reaches_says_nothing_about_a_fair_method(tmp_path):
    values = reported(tmp_path, "own,sse,100.0", "rival,sse,100.0")
    spec = table(**PRINTED, control="plain")
    cells = [*starts("own", [100.0] * 3), *starts("rival", [150.0] * 3), *starts("plain", [100.0] * 3)]
    own, rival = judged(spec, values, cells)
    assert (said(own), rival.verdict) == ((NOT_COMPARABLE, "plain clustering passes as well"), DIFFERS)
    # A start of the plain method in which it has the values does not outweigh the mean of a fair one.
    lucky = [*starts("own", [100.0] * 3), *starts("plain", [100.0, 200.0, 200.0])]
    assert said(judged(spec, values, lucky)[0]) == (AGREES, BY_MEAN)


def test_times_are_never_judged(tmp_path):
    values = reported(
        tmp_path,
        "own,seconds,10.0",
        "own,seconds_std,1.0",
        "own,relative_seconds,1.000",
        "rival,seconds,20.0",
        "rival,relative_seconds,2.000",
    )
    own, rival = judged(
        table(**PRINTED),
        values,
        starts("own", [1, 1], seconds=[3.0, 5.0]),
        starts("rival", [1, 1], seconds=[8.0, 8.0]),
    )
    assert said(own) == said(rival) == (NOT_COMPARABLE, ONLY_UNJUDGED)
    assert {value.agrees for value in (*own.values, *rival.values)} == {""}
    assert [value.ours.mean for value in own.values] == [4.0, pytest.approx(math.sqrt(2)), 1.0]
    assert rival.values[1].ours.mean == 2.0


def test_ours_have_no_verdict(tmp_path):
    values = reported(
        tmp_path, "1,town,10,7,own,sse,100.0,", "1,town,10,7,own,fairness_error,0.10,", "rival,sse,9.0"
    )
    spec = table(**MATCHED, ours=["mine"], beside=["delta"])
    cells = [
        *starts("own", [100.0] * 2, lam=7, fairness_error=0.1),
        *starts("mine", [90.0] * 2, lam=1, fairness_error=0.2),
        *starts("mine", [95.0] * 2, lam=2, fairness_error=0.104, delta=0.3),
    ]
    rows = {(row.dataset, row.method): row for row in judged(spec, values, cells)}
    assert [row.role for row in rows.values()] == ["paper", "paper", "ours"]
    mine = rows["town", "mine"]
    # Our method has to be as fair as the paper's own method.
    assert (mine.choice.setting, mine.verdict) == ("between λ = 1 and λ = 2", "")
    assert mine.values[0].ours.mean == pytest.approx(95 - 5 / 96)
    assert mine.values[2].metric == "delta"
    lines = evidence_of("paper", spec, rows.values())
    lines = lines[(lines.role == "paper") & (lines.value_verdict != "")]
    assert set(lines.dataset) == {"town"} and set(lines.method) == {"own", "rival"}
    assert len(lines) == len(values)


def test_counts_of_a_data_set_are_exact_or_not_reproduced(tmp_path):
    values = reported(tmp_path, "1,town,,,data,n_nodes,5678,", "1,town,,,data,n_groups,6,")
    cells = starts("own", [1.0], n_rows=5576, n_groups=6)
    row = only(judged(table(), values, cells))
    assert [value.agrees for value in row.values] == ["no", "yes"]
    assert said(row) == (DIFFERS, OFF) and reason_of(row) == "the cause is unknown"
    exact = only(judged(table(), values, starts("own", [1.0], n_rows=5678, n_groups=6)))
    assert said(exact) == (AGREES, BY_MEAN)
    assert only(judged(table(), values, starts("own", [1.0], dataset="city"))).verdict == NOT_COMPARABLE
