"""Verdicts: whether this run reproduces the rows of a paper's table.

Each row gets one verdict. A row is a method on a data set with a K (and a printed lambda). There are two kinds of
comparison. *As printed*: the paper publishes the setting, and every value must agree over the starts. *Matched
fairness*: the paper does not publish the setting, so the front of the method is read at the paper's level of fairness,
and the cost there decides. Where the paper's published program was run, or its published labels were scored, their
values stand between: they tell a value that the program does not have from one that we do not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from fairclust.pipeline.columns import COLUMNS, TIMES
from fairclust.pipeline.papers import MatchSpec, ReasonSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.agreement import (
    FAIRNESS_LIMIT,
    FLOOR,
    LIMIT,
    compare_cost,
    compare_value,
    is_fairness,
    is_near,
    same_values,
)
from fairclust.report.names import metric_label
from fairclust.report.render import number
from fairclust.report.selection import (
    LEVEL_SHARE,
    NOT_RUN,
    Choice,
    Spread,
    at_level,
    cells_of,
    choose,
    choose_printed,
    half_unit,
    reported_level,
    spread,
)

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
    "unknown": "unknown",
}
"""How the cause of a difference is known, in the order of the summaries."""

REASON_UNKNOWN = "reason not known"
_OF_DATA_ITSELF = "data"

VERDICT_COLUMNS = [
    *("paper", "table", "dataset", "n_clusters", "lam", "method", "metric", "reported", "decimals"),
    *("program", "program_mean", "program_low", "program_high", "program_runs", "kind"),
    *("setting", "seeds", "mean", "sd", "low", "high", "agrees", "verdict", "direction"),
    *("cause", "reason", "evidence", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""


NO_VALUE = Spread()


@dataclass(frozen=True)
class Variant:
    """The values of a published program beside a row: one way to run it, or its published labels.

    Attributes
    ----------
    program : str
        Its name in the paper's file.
    kind : {'program', 'labels'}
    words : str
        The start and the iterate, if a row has several variants, and the setting.
    values : dict of str to Spread
        By metric.
    seconds : float
    """

    program: str
    kind: str
    words: str
    values: dict[str, Spread]
    seconds: float = math.nan


@dataclass(frozen=True)
class Value:
    """One number of a row.

    Attributes
    ----------
    metric : str
    reported : float
        NaN if the paper prints no value.
    decimals : int
        Printed decimals of `reported`.
    ours : Spread
        Over the starts of the chosen setting.
    program : Spread
        Over the runs of the published program.
    agrees : {'yes', 'start', 'lower', 'higher', 'no', ''}
        'start': only a start reaches it; empty if the value is not judged; 'no' is a count that differs.
    cause : str
        A key of `CAUSES`; empty if the value needs none.
    reason, evidence, note : str
    """

    metric: str
    reported: float = math.nan
    decimals: int = 0
    ours: Spread = NO_VALUE
    program: Spread = NO_VALUE
    agrees: str = ""
    cause: str = ""
    reason: str = ""
    evidence: str = ""
    note: str = ""


@dataclass(frozen=True)
class Row:
    """A method on a data set with a K.

    Attributes
    ----------
    dataset, method : str
    n_clusters : int or None
    lam : float
        The printed lambda; NaN if there is none.
    role : {'paper', 'variant', 'ours', 'stand-in'}
        Rows of the paper and variants of them have reported values and a verdict. Variants are not counted.
    original : str
        The paper's data set that a stand-in replaces.
    kind : {'as printed', 'matched fairness', ''}
    choice : Choice
    values : tuple of Value
        In the order of the paper.
    variants : tuple of Variant
        The published program beside the row: ways to run it that read the method as the row does.
    readings : tuple of Variant
        Those of the row's method in any reading, which decide whether the program has the printed values.
    program : Variant or None
        The variant that is shown: the nearest to the paper of those that agree with ours, else with the paper, else of
        all.
    as_program : bool
        Whether ours agrees with the published program.
    verdict, direction, note : str
    """

    dataset: str
    method: str
    n_clusters: int | None
    lam: float
    role: str
    kind: str
    choice: Choice
    values: tuple[Value, ...]
    original: str = ""
    variants: tuple[Variant, ...] = ()
    readings: tuple[Variant, ...] = ()
    program: Variant | None = None
    as_program: bool = False
    verdict: str = ""
    direction: str = ""
    note: str = ""

    @property
    def reasons(self) -> list[str]:
        """The reasons of the values without duplicates, each with its evidence."""
        found = []
        for value in self.values:
            evidence = f" (evidence: {value.evidence})" if value.evidence else ""
            lead = "conjecture: " if value.cause == "conjecture" else ""
            found.append(lead + value.reason + evidence if value.reason else "")
        return [text for text in dict.fromkeys(found) if text]


def table_rows(
    spec: TableSpec, reported: pd.DataFrame, cells: pd.DataFrame, programs: pd.DataFrame | None = None
) -> list[Row]:
    """All rows of a table: the rows of the paper with verdicts, and those of our methods and stand-ins without.

    Parameters
    ----------
    spec : TableSpec
    reported : DataFrame
        All reported values of the paper, from `pipeline.reported.load_reported`.
    cells : DataFrame
        From `pipeline.scores.load_cells`.
    programs : DataFrame, optional
        The values of published programs, from `pipeline.reported.load_programs`.

    Returns
    -------
    list of Row
        In the paper's order of data sets. The variants of a row follow it. The rows of our methods and of stand-ins
        follow those of each data set.
    """
    of_table = reported[reported.table == spec.number]
    rows: list[Row] = []
    for (dataset, n_clusters), group in of_table.groupby(["dataset", "n_clusters"], sort=False, dropna=False):
        k = None if pd.isna(n_clusters) else int(n_clusters)
        metrics = list(dict.fromkeys(group.metric[group.method != _OF_DATA_ITSELF]))
        drafts, here = [], cells[cells.dataset == dataset]
        for (method, lam), values in group.groupby(["method", "lam"], sort=False, dropna=False):
            if method == _OF_DATA_ITSELF:
                beside = _variants(programs, spec.number, str(dataset), _OF_DATA_ITSELF, k, math.nan)
                drafts.append(_data_row(spec, str(dataset), k, values, here, beside))
                continue
            found = tuple(
                Value(str(v.metric), float(v.value), _decimals(v.decimals), note=str(v.note))
                for v in values.itertuples()
            )
            names = (str(method), *spec.variants.get(str(method), ()))
            of_names = [_variants(programs, spec.number, str(dataset), name, k, float(lam)) for name in names]
            readings = tuple(variant for of_name in of_names for variant in of_name)
            for name, own in zip(names, of_names, strict=True):
                kind, choice = _chosen(
                    spec, reported, here, str(dataset), name, k, float(lam), of=str(method)
                )
                role = "paper" if name == method else "variant"
                if role == "paper" or choice.n_all:
                    row = Row(str(dataset), name, k, float(lam), role, kind, choice, found)
                    drafts.append(replace(row, variants=own, readings=readings))
        methods = list(dict.fromkeys(group.method[group.method != _OF_DATA_ITSELF]))
        ours = [
            _extra_row(spec, reported, here, str(dataset), method, k, math.nan, metrics, "")
            for method in spec.ours
            if method not in methods
        ]
        # Without cells in this run, the row of a method of ours would be empty.
        drafts += [row for row in ours if row.choice.n_all]
        judged = [
            _controlled(_judged(row, spec, here), spec, reported, here) for row in _measured(drafts, spec)
        ]
        rows += _explained(judged, spec)
        for stand_in in spec.stand_ins.get(str(dataset), []):
            pairs = list(group[["method", "lam"]].drop_duplicates().itertuples(index=False))
            pairs = [(m, float(lam)) for m, lam in pairs if m != _OF_DATA_ITSELF]
            pairs += [(method, math.nan) for method in spec.ours if method not in methods]
            extra = [
                _extra_row(spec, reported, cells, stand_in, str(m), k, lam, metrics, str(dataset))
                for m, lam in pairs
            ]
            rows += _measured([row for row in extra if row.choice.n_all], spec)
    return rows


def verdict_frame(paper: str, spec: TableSpec, rows: Iterable[Row]) -> pd.DataFrame:
    """One line per reported value, with the verdict of its row.

    Parameters
    ----------
    paper : str
    spec : TableSpec
    rows : iterable of Row
        Rows that are not the paper's are left out.

    Returns
    -------
    DataFrame
        With the columns `VERDICT_COLUMNS`; ``seeds`` is the number of starts that have a value.
    """
    lines = []
    for row in rows:
        if row.role != "paper":
            continue
        for value in row.values:
            if value.metric in spec.beside and math.isnan(value.reported) and not value.note:
                continue
            lines.append(
                {
                    "paper": paper,
                    "table": spec.number,
                    "dataset": row.dataset,
                    "n_clusters": row.n_clusters,
                    "lam": row.lam,
                    "method": row.method,
                    "metric": value.metric,
                    "reported": value.reported,
                    "decimals": None if math.isnan(value.reported) else value.decimals,
                    "program": row.program.program if row.program and value.program.n else "",
                    "program_mean": value.program.mean,
                    "program_low": value.program.low,
                    "program_high": value.program.high,
                    "program_runs": value.program.n,
                    "kind": row.kind,
                    "setting": row.choice.setting,
                    "seeds": value.ours.n,
                    "mean": value.ours.mean,
                    "sd": value.ours.sd,
                    "low": value.ours.low,
                    "high": value.ours.high,
                    "agrees": value.agrees,
                    "verdict": row.verdict,
                    "direction": row.direction,
                    "cause": value.cause,
                    "reason": value.reason,
                    "evidence": value.evidence,
                    "note": "; ".join(dict.fromkeys(filter(None, [value.note, row.note]))),
                }
            )
    frame = pd.DataFrame(lines, columns=VERDICT_COLUMNS)
    return frame.astype(dict.fromkeys(_COUNTS, "Int64"))


_TEXT = ("paper", "table", "dataset", "method", "metric", "program", "kind", "setting", "agrees", "verdict",
         "direction", "cause", "reason", "evidence", "note")  # fmt: skip
_COUNTS = ("n_clusters", "decimals", "program_runs", "seeds")


def load_verdicts(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join files of verdicts. Missing texts are read as empty strings.

    Parameters
    ----------
    paths : iterable of Path
        CSV files of `verdict_frame`, or the scoreboard's CSV.

    Returns
    -------
    DataFrame
        With the columns `VERDICT_COLUMNS`.
    """
    frames = []
    for path in paths:
        frame = pd.read_csv(path, dtype=dict.fromkeys(_TEXT, str), keep_default_na=False, na_values={
            name: [""] for name in VERDICT_COLUMNS if name not in _TEXT
        })  # fmt: skip
        frames.append(frame[VERDICT_COLUMNS])
    joined = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=VERDICT_COLUMNS)
    numbers = [name for name in VERDICT_COLUMNS if name not in (*_TEXT, *_COUNTS)]
    return joined.astype({**dict.fromkeys(_COUNTS, "Int64"), **dict.fromkeys(numbers, float)})


