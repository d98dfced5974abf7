"""Verdicts: whether this run reproduces the rows of a paper's table. Each row gets one, and a difference its cause."""

from __future__ import annotations

import math

import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import TIMES, column_of
from fairclust.pipeline.papers import ReasonSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.render import joined, metric_label
from fairclust.report.rows import MATCHED, OF_DATA_ITSELF, Part, ProgramRuns, Row, Value, chose_setting
from fairclust.report.selection import (
    HAIR,
    LEVEL_SHARE,
    Spread,
    allowed,
    at_level,
    cells_of,
    choose,
    half_unit,
)

FLOOR = 0.001
"""Values agree if they differ by no more than this share."""
LIMIT = 0.1
"""Two optima of one problem differ by no more than this share; two standard deviations count for no more."""
FAIRNESS_LIMIT = 0.02
"""The same limit for fairness metrics, as a difference, where it is more than their share."""
ENOUGH_STARTS = 10
"""With fewer starts, two standard deviations count only for values within the range of the starts."""

AGREES, AS_PROGRAM = "agrees", "agrees with the program"
DIFFERS, NOT_COMPARABLE = "differs", "not comparable"
VERDICTS = {
    AGREES: "every value is within the tolerance or within the range of the starts; at matched fairness, the cost is "
    "the reported one or lower",
    AS_PROGRAM: "ours is what the published program or labels give, and the paper prints something else",
    DIFFERS: "a value differs, or no setting is as fair as reported; direction and cause stand beside it",
    NOT_COMPARABLE: "the data cannot be obtained, the paper prints no value or an impossible one, only times of "
    "another machine are left, or plain K-means passes as well",
}
"""Verdict to its meaning, in the order of the summaries."""
SIGNS = {AGREES: "✓", AS_PROGRAM: "≈", DIFFERS: "≠", NOT_COMPARABLE: "–"}
CHOSE = "°"
"""The sign of a fairness value that chose the setting, within 2 % of the reported one."""

BY_MEAN = "the mean over the starts has every reported value"
BY_START = "every reported value lies between the smallest and the largest value of the starts"
ON_FRONT = "at least as fair as reported and no worse, within 2 % or the scatter of the starts"
CHEAPER = "as fair as reported, and at a lower cost"
DEARER = "with at least the reported fairness the cost is another"
LESS_FAIR = "no setting of the grid has the reported fairness"
OFF = "the setting is published, and a value differs"
BY_PROGRAM = "ours agrees with a run of the published {kind}, whose values are not the printed ones"
NO_VALUE_WHY = "this run has no value"
ONLY_UNJUDGED = "all reported values are times of another machine or fairness that chose the setting"

CAUSES = {
    "program": "shown by a run of the published program",
    "labels": "shown by the published labels",
    "paper": "shown by a contradiction in the paper or its files",
    "command": "shown by a command",
    "conjecture": "conjectured",
    "unknown": "unknown",
}
"""How the cause of a difference is known, in the order of the summaries."""
UNKNOWN = "the cause is unknown"
AGREEMENTS = {"yes", "start"}
"""What `compare_value` says of a value that agrees."""

_ALL_DIGITS = 12
"""Decimals of values that were not printed, so that rounding counts for nothing."""


def table_rows(
    spec: TableSpec, reported: pd.DataFrame, cells: pd.DataFrame, programs: pd.DataFrame | None = None
) -> list[Row]:
    """All rows of a table: the rows of the paper with verdicts, and those of our methods without.

    They are in the paper's order of data sets. The variants of a row follow it, and our methods each data set.
    """
    table: list[Row] = []
    printed = reported[reported.table == spec.number]
    for (dataset, n_clusters), values in printed.groupby(["dataset", "n_clusters"], sort=False, dropna=False):
        k = None if pd.isna(n_clusters) else int(n_clusters)
        part = Part(spec, reported, values, cells[cells.dataset == dataset], programs, str(dataset), k)
        rows = part.rows()
        for row in rows:
            if row.role in ("paper", "variant"):
                _judge(row, part)
                _control(row, part)
                _explain(row, spec)
        table += rows
    return table


