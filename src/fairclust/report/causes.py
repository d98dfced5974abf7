"""Published programs beside the rows of a table, and the causes of differences: the reason, and how it is known."""

from __future__ import annotations

import math

import pandas as pd

from fairclust.pipeline.columns import TIMES
from fairclust.pipeline.papers import TableSpec
from fairclust.report.render import joined, metric_label, number
from fairclust.report.rows import (
    DIFFERING,
    FAIRNESS_LIMIT,
    MATCHED,
    ProgramRuns,
    Row,
    Value,
    compare_cost,
    compare_value,
    fitting,
    same_values,
)
from fairclust.report.selection import HAIR, NOT_RUN, Spread, allowed, at_level, cells_of

REASON_UNKNOWN = "reason not known"
_ALL_DIGITS = 12
"""Decimals of values that were not printed, so that rounding counts for nothing."""


def runs_beside(
    programs: pd.DataFrame | None, table: str, dataset: str, method: str, n_clusters: int | None, lam: float
) -> tuple[ProgramRuns, ...]:
    """The runs of published programs beside a row; `programs` is from `pipeline.reported.load_programs`."""
    if programs is None or programs.empty:
        return ()
    at = programs[(programs.table == table) & (programs.dataset == dataset) & (programs.method == method)]
    k = math.nan if n_clusters is None else float(n_clusters)
    for column, wanted in (("n_clusters", k), ("lam", lam)):
        at = at[at[column].isna() if math.isnan(wanted) else at[column] == wanted]
    found = []
    for (program, words), lines in at.groupby(["program", "variant"], sort=False):
        values = {
            str(v.metric): Spread(float(v.mean), float(v.sd), float(v.low), float(v.high), int(v.runs))
            for v in lines.itertuples()
        }
        first = lines.iloc[0]
        setting = joined(str(words), str(first.setting))
        found.append(ProgramRuns(str(program), str(first.kind), setting, values))
    return tuple(found)


def stand_beside_program(row: Row, spec: TableSpec, cells: pd.DataFrame) -> None:
    """Give the row the values of the published program, and the verdict that follows from them."""
    if not row.all_runs:
        return
    as_ours = [runs for runs in row.runs if _has_our_values(row, runs, spec, cells)]
    as_paper = [runs for runs in row.all_runs if not differing(row, runs)]

    def distance(runs: ProgramRuns) -> tuple[int, float]:
        """How far runs are from the printed values; those that lack a value come last."""
        shared = {value.metric: value.reported for value in row.reported if value.metric in runs.values}
        apart = [
            abs(runs.values[name].mean - of) / max(abs(of), FAIRNESS_LIMIT) for name, of in shared.items()
        ]
        return len(row.reported) - len(shared), sum(apart)

    shown = min(as_ours or as_paper or row.runs or row.all_runs, key=distance)
    for value in row.values:
        if value.metric in shown.values:
            value.program = shown.values[value.metric]
    row.program, row.as_program = shown, bool(as_ours)
    if not as_paper:
        if as_ours and row.verdict in ("another optimum", "not reproduced", "worse", "less fair"):
            row.verdict = "as the published program"
        words = []
        for value in differing(row, shown):
            found, digits = shown.values[value.metric], max(value.decimals, 0) + 1
            text = number(found.mean, digits)
            if found.n > 1:
                text = f"{number(found.low, digits)} to {number(found.high, digits)} in {found.n} runs"
            words.append(f"{metric_label(value.metric)} {text} for {number(value.reported, value.decimals)}")
        row.say(f"the paper's value is not that of its {called(shown)}: {', '.join(words)}")


def called(runs: ProgramRuns) -> str:
    """What texts call the source of the runs."""
    return "published labels" if runs.kind == "labels" else "published program"


def differing(row: Row, runs: ProgramRuns) -> list[Value]:
    """The values in which the published program does not have the printed one."""
    return [
        value
        for value in row.reported
        if value.metric in runs.values
        and value.metric not in TIMES
        and compare_value(value.metric, value.reported, value.decimals, runs.values[value.metric])
        in ("lower", "higher", "no")
    ]


def _has_our_values(row: Row, runs: ProgramRuns, spec: TableSpec, cells: pd.DataFrame) -> bool:
    """Whether the published program agrees with ours: in every judged value, or in the cost at its own fairness."""
    if row.kind != MATCHED or spec.match is None:
        return bool(row.judged) and all(
            value.metric in runs.values
            and same_values(value.metric, value.decimals, value.ours, runs.values[value.metric])
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
    return choice.reached and choice.n_ok > 0 and compare_cost(match.order, cost, _ALL_DIGITS, ours) == "yes"


def explain(rows: list[Row], spec: TableSpec) -> None:
    """Give a reason to each value that needs one, in the rows of one data set."""
    for row in rows:
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
            # Other readings of the method that have the reported values.
            variants = [
                other.method
                for other in rows
                if other.role == "variant"
                and other.method in spec.variants.get(row.method, ())
                and other.verdict in ("reproduced", "reached by a start")
                and (other.lam == row.lam or math.isnan(row.lam))
            ]
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
    both = [value for value in row.values if value.ours.n and value.program.n and value.metric not in TIMES]
    agree = [same_values(value.metric, value.decimals, value.ours, value.program) for value in both]
    if row.program is not None and lacking and not all(agree):
        words = f"the paper's values are not those of its {called(row.program)}, and ours agree with neither"
        return "neither", words, ""
    return "unknown", REASON_UNKNOWN, ""