def _variants(
    programs: pd.DataFrame | None, table: str, dataset: str, method: str, n_clusters: int | None, lam: float
) -> tuple[Variant, ...]:
    """The values of published programs beside a row."""
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
        setting = "; ".join(filter(None, [str(words), str(first.setting)]))
        found.append(Variant(str(program), str(first.kind), setting, values, float(first.seconds)))
    return tuple(found)


def _chosen(
    spec: TableSpec,
    reported: pd.DataFrame,
    cells: pd.DataFrame,
    dataset: str,
    method: str,
    n_clusters: int | None,
    lam: float,
    original: tuple[str, int | None] | None = None,
    of: str = "",
) -> tuple[str, Choice]:
    """Kind of comparison and setting of a row; `original` is the data set that a stand-in replaces, with its K.

    A stand-in has other data, so the lambda printed for the original data set is used only if the table has no rule for
    matching the fairness. A variant has the settings and the level of the method `of` that it is a variant of.
    """
    named = of or method
    at = cells_of(cells, dataset, method, n_clusters)
    if at.empty:
        return _kind(spec, named, lam), Choice(at, _why_not(cells, dataset, method, n_clusters))
    if n_clusters is None and at.n_clusters.nunique() > 1:
        return _kind(spec, named, lam), Choice(at[:0], "the paper does not state K")
    printed = named in spec.settings or not math.isnan(lam)
    if printed and not (original and spec.match and not math.isnan(lam)):
        return AS_PRINTED, choose_printed(at, lam, spec.settings.get(named, {}))
    if spec.match is not None:
        whose, k = original or (dataset, n_clusters)
        cost = _reported_cost(spec.match, spec.number, reported, whose, named, k)
        # The tolerance of the level may not make us better than reported, only as good.
        for strict in (True, False):
            level = reported_level(
                spec.match,
                spec.number,
                reported,
                whose,
                named,
                own=spec.own,
                n_clusters=k,
                lam=lam,
                strict=strict,
            )
            if level is None:
                break
            choice = at_level(at, level, spec.match, cost)
            lower = COLUMNS[spec.match.order].direction == "lower" if spec.match.order in COLUMNS else True
            found = choice.spread(spec.match.order).mean
            if not strict or (choice.reached and (found <= cost if lower else found >= cost)):
                return MATCHED, replace(choice, loosened=not strict)
    choice = choose(at)
    if at.params.nunique() > 1:
        note = "the paper publishes no setting, so the one with the lowest mean objective is shown"
        choice = replace(choice, note="; ".join(filter(None, [choice.note, note])))
    return AS_PRINTED, choice