def _judge(row: Row, part: Part) -> None:
    """Compare the values of a row with those that the paper reports, and give it a verdict."""
    spec, has_cost = part.spec, any(_is_cost(value) for value in row.values)
    unjudged = {value.metric: _why_not_judged(value, row, spec, has_cost) for value in row.values}
    for value in row.values:
        if value.ours.n and not math.isnan(value.reported) and not unjudged[value.metric]:
            compare = _compare_cost if row.kind == MATCHED else compare_value
            value.agrees = compare(value.metric, value.reported, value.decimals, value.ours)
        value.note = joined(value.note, unjudged[value.metric])
    excluded = {value.metric: _fitting(spec, row, value.metric, "not_comparable") for value in row.values}
    published = [value for value in row.reported if not excluded[value.metric]]
    if not published:
        notes = joined(*dict.fromkeys(v.note for v in row.values)) or "the paper prints too little to compare"
        row.finding = "not judged here" if any(excluded.values()) else notes
        row.verdict = NOT_COMPARABLE
        for value in row.values:
            if reason := excluded[value.metric]:
                value.reason, value.evidence = reason.reason, reason.evidence or ""
    elif not any(value.ours.n for value in published):
        why_not = f"{NO_VALUE_WHY}: {row.note or 'the scorer has none for these metrics'}"
        row.verdict, row.finding = NOT_COMPARABLE, why_not
    else:
        lacking = [v.metric for v in published if not v.ours.n and not unjudged[v.metric]]
        if lacking:
            row.note = joined(row.note, f"no value for {', '.join(map(metric_label, lacking))}")
        row.verdict, row.finding = (
            _at_matched_fairness(row) if row.kind == MATCHED else _as_printed(row, bool(lacking))
        )
        _stand_beside_program(row, spec, part.cells)
        row.direction = _direction(row) if row.verdict == DIFFERS else ""


def _why_not_judged(value: Value, row: Row, spec: TableSpec, has_cost: bool) -> str:
    """Why a reported value does not count for the verdict of its row; empty if it does."""
    if math.isnan(value.reported):
        return ""
    if _fitting(spec, row, value.metric, "not_comparable"):
        return "not judged, for the reason beside it"
    if value.metric in TIMES:
        return "time of another machine, not judged"
    if row.kind != MATCHED or spec.match is None:
        return ""
    if value.metric == spec.level_metric:
        return "this value chose the setting, so it is not judged"
    if _is_fairness(value.metric) or (has_cost and not _is_cost(value)):
        return "at equal fairness only the cost is judged"
    return ""


def _as_printed(row: Row, lacking: bool) -> tuple[str, str]:
    """The verdict and the finding on a row whose setting is published, beside the paper alone."""
    agreements = {value.agrees for value in row.judged}
    if lacking or not agreements <= AGREEMENTS:
        return DIFFERS, OFF
    if not agreements:
        return NOT_COMPARABLE, ONLY_UNJUDGED
    return AGREES, BY_MEAN if agreements == {"yes"} else BY_START


def _at_matched_fairness(row: Row) -> tuple[str, str]:
    """The verdict and the finding on a row at matched fairness, beside the paper alone."""
    judged = row.judged
    if not row.choice.reached:
        # A setting that has the reported fairness and cost within two standard deviations is on the front, although
        # its mean fairness misses the level.
        shown = [v for v in row.reported if v.agrees or _is_fairness(v.metric)]
        agreements = {compare_value(v.metric, v.reported, v.decimals, v.ours) for v in shown if v.ours.n}
        return (AGREES, ON_FRONT) if agreements == {"yes"} and judged else (DIFFERS, LESS_FAIR)
    if not judged:
        return NOT_COMPARABLE, ONLY_UNJUDGED
    worse = [_is_worse(value) for value in judged if value.agrees != "yes"]
    if any(worse):
        return DIFFERS, DEARER
    return AGREES, CHEAPER if worse and not row.choice.loosened else ON_FRONT


