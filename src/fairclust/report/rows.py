"""Rows of a paper's table and their values, whether two values agree, published programs, and causes of differences.

A row is a method on a data set with a K (and a printed lambda). There are two kinds of comparison. *As printed*: the
paper publishes the setting, and every value must agree over the starts. *Matched fairness*: the paper does not publish
the setting, so the front of the method is read at the paper's level of fairness, and the cost there decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import TIMES, column_of
from fairclust.pipeline.papers import ReasonSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.render import joined, metric_label, number
from fairclust.report.selection import (
    HAIR,
    LEVEL_SHARE,
    NOT_RUN,
    Choice,
    Spread,
    allowed,
    at_level,
    cells_of,
    half_unit,
)

FLOOR = 0.001
"""Values agree if they differ by no more than this share."""
LIMIT = 0.1
"""Two optima of one problem differ by no more than this share; two standard deviations count for no more."""
FAIRNESS_LIMIT = 0.02
"""The same limit for fairness metrics, as a difference, where it is more than their share."""

AS_PRINTED, MATCHED = "as printed", "matched fairness"
KINDS = (AS_PRINTED, MATCHED)

VERDICTS = {
    "reproduced": "every value agrees: the mean over the starts is within two standard deviations (which count for at "
    f"most {100 * LIMIT:g} %), within half a unit of the last printed digit (which may be cut off instead of rounded) "
    f"or within {100 * FLOOR:g} %",
    "reached by a start": "every value agrees, or lies between the smallest and the largest value of the starts",
    "as the published program": "ours agrees with the published program, run here, or with the published labels, "
    "whose values are not those that the paper prints",
    "another optimum": f"a value differs, but none by more than {100 * LIMIT:g} % (or {FAIRNESS_LIMIT:g} for a "
    "fairness metric); the direction says how",
    "not reproduced": "a value differs by more than that, or a count of the data set differs at all",
    "on the front": f"as fair as reported, and the cost is within {100 * LEVEL_SHARE:g} % or two standard deviations",
    "better": "as fair as reported, and the cost is lower",
    "worse": "as fair as reported, and the cost is higher",
    "less fair": "no setting of the grid is as fair as reported; the nearest one is shown",
    "impossible": "a reported value cannot be the quantity that its column names",
    "not judged": "all reported values are times of another machine or fairness that chose the setting, or plain "
    "clustering has the reported values, too",
    "not run": "this run has no value; the reason says why",
    "unpublished": "the paper prints no value, or too little to run the row",
}
"""Verdict to its meaning, in the order of the summaries."""

DIFFERING = ("another optimum", "not reproduced", "better", "worse", "less fair")
"""Verdicts of rows that differ from the paper, and so need a cause."""

CAUSES = {
    "program": "shown by a run of the published program",
    "labels": "shown by the published labels",
    "paper": "shown by a contradiction in the paper or its files",
    "command": "shown by a command",
    "run": "shown by another row of this run",
    "conjecture": "conjectured",
    "neither": "unknown (ours agrees with neither paper nor program)",
    "unknown": "unknown",
}
"""How the cause of a difference is known, in the order of the summaries."""

NO_VALUE = Spread()
_ALL_DIGITS = 12
"""Decimals of values that were not printed, so that rounding counts for nothing."""


@dataclass(frozen=True)
class ProgramRuns:
    """What one way to run a published program gives beside a row, or what its published labels give."""

    program: str  # its name in the paper's file
    kind: str  # 'program' or 'labels'
    words: str  # the start and the iterate, if there are several ways, and the setting
    values: dict[str, Spread]  # by metric


@dataclass
class Value:
    """One number of a row."""

    metric: str
    reported: float = math.nan  # NaN if the paper prints no value
    decimals: int = 0  # printed decimals of `reported`
    ours: Spread = NO_VALUE  # over the starts of the chosen setting
    program: Spread = NO_VALUE  # over the runs of the published program
    agrees: str = ""  # as `compare_value` says; empty if the value is not judged
    cause: str = ""  # a key of `CAUSES`; empty if the value needs none
    reason: str = ""
    evidence: str = ""
    note: str = ""


@dataclass
class Row:
    """A method on a data set with a K. `verdicts.table_rows` fills in what is not given."""

    dataset: str
    method: str
    n_clusters: int | None
    lam: float  # the printed lambda; NaN if there is none
    # 'paper', 'variant', 'ours' or 'stand-in'. Rows of the paper and variants of them have reported values and a
    # verdict. Variants are not counted.
    role: str
    kind: str  # 'as printed', 'matched fairness' or empty
    choice: Choice
    values: list[Value]  # in the order of the paper
    original: str = ""  # the paper's data set that a stand-in replaces
    # The published program, run with the start and the iterate of this row.
    runs: tuple[ProgramRuns, ...] = ()
    # The same with every start and iterate. They decide whether the program has the printed values.
    all_runs: tuple[ProgramRuns, ...] = ()
    # The runs that are shown. Of those that agree with ours, or else with the paper, or else of all, they are the
    # nearest to the paper.
    program: ProgramRuns | None = None
    as_program: bool = False  # whether ours agrees with some of `runs`
    verdict: str = ""
    direction: str = ""
    note: str = ""

    def say(self, text: str) -> None:
        """Add to the note."""
        self.note = joined(self.note, text)

    @property
    def reported(self) -> list[Value]:
        """The values that the paper prints."""
        return [value for value in self.values if not math.isnan(value.reported)]

    @property
    def judged(self) -> list[Value]:
        """The values that decide about the verdict."""
        return [value for value in self.values if value.agrees]


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


def is_near(metric: str, reported: float, decimals: int, mean: float) -> bool:
    """Whether a mean is as near to a reported value as another optimum of the same problem may be."""
    return abs(mean - reported) <= max(_limit(metric, reported), half_unit(decimals)) * HAIR


def same_values(metric: str, decimals: int, ours: Spread, other: Spread) -> bool:
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


def compare_cost(metric: str, reported: float, decimals: int, ours: Spread) -> str:
    """The cost at equal fairness beside the reported one: 'yes', 'lower' or 'higher'.

    'yes' means within 2 %, two standard deviations or half a unit of the last printed digit.
    """
    allowed = max(LEVEL_SHARE * abs(reported), half_unit(decimals), _two_deviations(metric, reported, ours))
    if abs(ours.mean - reported) <= allowed * HAIR:
        return "yes"
    return "lower" if ours.mean < reported else "higher"


def _limit(metric: str, value: float) -> float:
    """The largest difference between two optima of one problem."""
    return max(LIMIT * abs(value), FAIRNESS_LIMIT if is_fairness(metric) else 0.0)


def _two_deviations(metric: str, value: float, runs: Spread) -> float:
    return 0.0 if math.isnan(runs.sd) else min(2 * runs.sd, _limit(metric, value))


def is_fairness(metric: str) -> bool:
    """Whether a metric says how fair labels are: it needs only the table of clusters and groups."""
    return metric in METRICS and METRICS[metric].needs == "table" and METRICS[metric].direction != "none"


def reasons_of(values: Iterable[tuple[str, str, str]]) -> list[str]:
    """The reasons of values without duplicates, from the cause, the reason and the evidence of each."""
    texts = [
        ("conjecture: " if cause == "conjecture" else "")
        + reason
        + (f" (evidence: {evidence})" if evidence else "")
        for cause, reason, evidence in values
        if reason
    ]
    return list(dict.fromkeys(texts))


def is_cost(value: Value) -> bool:
    """Whether a value is a reported cost."""
    return not math.isnan(value.reported) and column_of(value.metric).is_cost


def is_worse(value: Value) -> bool:
    """Whether a value that differs is worse than reported."""
    return (value.agrees == "higher") == (column_of(value.metric).direction == "lower")


def fitting(spec: TableSpec, row: Row, metric: str, kind: str) -> ReasonSpec | None:
    """The first reason of a kind that applies to a value."""
    found = (r for r in spec.reasons if r.kind == kind and r.fits(row.dataset, row.method, metric))
    return next(found, None)


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
    return "unknown", "reason not known", ""