def _reported_cost(
    match: MatchSpec, table: str, reported: pd.DataFrame, dataset: str, method: str, n_clusters: int | None
) -> float:
    """The cost that a paper reports for a row; NaN if there is none."""
    at = reported[(reported.table == table) & (reported.dataset == dataset) & (reported.method == method)]
    at = at[(at.metric == match.order) & (at.n_clusters == n_clusters if n_clusters is not None else True)]
    return float(at.value.iloc[0]) if len(at) else math.nan


def _decimals(value: object) -> int:
    return 0 if pd.isna(value) else int(value)  # type: ignore[call-overload]


def _kind(spec: TableSpec, method: str, lam: float) -> str:
    """The kind of comparison that a row would have."""
    printed = method in spec.settings or not math.isnan(lam) or spec.match is None
    return AS_PRINTED if printed else MATCHED


def _why_not(cells: pd.DataFrame, dataset: str, method: str, n_clusters: int | None) -> str:
    """Why a row has no cell: the data set, the method, or the K was not run."""
    at = cells[cells.dataset == dataset]
    if at.empty:
        return f"the data set is {NOT_RUN}"
    if not (at.method == method).any():
        return f"the method is {NOT_RUN}"
    return f"not run with K = {n_clusters}"


def _extra_row(
    spec: TableSpec,
    reported: pd.DataFrame,
    cells: pd.DataFrame,
    dataset: str,
    method: str,
    n_clusters: int | None,
    lam: float,
    metrics: list[str],
    original: str,
) -> Row:
    """A row that is not the paper's: a method of ours, or a stand-in."""
    k = n_clusters
    if original:
        # A stand-in may have been run with another K.
        ran = cells_of(cells, dataset, method).n_clusters.unique()
        k = k if k in ran or len(ran) != 1 else int(ran[0])
    of = (original, n_clusters) if original else None
    kind, choice = _chosen(spec, reported, cells, dataset, method, k, lam, of)
    values = tuple(Value(str(metric)) for metric in metrics)
    return Row(dataset, method, k, lam, "stand-in" if original else "ours", kind, choice, values, original)