def value_verdict(row: Row, value: Value, level_metric: str) -> str:
    """The verdict on a single value of a row, in a table with this `TableSpec.level_metric`."""
    if row.verdict in ("", NOT_COMPARABLE):
        return row.verdict
    if row.finding == LESS_FAIR:
        # The cost at another fairness says nothing.
        return DIFFERS if chose_setting(row.kind, value.metric, level_metric) else NOT_COMPARABLE
    if not value.agrees:
        return NOT_COMPARABLE
    return AGREES if value.agrees in AGREEMENTS else row.verdict


def _stand_beside_program(row: Row, spec: TableSpec, cells: pd.DataFrame) -> None:
    """Give the row the values of the published program, and the verdict that follows from them."""
    if not row.all_runs:
        return
    as_ours = [runs for runs in row.runs if _has_our_values(row, runs, spec, cells)]
    as_paper = [runs for runs in row.all_runs if _has_printed_values(row, runs)]

    def distance(runs: ProgramRuns) -> tuple[int, float]:
        """How far runs are from the printed values; those that lack a value come last."""
        shared = {value.metric: value.reported for value in row.reported if value.metric in runs.values}
        apart = [
            abs(runs.values[name].mean - printed) / max(abs(printed), FAIRNESS_LIMIT)
            for name, printed in shared.items()
        ]
        return len(row.reported) - len(shared), sum(apart)

    shown = min(as_ours or as_paper or row.runs or row.all_runs, key=distance)
    for value in row.values:
        if value.metric in shown.values:
            value.program = shown.values[value.metric]
    row.program, row.as_program = shown, bool(as_ours)
    if as_ours and not as_paper and row.verdict == DIFFERS:
        row.verdict, row.finding = AS_PROGRAM, BY_PROGRAM.format(kind=shown.kind)


def _control(row: Row, part: Part) -> None:
    """Take the verdict away if plain clustering, which knows nothing of groups, passes the row as well."""
    control, rank = part.spec.control, _rank(row)
    if not control or row.method in (control, OF_DATA_ITSELF) or not rank:
        return
    if row.kind == MATCHED:
        _, choice = part.chosen(control, row.lam, of=row.method)
    else:
        choice = choose(cells_of(part.cells, part.dataset, control, part.n_clusters))
    values = [Value(value.metric, value.reported, value.decimals) for value in row.values]
    plain = Row(part.dataset, control, part.n_clusters, row.lam, row.role, row.kind, choice, values)
    part.measure([plain])
    _judge(plain, part)
    # At matched fairness, the values of other fairness metrics can tell a fair method from plain clustering.
    has = [
        {
            v.metric
            for v in one.reported
            if compare_value(v.metric, v.reported, v.decimals, v.ours) in AGREEMENTS
        }
        for one in (row, plain)
    ]
    apart = set(filter(_is_fairness, has[0] - has[1])) - {part.spec.level_metric}
    if 0 < _rank(plain) <= rank and not apart:
        row.verdict, row.finding = NOT_COMPARABLE, "plain clustering passes as well"


def _rank(row: Row) -> int:
    """How clearly a row agrees: 1 by its mean, 2 by a start or with the program only, 0 not at all."""
    if row.verdict == AGREES:
        return 2 if row.finding == BY_START else 1
    return 2 if row.verdict == AS_PROGRAM else 0


