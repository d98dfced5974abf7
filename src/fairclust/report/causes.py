"""The causes of differences between a paper's rows and ours: the reason, and how it is known."""

from __future__ import annotations

import math

from fairclust.pipeline.columns import TIMES
from fairclust.pipeline.papers import TableSpec
from fairclust.report.agreement import same_values
from fairclust.report.program_runs import called, differing
from fairclust.report.rows import DIFFERING, Row, Value, fitting
from fairclust.report.selection import NOT_RUN

REASON_UNKNOWN = "reason not known"


def explain(rows: list[Row], spec: TableSpec) -> None:
    """Give a reason to each value that needs one, in the rows of one data set."""
    for row in rows:
        if row.role in ("paper", "variant"):
            # Other readings of the method that have the reported values.
            variants = [
                other.method
                for other in rows
                if other.role == "variant"
                and other.method in spec.variants.get(row.method, ())
                and other.verdict in ("reproduced", "reached by a start")
                and (other.lam == row.lam or math.isnan(row.lam))
            ]
            _explain_row(row, spec, variants)


def _explain_row(row: Row, spec: TableSpec, variants: list[str]) -> None:
    if row.verdict in ("impossible", "unpublished"):
        for value in row.values:
            reason = fitting(spec, row, value.metric, row.verdict)
            if reason:
                value.reason, value.evidence = reason.reason, reason.evidence or ""
            elif row.verdict == "unpublished":
                value.reason = value.note or row.note or "the paper prints no value"
    elif row.verdict == "not run":
        for value in row.values:
            value.reason = row.note or NOT_RUN
    elif row.verdict in DIFFERING:
        differ = [value for value in row.reported if value.agrees in ("lower", "higher", "no")]
        for value in differ or row.reported:
            value.cause, value.reason, value.evidence = _cause(row, value, spec, variants)


def _cause(row: Row, value: Value, spec: TableSpec, variants: list[str]) -> tuple[str, str, str]:
    """The cause, the reason and its evidence of a value that differs."""
    reason = fitting(spec, row, value.metric, "deviation")
    if reason is not None and reason.shown_by:
        return reason.shown_by, reason.reason, reason.evidence or ""
    lacking = all(differing(row, runs) for runs in row.all_runs)
    if row.program is not None:
        kind, source = row.program.kind, called(row.program)
        if row.as_program:
            return kind, f"ours agrees with a run of the {source}", ""
        # That the printed value is real explains only that ours is better.
        is_better = row.verdict == "better" or set(row.direction.split(", ")) <= {"cheaper", "fairer"}
        if is_better and not lacking:
            has = "have" if kind == "labels" else "has"
            return kind, f"the {source} {has} the printed values, and ours are better", ""
    if variants:
        return "run", f"the variant {variants[0]} has the reported values", ""
    if reason is not None:
        return "conjecture", reason.reason, ""
    if row.program is not None and lacking and _differs_from_program(row):
        words = f"the paper's values are not those of its {called(row.program)}, and ours agree with neither"
        return "neither", words, ""
    return "unknown", REASON_UNKNOWN, ""


def _differs_from_program(row: Row) -> bool:
    """Whether ours differs from the shown runs of the published program in a value that both have."""
    return any(
        value.ours.n
        and value.program.n
        and value.metric not in TIMES
        and not same_values(value.metric, value.decimals, value.ours, value.program)
        for value in row.values
    )