def _data_row(
    spec: TableSpec,
    dataset: str,
    n_clusters: int | None,
    values: pd.DataFrame,
    cells: pd.DataFrame,
    variants: tuple[Variant, ...],
) -> Row:
    """The row with the properties of a data set that the paper reports. A count agrees only if it is equal."""
    at = cells[cells.dataset == dataset]
    found, verdicts = [], set()
    for value in values.itertuples():
        column = OF_DATA.get(str(value.metric), str(value.metric))
        counts = at[column].dropna() if column in at else pd.Series(dtype=float)
        if pd.isna(value.value):
            found.append(Value(str(value.metric), note=str(value.note)))
            continue
        if counts.empty:
            ours, agrees = NO_VALUE, ""
            verdicts.add("not run")
        else:
            count = float(counts.iloc[0])
            ours = Spread(count, math.nan, count, count, 1)
            agrees = compare_value(str(value.metric), float(value.value), 0, ours)
            verdicts.add("reproduced" if agrees == "yes" else "not reproduced")
        decimals = _decimals(value.decimals)
        found.append(
            Value(str(value.metric), float(value.value), decimals, ours, agrees=agrees, note=str(value.note))
        )
    order = ("not reproduced", "not run", "reproduced")
    verdict = next((name for name in order if name in verdicts), "unpublished")
    note = "" if verdict != "not run" else f"the data set is {NOT_RUN}" if at.empty else "no fit ended well"
    row = Row(
        dataset, _OF_DATA_ITSELF, n_clusters, math.nan, "paper", AS_PRINTED, Choice(at[:0]), tuple(found)
    )
    row = replace(row, verdict=verdict, note=note, variants=variants, readings=variants)
    return _beside_program(row, spec, at)