def compare_value(metric: str, reported: float, decimals: int, ours: Spread) -> str:
    """Whether our starts agree with a reported value: 'yes', 'start', 'lower', 'higher' or 'no'.

    'yes': the mean agrees. 'start': the value lies between the smallest and the largest of the starts, widened by half
    a unit of the last digit or 0.1 %. 'no': a count that differs.
    """
    if metric in OF_DATA:
        return "yes" if ours.mean == reported else "no"
    exact = max(half_unit(decimals), FLOOR * abs(reported))
    if math.isfinite(ours.mean):
        cut_off = 0 <= math.copysign(1, reported or 1) * (ours.mean - reported) < 2 * half_unit(decimals)
        if cut_off or abs(ours.mean - reported) <= max(exact, _two_deviations(metric, reported, ours)) * HAIR:
            return "yes"
    # A range up to infinity is none, but a start at its lower end may have the reported value.
    high = ours.high if math.isfinite(ours.high) else ours.low
    if ours.n > 1 and ours.low - exact * HAIR <= reported <= high + exact * HAIR:
        return "start"
    return "lower" if ours.mean < reported else "higher"


def _same_values(metric: str, decimals: int, ours: Spread, other: Spread) -> bool:
    """Whether two sets of runs agree: their means differ by at most two pooled deviations, which count for at most
    10 %; a single run may also lie in the range of the others."""
    if metric in OF_DATA:
        return ours.mean == other.mean
    if not (math.isfinite(ours.mean) and math.isfinite(other.mean)):
        return ours.mean == other.mean
    exact = max(half_unit(decimals), FLOOR * abs(other.mean))
    deviations = [0.0 if math.isnan(one.sd) else one.sd for one in (ours, other)]
    spread = min(2 * math.hypot(*deviations), _limit(metric, other.mean))
    if abs(ours.mean - other.mean) <= max(exact, spread) * HAIR:
        return True
    if min(ours.n, other.n) > 1:
        return False
    single, several = (other, ours) if other.n == 1 else (ours, other)
    return several.low - exact * HAIR <= single.mean <= several.high + exact * HAIR


def _compare_cost(metric: str, reported: float, decimals: int, ours: Spread) -> str:
    """The cost at equal fairness beside the reported one: 'yes', 'lower' or 'higher'.

    'yes' means within 2 %, two standard deviations or half a unit of the last printed digit.
    """
    allowed = max(LEVEL_SHARE * abs(reported), half_unit(decimals), _two_deviations(metric, reported, ours))
    if abs(ours.mean - reported) <= allowed * HAIR:
        return "yes"
    return "lower" if ours.mean < reported else "higher"


def _limit(metric: str, value: float) -> float:
    """The largest difference between two optima of one problem."""
    return max(LIMIT * abs(value), FAIRNESS_LIMIT if _is_fairness(metric) else 0.0)


def _two_deviations(metric: str, value: float, runs: Spread) -> float:
    """The difference from a value that the scatter of the starts explains."""
    is_outside = not runs.low <= value <= runs.high
    if math.isnan(runs.sd) or (is_outside and runs.n < ENOUGH_STARTS):
        return 0.0
    return min(2 * runs.sd, _limit(metric, value))


def _is_fairness(metric: str) -> bool:
    """Whether a metric says how fair labels are: it needs only the table of clusters and groups."""
    return metric in METRICS and METRICS[metric].needs == "table" and METRICS[metric].direction != "none"


def _is_cost(value: Value) -> bool:
    """Whether a value is a reported cost."""
    return not math.isnan(value.reported) and column_of(value.metric).is_cost


def _is_worse(value: Value) -> bool:
    """Whether a value that differs is worse than reported."""
    return (value.agrees == "higher") == (column_of(value.metric).direction == "lower")


def _fitting(spec: TableSpec, row: Row, metric: str, kind: str) -> ReasonSpec | None:
    """The first reason of a kind that applies to a value."""
    reasons = (r for r in spec.reasons if r.kind == kind and r.fits(row.dataset, row.method, metric))
    return next(reasons, None)


def _has_printed_values(row: Row, runs: ProgramRuns) -> bool:
    """Whether the values that the published program gives are those that the paper prints."""
    return all(
        compare_value(value.metric, value.reported, value.decimals, runs.values[value.metric]) in AGREEMENTS
        for value in row.reported
        if value.metric in runs.values and value.metric not in TIMES
    )


