import math

import numpy as np
import pandas as pd
import pytest
from a_paper import reported, table
from frames import cell, frame

from fairclust.report.verdicts import (
    VERDICT_COLUMNS,
    VERDICTS,
    compare_value,
    load_verdicts,
    row_verdict,
    table_rows,
    tolerance,
    verdict_frame,
)

PRINTED = {"settings": {"own": {}, "rival": {}}}
MATCHED = {"match": {"fairness": "fairness_error", "order": "sse"}}


def starts(method, values, dataset="town", lam=None, k=10, **more):
    """Make a start for each SSE. Other values are given as lists, too, or are the same for all starts."""
    for seed, sse in enumerate(values):
        own = {name: value[seed] if isinstance(value, list) else value for name, value in more.items()}
        yield cell(dataset, method, k, lam, seed, sse=sse, **{"objective": sse, "n_nonempty": k, **own})


def judged(spec, values, *cells):
    return table_rows(spec, values, frame([one for some in cells for one in some]))


def only(rows):
    assert len(rows) == 1
    return rows[0]


@pytest.mark.parametrize(
    "metric, printed, decimals, mean, sd, verdict",
    [
        # The tolerance is two standard deviations if they are below 2 %.
        ("sse", 1000.0, 1, 1019.9, 10.0, "yes"),
        ("sse", 1000.0, 1, 1020.1, 10.0, "worse"),
        ("sse", 1000.0, 1, 979.9, 10.0, "better"),
        # The tolerance is never more than 2 %, even if the starts differ more.
        ("sse", 1000.0, 1, 1020.0, 500.0, "yes"),
        ("sse", 1000.0, 1, 1021.0, 500.0, "worse"),
        # A single start has no deviation, so the printed digits decide.
        ("sse", 1000.0, 0, 1000.5, math.nan, "yes"),
        ("sse", 1000.0, 0, 1000.6, math.nan, "worse"),
        ("balance", 0.50, 2, 0.40, 0.0, "worse"),
        ("balance", 0.50, 2, 0.60, 0.0, "better"),
        ("fairness_error", 0.02, 2, 0.025, 0.0, "yes"),
        ("fairness_error", 0.02, 2, 0.0251, 0.0, "worse"),
        ("fairness_error", 0.0, 2, 0.004, 0.1, "yes"),
        ("fairness_error", 0.0, 2, 0.006, 0.1, "worse"),
        ("fairness_error", 0.5, 2, math.inf, math.nan, "worse"),
        ("nll", -10.0, 1, -12.0, 0.0, "better"),
        ("min_distance", 1.0, 1, 2.0, 0.0, "no"),
        # The paper prints 11.167 in units of 1e5.
        ("sse", 1116700.0, -2, 1116749.0, 0.0, "yes"),
        # At matched fairness the tolerance is 2 %.
        ("sse", 1000.0, 1, 1020.0, None, "yes"),
        ("sse", 1000.0, 1, 1020.1, None, "worse"),
        ("n_nodes", 5678, 0, 5678.0, None, "yes"),
        ("n_nodes", 5678, 0, 5677.0, None, "no"),
    ],
)
def test_a_value_agrees(metric, printed, decimals, mean, sd, verdict):
    assert compare_value(metric, printed, decimals, mean, sd) == verdict


def test_tolerances():
    assert tolerance(100.0, 1, 0.5) == pytest.approx(1.0)
    assert tolerance(100.0, 1, 5.0) == pytest.approx(2.0)
    assert tolerance(100.0, 0, 0.0) == pytest.approx(0.5)
    assert tolerance(10.0, 0, 5.0) == pytest.approx(0.5)
    assert tolerance(100.0, 3, None) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "kind, agrees, missing, reached, verdict",
    [
        ("as printed", ["yes", "yes"], False, True, "reproduced"),
        ("as printed", ["yes", "better"], False, True, "better"),
        ("as printed", ["worse", "better"], False, True, "mixed"),
        ("as printed", ["worse", "yes"], False, True, "worse"),
        ("as printed", ["no", "yes"], False, True, "worse"),
        ("as printed", ["no", "better"], False, True, "mixed"),
        ("as printed", ["yes"], True, True, "mixed"),
        ("as printed", ["better"], True, True, "mixed"),
        ("as printed", ["worse"], True, True, "worse"),
        ("as printed", [], False, True, "not judged"),
        ("matched fairness", ["yes"], False, True, "on the front"),
        ("matched fairness", ["better", "yes"], False, True, "dominates"),
        ("matched fairness", ["worse", "yes"], False, True, "dominated"),
        ("matched fairness", ["worse", "better"], False, True, "mixed"),
        ("matched fairness", ["better"], False, False, "less fair"),
        ("matched fairness", [], False, True, "not judged"),
    ],
)
def test_a_row_is_judged_by_all_its_values(kind, agrees, missing, reached, verdict):
    assert row_verdict(kind, agrees, missing=missing, reached=reached) == verdict
    assert verdict in VERDICTS