def _measured(rows: list[Row], spec: TableSpec) -> list[Row]:
    """The rows of one data set with our values, and with the further metrics that the table shows (`spec.beside`)."""
    own = next((row for row in rows if row.method == spec.own), None)
    unit = own.choice.spread("seconds").mean if own else math.nan
    found = []
    for row in rows:
        if row.method == _OF_DATA_ITSELF:
            found.append(row)
            continue
        shown = {value.metric for value in row.values}
        values = [*row.values, *(Value(metric) for metric in spec.beside if metric not in shown)]
        note = "; ".join(filter(None, [row.note, row.choice.note]))
        measured = tuple(replace(value, ours=_measure(row.choice, value.metric, unit)) for value in values)
        found.append(replace(row, values=measured, note=note))
    return found


def _measure(choice: Choice, metric: str, unit: float) -> Spread:
    """A metric over the starts of a setting. Relative times are in units of the mean of the paper's own method."""
    if metric == "seconds_std":
        of_seconds = choice.spread("seconds")
        return Spread(of_seconds.sd, n=0 if math.isnan(of_seconds.sd) else of_seconds.n)
    if metric == "relative_seconds":
        if "seconds" not in choice.cells or math.isnan(unit) or unit <= 0:
            return NO_VALUE
        return spread(choice.cells.seconds / unit)
    return choice.spread(metric)