def _has_our_values(row: Row, runs: ProgramRuns, spec: TableSpec, cells: pd.DataFrame) -> bool:
    """Whether the published program agrees with ours: in every judged value, or in the cost at its own fairness."""
    if row.kind != MATCHED or spec.match is None:
        return bool(row.judged) and all(
            value.metric in runs.values
            and _same_values(value.metric, value.decimals, value.ours, runs.values[value.metric])
            for value in row.judged
        )
    match = spec.match
    printed = next((value for value in row.values if value.metric == match.fairness), None)
    if printed is None or not {match.fairness, match.order} <= set(runs.values):
        return False
    # Only runs that are about as fair as printed say something about the printed row.
    slack = abs(allowed(match.fairness, printed.reported, printed.decimals) - printed.reported)
    fairness, cost = runs.values[match.fairness].mean, runs.values[match.order].mean
    if not abs(fairness - printed.reported) <= slack * HAIR:
        return False
    level = allowed(match.fairness, fairness, _ALL_DIGITS)
    choice = at_level(cells_of(cells, row.dataset, row.method, row.n_clusters), level, match, cost)
    ours = choice.spread(match.order)
    return choice.reached and _compare_cost(match.order, cost, _ALL_DIGITS, ours) == "yes"


def _direction(row: Row) -> str:
    """How the values that differ do so."""
    words = ["less fair"] if row.finding == LESS_FAIR else []
    for value in (value for value in row.values if value.agrees in ("lower", "higher", "no")):
        worse = _is_worse(value)
        if _is_cost(value):
            words.append("dearer" if worse else "cheaper")
        elif _is_fairness(value.metric):
            words.append("less fair" if worse else "fairer")
        else:
            words.append(f"{value.agrees.replace('no', 'other')} {metric_label(value.metric)}")
    return ", ".join(dict.fromkeys(words))


def _explain(row: Row, spec: TableSpec) -> None:
    """Give a reason to each value of a row that needs one, and speak of a value where no cost is judged."""
    if row.verdict in (DIFFERS, AS_PROGRAM) or row.finding == CHEAPER:
        differ = [value for value in row.reported if value.agrees in ("lower", "higher", "no")]
        for value in differ or row.reported:
            value.cause, value.reason, value.evidence = _cause(row, value, spec)
    if row.judged and not any(map(_is_cost, row.judged)):
        row.finding = row.finding.replace("at a lower cost", "better").replace("the cost", "the value")


def _cause(row: Row, value: Value, spec: TableSpec) -> tuple[str, str, str]:
    """The cause, the reason and its evidence of a value that differs."""
    reason = _fitting(spec, row, value.metric, "deviation")
    if reason is not None and (reason.shown_by or reason.evidence):
        is_unknown = reason.reason.startswith("Unknown")
        return "unknown" if is_unknown else reason.shown_by or "command", reason.reason, reason.evidence or ""
    theirs = next((runs for runs in row.all_runs if _has_printed_values(row, runs)), None)
    if row.program is not None and row.as_program:
        words = f"ours agrees with a run of the published {row.program.kind}" * (row.verdict != AS_PROGRAM)
        if theirs:
            has = "another run has" if theirs.kind == "program" else "the published labels have"
            words += f", and {has} the printed values"
        return row.program.kind, words, ""
    if reason is not None:
        return "unknown" if reason.reason.startswith("Unknown") else "conjecture", reason.reason, ""
    both = [value for value in row.values if value.ours.n and value.program.n and value.metric not in TIMES]
    agree = [_same_values(value.metric, value.decimals, value.ours, value.program) for value in both]
    if row.program is not None and not theirs and not all(agree):
        words = f"the paper's values are not those of its published {row.program.kind}, and ours agree with neither"
        return "unknown", f"{UNKNOWN}; {words}", ""
    return "unknown", UNKNOWN, ""
