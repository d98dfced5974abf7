"""The causes of differences between a paper's rows and ours: the reason, and how it is known."""

from __future__ import annotations

import math
from dataclasses import replace

from fairclust.pipeline.columns import TIMES
from fairclust.pipeline.papers import TableSpec
from fairclust.report.agreement import same_values
from fairclust.report.program_runs import called, differing
from fairclust.report.rows import DIFFERING, Row, Value, fitting
from fairclust.report.selection import NOT_RUN

REASON_UNKNOWN = "reason not known"


def explained(rows: list[Row], spec: TableSpec) -> list[Row]:
    """The rows of a data set with a reason at each value that needs one."""
    found: list[Row] = []
    for row in rows:
        variants = [
            other.method
            for other in rows
            if other.role == "variant"
            and other.method in spec.variants.get(row.method, ())
            and other.verdict in ("reproduced", "reached by a start")
            and (other.lam == row.lam or math.isnan(row.lam))
        ]
        found.append(_with_reasons(row, spec, variants) if row.role in ("paper", "variant") else row)
    return found


def _with_reasons(row: Row, spec: TableSpec, variants: list[str]) -> Row:
    """The row with a reason at each value that needs one; `variants` are other readings that have the values."""
    if row.verdict in ("impossible", "unpublished"):
        values = []
        for value in row.values:
            reason = fitting(spec, row, value.metric, row.verdict)
            if reason:
                values.append(replace(value, reason=reason.reason, evidence=reason.evidence or ""))
            elif row.verdict == "unpublished":
                values.append(replace(value, reason=value.note or row.note or "the paper prints no value"))
            else:
                values.append(value)
        return replace(row, values=tuple(values))
    if row.verdict == "not run":
        return replace(row, values=tuple(replace(v, reason=row.note or NOT_RUN) for v in row.values))
    if row.verdict not in DIFFERING:
        return row
    printed = [value for value in row.values if not math.isnan(value.reported)]
    asked = [value.metric for value in printed if value.agrees in ("lower", "higher", "no")]
    asked = asked or [value.metric for value in printed]
    values = [
        _with_cause(row, value, spec, variants) if value.metric in asked else value for value in row.values
    ]
    return replace(row, values=tuple(values))


def _with_cause(row: Row, value: Value, spec: TableSpec, variants: list[str]) -> Value:
    """A value that differs, with the cause, the reason and its evidence."""
    reason = fitting(spec, row, value.metric, "deviation")
    if reason is not None and reason.shown_by:
        return replace(value, cause=reason.shown_by, reason=reason.reason, evidence=reason.evidence or "")
    lacking = all(differing(row, runs) for runs in row.all_runs)
    if row.program is not None:
        kind, source = row.program.kind, called(row.program)
        if row.as_program:
            return replace(value, cause=kind, reason=f"ours agrees with a run of the {source}")
        # That the printed value is real explains only that ours is better.
        is_better = row.verdict == "better" or set(row.direction.split(", ")) <= {"cheaper", "fairer"}
        if is_better and not lacking:
            has = "have" if kind == "labels" else "has"
            words = f"the {source} {has} the printed values, and ours are better"
            return replace(value, cause=kind, reason=words)
    if variants:
        return replace(value, cause="run", reason=f"the variant {variants[0]} has the reported values")
    if reason is not None:
        return replace(value, cause="conjecture", reason=reason.reason)
    if row.program is not None and lacking and _differs_from_program(row):
        words = f"the paper's values are not those of its {called(row.program)}, and ours agree with neither"
        return replace(value, cause="neither", reason=words)
    return replace(value, cause="unknown", reason=REASON_UNKNOWN)


def _differs_from_program(row: Row) -> bool:
    """Whether ours differs from the shown runs of the published program in a value that both have."""
    return any(
        value.ours.n
        and value.program.n
        and value.metric not in TIMES
        and not same_values(value.metric, value.decimals, value.ours, value.program)
        for value in row.values
    )