def _judged(row: Row, spec: TableSpec, cells: pd.DataFrame) -> Row:
    """A row with reported values with its verdict; `cells` are those of its data set."""
    if row.role not in ("paper", "variant") or row.method == _OF_DATA_ITSELF:
        return row
    has_cost = any(_is_cost(value) for value in row.values)
    values = []
    for value in row.values:
        why_not = _why_not_judged(value, row, spec, has_cost)
        agrees = ""
        if value.ours.n and not math.isnan(value.reported) and not why_not:
            compare = compare_cost if row.kind == MATCHED else compare_value
            agrees = compare(value.metric, value.reported, value.decimals, value.ours)
        note = "; ".join(filter(None, [value.note, why_not]))
        values.append(replace(value, agrees=agrees, note=note))
    row = replace(row, values=tuple(values), note="; ".join(filter(None, [row.note, _collapse(row)])))
    published = [
        value
        for value in row.values
        if not math.isnan(value.reported) and not _fitting(spec, row, value.metric, "unpublished")
    ]
    if any(_fitting(spec, row, value.metric, "impossible") for value in row.values):
        return replace(row, verdict="impossible")
    if not published:
        return replace(row, verdict="unpublished")
    if not any(value.ours.n for value in published):
        return replace(row, verdict="not run", note=row.note or "the scorer has no value for these metrics")
    lacking = [
        value.metric
        for value in published
        if not value.ours.n and not _why_not_judged(value, row, spec, has_cost)
    ]
    if lacking:
        words = f"no value for {', '.join(map(metric_label, lacking))}"
        row = replace(row, note="; ".join(filter(None, [row.note, words])))
    verdict = _matched_verdict(row) if row.kind == MATCHED else _printed_verdict(row, bool(lacking))
    row = _beside_program(replace(row, verdict=verdict), spec, cells)
    return replace(row, direction=_direction(row) if row.verdict == "another optimum" else "")


def _controlled(row: Row, spec: TableSpec, reported: pd.DataFrame, cells: pd.DataFrame) -> Row:
    """The row without a verdict if plain clustering, which knows nothing of groups, passes it as well."""
    ranks = {
        "reproduced": 0,
        "on the front": 0,
        "better": 0,
        "reached by a start": 1,
        "as the published program": 1,
    }
    if not spec.control or row.method == spec.control or row.verdict not in ranks:
        return row
    if row.kind == MATCHED:
        _, choice = _chosen(
            spec, reported, cells, row.dataset, spec.control, row.n_clusters, row.lam, of=row.method
        )
    else:
        choice = choose(cells_of(cells, row.dataset, spec.control, row.n_clusters))
    plain = replace(row, method=spec.control, variants=(), readings=(), choice=choice)
    verdict = _judged(_measured([plain], spec)[0], spec, cells).verdict
    if verdict not in ranks or ranks[verdict] > ranks[row.verdict]:
        return row
    words = f"{spec.control} has these values too, so the row says nothing about this method"
    return replace(row, verdict="not judged", note="; ".join(filter(None, [row.note, words])))


def _is_cost(value: Value) -> bool:
    return not math.isnan(value.reported) and value.metric in COLUMNS and COLUMNS[value.metric].is_cost


def _why_not_judged(value: Value, row: Row, spec: TableSpec, has_cost: bool) -> str:
    """Why a reported value does not count for the verdict of its row; empty if it does."""
    if math.isnan(value.reported):
        return ""
    if _fitting(spec, row, value.metric, "unpublished"):
        return "the paper publishes too little to judge this value"
    if value.metric in TIMES:
        return "time of another machine, not judged"
    if row.kind != MATCHED or spec.match is None:
        return ""
    if value.metric == spec.match.fairness:
        return "this value chose the setting, so it is not judged"
    if is_fairness(value.metric) or (has_cost and not _is_cost(value)):
        return "at equal fairness only the cost is judged"
    return ""


def _printed_verdict(row: Row, lacking: bool) -> str:
    """The verdict of a row whose setting is published, beside the paper alone."""
    judged = [value for value in row.values if value.agrees]
    if not judged and not lacking:
        return "not judged"
    if lacking:
        return "not reproduced"
    found = {value.agrees for value in judged}
    if found == {"yes"}:
        return "reproduced"
    if found <= {"yes", "start"}:
        return "reached by a start"
    near = all(
        value.agrees in ("yes", "start")
        or is_near(value.metric, value.reported, value.decimals, value.ours.mean)
        for value in judged
    )
    return "another optimum" if near else "not reproduced"