def test_a_row_as_printed_takes_the_printed_lambda_and_all_its_starts(tmp_path):
    values = reported(tmp_path, "1,town,10,4,own,sse,100.0,", "1,town,10,4,own,balance,0.30,")
    # If the printed lambda did not decide, the other lambda would be chosen, which is fair enough and cheaper.
    cells = [
        *starts("own", [100.0, 102.0, 98.0], lam=4, balance=[0.3, 0.31, 0.29]),
        *starts("own", [80.0, 80.0, 80.0], lam=2, balance=0.3),
    ]
    row = only(judged(table(**MATCHED), values, cells))
    assert (row.kind, row.choice.lam, row.verdict) == ("as printed", 4.0, "reproduced")
    assert row.choice.setting == "lam=4"
    lines = verdict_frame("paper", table(), [row]).set_index("metric")
    assert lines.loc["sse", ["mean", "best", "seeds"]].to_list() == [100.0, 98.0, 3]
    assert lines.loc["sse", "sd"] == pytest.approx(2.0)
    assert set(lines.agrees) == {"yes"} and set(lines.reason) == {""}


def test_a_difference_of_exactly_two_deviations_agrees(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,1000.00,")
    spread = np.array([-1.0, 0.0, 1.0]) * 5  # standard deviation 5
    spec = table(**PRINTED)
    assert only(judged(spec, values, starts("own", 1010 + spread))).verdict == "reproduced"
    assert only(judged(spec, values, starts("own", 1010.01 + spread))).verdict == "worse"
    assert only(judged(spec, values, starts("own", 989.99 + spread))).verdict == "better"


def test_better_in_cost_and_worse_in_balance_is_mixed(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,,own,balance,0.30,")
    row = only(judged(table(**PRINTED), values, starts("own", [50.0, 50.0], balance=0.2)))
    assert [value.agrees for value in row.values] == ["better", "worse"]
    assert row.verdict == "mixed"
    assert row.reasons == ["reason not known"]


def test_a_value_that_was_not_scored_keeps_a_row_from_being_reproduced(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,,own,dunn_index,0.30,")
    row = only(judged(table(**PRINTED), values, starts("own", [100.0, 100.0])))
    assert row.verdict == "mixed" and "no value for DI" in row.note
    nothing = only(judged(table(**PRINTED), values, starts("own", [np.nan, np.nan])))
    assert nothing.verdict == "not run" and nothing.reasons == ["the scorer has no value for these metrics"]


def test_at_matched_fairness_the_axis_that_chose_does_not_count(tmp_path):
    values = reported(
        tmp_path,
        "1,town,10,,own,fairness_error,0.10,",
        "1,town,10,,own,sse,100.0,",
        "1,town,10,,own,awd,0.20,",
    )
    grid = [
        *starts("own", [60.0, 60.0], lam=1, fairness_error=0.5, awd=0.2),
        *starts("own", [90.0, 92.0], lam=2, fairness_error=[0.05, 0.155], awd=0.2),
        *starts("own", [99.0, 99.0], lam=3, fairness_error=0.01, awd=0.2),
    ]
    row = only(judged(table(**MATCHED), values, grid))
    # An error of .1025 is within .105. The error itself is not judged, although it differs by .0025.
    assert (row.kind, row.choice.lam, row.verdict) == ("matched fairness", 2.0, "dominates")
    assert [value.agrees for value in row.values] == ["", "better", "yes"]
    assert "chose the setting" in row.values[0].note

    def verdict(sse, awd, error=0.1):
        some = starts("own", [sse, sse], lam=1, fairness_error=error, awd=awd)
        return only(judged(table(**MATCHED), values, some)).verdict

    assert verdict(101.9, 0.2) == "on the front"
    assert verdict(102.1, 0.2) == "dominated"
    assert verdict(97.9, 0.2) == "dominates"
    assert verdict(90.0, 0.3) == "mixed"
    assert verdict(100.0, 0.2, error=0.2) == "less fair"
    assert verdict(90.0, 0.2, error=math.inf) == "less fair"


def test_without_a_published_setting_or_a_rule_the_lowest_objective_is_shown(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,")
    row = only(judged(table(), values, starts("own", [100.0] * 2, lam=1), starts("own", [90.0] * 2, lam=2)))
    assert (row.choice.lam, row.kind, row.verdict) == (2.0, "as printed", "better")
    assert "publishes no setting" in row.note


def test_the_level_may_stand_in_another_table(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,", "2,town,10,,own,fairness_error,0.10,")
    spec = table(match={"fairness": "fairness_error", "order": "sse", "table": "2"})
    grid = [
        *starts("own", [100.0, 100.0], lam=5, fairness_error=0.1),
        *starts("own", [50.0, 50.0], lam=1, fairness_error=0.2),
    ]
    row = only(judged(spec, values, grid))
    assert (row.choice.lam, row.verdict) == (5.0, "on the front")


def test_collapsed_solutions_are_never_reproduced(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,,own,balance,0.30,")
    spec = table(**PRINTED)
    empty = only(judged(spec, values, starts("own", [100.0] * 3, balance=0.3, n_nonempty=[10, 3, 4])))
    assert empty.verdict == "collapsed"
    assert "3 to 4 of 10 clusters are in use in 2 of 3 starts" in empty.note
    cheaper = only(judged(spec, values, starts("own", [50.0] * 2, balance=[0.9, 0.0])))
    assert cheaper.verdict == "collapsed" and "balance is 0 in 1 of 2 starts" in cheaper.note
    full = only(judged(spec, values, starts("own", [100.0] * 3, balance=0.3)))
    assert full.verdict == "reproduced"
    # A balance of 0 is no collapse if the paper reports it.
    zero = reported(tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,,own,balance,0.00,")
    assert only(judged(spec, zero, starts("own", [100.0] * 3, balance=0.0))).verdict == "reproduced"


def test_impossible_values(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,758.4,", "1,town,10,,own,balance,0.30,")
    reason = {
        "method": "own",
        "metric": "sse",
        "kind": "impossible",
        "reason": "400 rows",
        "evidence": "run me",
    }
    spec = table(**PRINTED, reasons=[reason])
    row = only(judged(spec, values, starts("own", [758.4] * 2, balance=0.3)))
    assert row.verdict == "impossible"
    assert row.reasons == ["400 rows (evidence: run me)"]
    # The verdict is the same whether or not the row was run.
    assert only(judged(spec, values, starts("own", [1.0], dataset="city"))).verdict == "impossible"


def test_unpublished_rows(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,,printed as N/A", "1,town,10,,rival,sse,100.0,")
    spec = table(**PRINTED, reasons=[{"method": "rival", "kind": "unpublished", "reason": "which data?"}])
    own, rival = judged(spec, values, starts("own", [1.0]), starts("rival", [100.0]))
    assert (own.verdict, own.reasons) == ("unpublished", ["printed as N/A"])
    assert (rival.verdict, rival.reasons) == ("unpublished", ["which data?"])
    assert rival.values[0].agrees == ""


def test_why_a_row_was_not_run(tmp_path):
    values = reported(
        tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,4,rival,sse,100.0,", "1,city,10,,own,sse,100.0,"
    )
    lost = [cell("city", "own", 10, None, 0, status="skipped", reason="no network\nmore")]
    other = starts("rival", [100.0], lam=5)
    found = {(row.dataset, row.method): row for row in judged(table(**PRINTED), values, lost, other)}
    assert {row.verdict for row in found.values()} == {"not run"}
    assert found["town", "own"].reasons == ["the method is not in this run"]
    assert found["town", "rival"].reasons == ["not run with the published setting lam=4"]
    assert found["city", "own"].reasons == ["skipped: no network"]
    rows = judged(table(**PRINTED), values, starts("own", [1.0], k=5))
    assert rows[0].reasons == ["not run with K = 10"]
    assert rows[2].reasons == ["the data set is not in this run"]


def test_reasons_are_evidence_or_conjectures(tmp_path):
    values = reported(tmp_path, "1,town,10,,own,sse,100.0,", "1,town,10,,rival,sse,100.0,")
    reasons = [
        {"method": "own", "metric": "balance", "reason": "not about this"},
        {"method": "own", "reason": "an early stop", "evidence": "python benchmarks/x.py"},
        {"method": "rival", "reason": "other starts"},
    ]
    spec = table(**PRINTED, reasons=reasons)
    better, worse = judged(spec, values, starts("own", [50.0]), starts("rival", [150.0]))
    assert (better.verdict, worse.verdict) == ("better", "worse")
    assert better.reasons == ["an early stop (evidence: python benchmarks/x.py)"]
    assert worse.reasons == ["conjecture: other starts"]
    # Better and worse rows need a reason, and rows that agree do not.
    unknown = judged(table(**PRINTED), values, starts("own", [50.0]), starts("rival", [100.0]))
    assert [row.reasons for row in unknown] == [["reason not known"], []]


def test_times_count_as_ratios_only(tmp_path):
    values = reported(
        tmp_path,
        "1,town,10,,own,seconds,10.0,",
        "1,town,10,,own,seconds_std,1.0,",
        "1,town,10,,own,relative_seconds,1.000,",
        "1,town,10,,rival,seconds,20.0,",
        "1,town,10,,rival,relative_seconds,2.000,",
    )
    own, rival = judged(
        table(**PRINTED),
        values,
        starts("own", [1, 1], seconds=[3.0, 5.0]),
        starts("rival", [1, 1], seconds=[8.0, 8.0]),
    )
    # The ratio of a method's time to itself is always 1 and does not count.
    assert own.verdict == "not judged" and {value.agrees for value in own.values} == {""}
    assert [value.ours.mean for value in own.values] == [4.0, pytest.approx(math.sqrt(2)), 1.0]
    assert [value.agrees for value in rival.values] == ["", "yes"]
    assert rival.values[1].ours.mean == 2.0 and rival.verdict == "reproduced"


def test_counts_of_a_data_set_are_exact_or_not_reproduced(tmp_path):
    values = reported(tmp_path, "1,town,,,data,n_nodes,5678,", "1,town,,,data,n_groups,6,")
    cells = starts("own", [1.0], n_rows=5576, n_groups=6)
    row = only(judged(table(), values, cells))
    assert [value.agrees for value in row.values] == ["no", "yes"]
    assert row.verdict == "not reproduced" and row.reasons == ["reason not known"]
    exact = only(judged(table(), values, starts("own", [1.0], n_rows=5678, n_groups=6)))
    assert exact.verdict == "reproduced"
    assert only(judged(table(), values, starts("own", [1.0], dataset="city"))).verdict == "not run"


def test_ours_and_stand_ins_have_no_verdict(tmp_path):
    values = reported(
        tmp_path,
        "1,town,10,7,own,sse,100.0,",
        "1,town,10,7,own,fairness_error,0.10,",
        "1,town,10,,rival,sse,9.0,",
    )
    spec = table(**MATCHED, ours=["mine"], stand_ins={"town": ["village"]}, beside=["delta"])
    cells = [
        *starts("own", [100.0] * 2, lam=7, fairness_error=0.1),
        *starts("mine", [90.0] * 2, lam=1, fairness_error=0.2),
        *starts("mine", [95.0] * 2, lam=2, fairness_error=0.104, delta=0.3),
        *starts("own", [10.0] * 2, dataset="village", lam=1, fairness_error=0.2, k=4),
        *starts("own", [11.0] * 2, dataset="village", lam=3, fairness_error=0.1, k=4),
    ]
    rows = {(row.dataset, row.method): row for row in judged(spec, values, cells)}
    assert [row.role for row in rows.values()] == ["paper", "paper", "ours", "stand-in"]
    mine, stand_in = rows["town", "mine"], rows["village", "own"]
    # Our method has to be as fair as the paper's own method.
    assert (mine.choice.lam, mine.verdict) == (2.0, "")
    assert mine.values[2].metric == "delta" and mine.values[2].ours.mean == 0.3
    # The lambda that is printed for the original data set does not apply to other data.
    assert (stand_in.choice.lam, stand_in.original, stand_in.n_clusters, stand_in.verdict) == (
        3.0,
        "town",
        4,
        "",
    )
    lines = verdict_frame("paper", spec, rows.values())
    assert set(lines.dataset) == {"town"} and set(lines.method) == {"own", "rival"}
    assert len(lines) == len(values)


def test_rows_differ_by_lambda_and_k(tmp_path):
    values = reported(
        tmp_path, "1,town,10,4,own,sse,1.0,", "1,town,10,8,own,sse,2.0,", "1,town,5,4,own,sse,3.0,"
    )
    cells = [
        *starts("own", [1.0] * 2, lam=4),
        *starts("own", [2.0] * 2, lam=8),
        *starts("own", [3.0] * 2, lam=4, k=5),
    ]
    rows = judged(table(), values, cells)
    assert [(row.lam, row.n_clusters, row.verdict) for row in rows] == [
        (4.0, 10, "reproduced"),
        (8.0, 10, "reproduced"),
        (4.0, 5, "reproduced"),
    ]


def test_verdicts_survive_the_file(tmp_path):
    values = reported(
        tmp_path, "1,town,10,,own,sse,100.0,", "1,town,,,data,n_nodes,5,", "1,city,10,,own,sse,,N/A"
    )
    lines = verdict_frame("paper", table(), judged(table(), values, starts("own", [100.0] * 2)))
    assert list(lines.columns) == VERDICT_COLUMNS
    lines.to_csv(tmp_path / "v.csv", index=False)
    found = load_verdicts([tmp_path / "v.csv", tmp_path / "v.csv"])
    assert len(found) == 2 * len(lines)
    pd.testing.assert_frame_equal(found[: len(lines)], lines, check_dtype=False)
    assert load_verdicts([]).empty