def _matched_verdict(row: Row) -> str:
    """The verdict of a row at matched fairness, beside the paper alone."""
    judged = [value for value in row.values if value.agrees]
    if not row.choice.reached:
        # A setting that has the reported fairness and cost within two standard deviations is on the front, although
        # its mean fairness misses the level.
        shown = [v for v in row.values if not math.isnan(v.reported) and (v.agrees or is_fairness(v.metric))]
        found = {compare_value(v.metric, v.reported, v.decimals, v.ours) for v in shown if v.ours.n}
        return "on the front" if found == {"yes"} and judged else "less fair"
    if not judged:
        return "not judged"
    worse = [_is_worse(value) for value in judged if value.agrees != "yes"]
    return "worse" if any(worse) else "better" if worse and not row.choice.loosened else "on the front"


def _is_worse(value: Value) -> bool:
    """Whether a value that differs is worse than reported."""
    return (value.agrees == "higher") == (COLUMNS[value.metric].direction == "lower")


def _direction(row: Row) -> str:
    """How the values that differ do so."""
    words = []
    for value in row.values:
        if value.agrees not in ("lower", "higher"):
            continue
        worse = _is_worse(value)
        if _is_cost(value):
            words.append("dearer" if worse else "cheaper")
        elif is_fairness(value.metric):
            words.append("less fair" if worse else "fairer")
        else:
            words.append(f"{value.agrees} {metric_label(value.metric)}")
    return ", ".join(dict.fromkeys(words))


def _beside_program(row: Row, spec: TableSpec, cells: pd.DataFrame) -> Row:
    """The row with the values of the published program, and with the verdict that follows from them."""
    if not row.readings:
        return row
    as_ours = [variant for variant in row.variants if _has_our_values(row, variant, spec, cells)]
    as_paper = [variant for variant in row.readings if not _differing(row, variant)]
    shown = min(as_ours or as_paper or row.variants or row.readings, key=lambda one: _distance(row, one))
    none = NO_VALUE
    values = tuple(replace(value, program=shown.values.get(value.metric, none)) for value in row.values)
    row = replace(row, values=values, program=shown)
    row = replace(row, as_program=bool(as_ours))
    if (
        as_ours
        and not as_paper
        and row.verdict in ("another optimum", "not reproduced", "worse", "less fair")
    ):
        row = replace(row, verdict="as the published program")
    if not as_paper:
        words = f"the paper's value is not that of its {_called(shown)}: {_program_words(row, shown)}"
        row = replace(row, note="; ".join(filter(None, [row.note, words])))
    return row


def _distance(row: Row, variant: Variant) -> tuple[int, float]:
    """How far the values of a variant are from the printed ones; one that lacks a value comes last."""
    printed = [value for value in row.values if not math.isnan(value.reported)]
    shared = [value for value in printed if value.metric in variant.values]
    apart = [
        abs(variant.values[value.metric].mean - value.reported) / max(abs(value.reported), FAIRNESS_LIMIT)
        for value in shared
    ]
    return len(printed) - len(shared), sum(apart)


def _called(variant: Variant) -> str:
    return "published labels" if variant.kind == "labels" else "published program"


def _program_words(row: Row, variant: Variant) -> str:
    """The values of a variant that are not the printed ones, as text."""
    words = []
    for value in row.values:
        if value.metric not in _differing(row, variant):
            continue
        found, digits = variant.values[value.metric], max(value.decimals, 0) + 1
        text = number(found.mean, digits)
        if found.n > 1:
            text = f"{number(found.low, digits)} to {number(found.high, digits)} in {found.n} runs"
        words.append(f"{metric_label(value.metric)} {text} for {number(value.reported, value.decimals)}")
    return ", ".join(words)


def _differing(row: Row, variant: Variant) -> list[str]:
    """The metrics in which the published program does not have the printed value."""
    return [
        value.metric
        for value in row.values
        if not math.isnan(value.reported)
        and value.metric in variant.values
        and value.metric not in TIMES
        and compare_value(value.metric, value.reported, value.decimals, variant.values[value.metric])
        in ("lower", "higher", "no")
    ]


def _has_our_values(row: Row, variant: Variant, spec: TableSpec, cells: pd.DataFrame) -> bool:
    """Whether the published program agrees with ours: in every judged value, or in the cost at its own fairness."""
    if row.kind != MATCHED or spec.match is None:
        judged = [value for value in row.values if value.agrees]
        return bool(judged) and all(
            value.metric in variant.values
            and same_values(value.metric, value.decimals, value.ours, variant.values[value.metric])
            for value in judged
        )
    match = spec.match
    printed = next((value for value in row.values if value.metric == match.fairness), None)
    if printed is None or not {match.fairness, match.order} <= set(variant.values):
        return False
    # Only a run that is about as fair as printed says something about the printed row.
    apart = abs(variant.values[match.fairness].mean - printed.reported)
    if not apart <= max(LEVEL_SHARE * abs(printed.reported), half_unit(printed.decimals)):
        return False
    level, cost = variant.values[match.fairness].mean, variant.values[match.order].mean
    lower = COLUMNS[match.fairness].direction == "lower"
    level += (1 if lower else -1) * LEVEL_SHARE * abs(level)
    choice = at_level(cells_of(cells, row.dataset, row.method, row.n_clusters), level, match, cost)
    if not choice.n_ok or not choice.reached:
        return False
    ours = choice.spread(match.order)
    return compare_cost(match.order, cost, 12, ours) == "yes"


def _collapse(row: Row) -> str:
    """How the chosen clusterings have collapsed; empty if they have not."""
    cells, found = row.choice.cells, []
    if cells.empty:
        return ""
    if "n_nonempty" in cells:
        used = cells.n_nonempty.dropna()
        fewer = used[used < cells.n_clusters[used.index]]
        if len(fewer):
            low, high = int(fewer.min()), int(fewer.max())
            some = f"{low}" if low == high else f"{low} to {high}"
            found.append(
                f"{some} of {int(cells.n_clusters.iloc[0])} clusters are in use in {len(fewer)} of "
                f"{len(used)} starts"
            )
    reported = next((value for value in row.values if value.metric == "balance"), None)
    if reported is not None and reported.reported > 0 and "balance" in cells:
        empty = int((cells.balance == 0).sum())
        if empty:
            found.append(f"the balance is 0 in {empty} of {len(cells)} starts")
    return "; ".join(found)


def _explained(rows: list[Row], spec: TableSpec) -> list[Row]:
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
            reason = _fitting(spec, row, value.metric, row.verdict)
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
    reason = _fitting(spec, row, value.metric, "deviation")
    if reason is not None and reason.shown_by:
        return replace(value, cause=reason.shown_by, reason=reason.reason, evidence=reason.evidence or "")
    if row.program is not None:
        kind, called = row.program.kind, _called(row.program)
        if row.as_program:
            return replace(value, cause=kind, reason=f"ours agrees with a run of the {called}")
        if all(_differing(row, variant) for variant in row.readings):
            return replace(value, cause=kind, reason=f"the paper's value is not that of its {called}")
        # That the printed value is real explains only that ours is better.
        if row.verdict == "better" or set(row.direction.split(", ")) <= {"cheaper", "fairer"}:
            has = "have" if kind == "labels" else "has"
            return replace(
                value, cause=kind, reason=f"the {called} {has} the printed values, and ours are better"
            )
    if variants:
        return replace(value, cause="run", reason=f"the variant {variants[0]} has the reported values")
    if reason is not None:
        return replace(value, cause="conjecture", reason=reason.reason)
    return replace(value, cause="unknown", reason=REASON_UNKNOWN)


def _fitting(spec: TableSpec, row: Row, metric: str, kind: str) -> ReasonSpec | None:
    """The first reason of a kind that applies to a value."""
    found = (r for r in spec.reasons if r.kind == kind and r.fits(row.dataset, row.method, metric))
    return next(found, None)
