"""Verdicts: whether this run reproduces the rows of a paper's table. Each row gets one verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pandas as pd

from fairclust.pipeline.columns import COLUMNS, TIMES
from fairclust.pipeline.papers import MatchSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.agreement import compare_cost, compare_value, is_fairness, is_near
from fairclust.report.causes import explained
from fairclust.report.names import metric_label
from fairclust.report.program_runs import beside_program, runs_beside
from fairclust.report.rows import (
    AS_PRINTED,
    MATCHED,
    NO_VALUE,
    ProgramRuns,
    Row,
    Value,
    fitting,
    is_cost,
    is_worse,
)
from fairclust.report.selection import (
    NOT_RUN,
    Choice,
    Spread,
    at_level,
    cells_of,
    choose,
    choose_printed,
    reported_level,
    spread,
)

_OF_DATA_ITSELF = "data"

VERDICT_COLUMNS = [
    *("paper", "table", "dataset", "n_clusters", "lam", "method", "metric", "reported", "decimals"),
    *("program", "program_kind", "program_mean", "program_low", "program_high", "program_runs", "kind"),
    *("setting", "seeds", "mean", "sd", "low", "high", "agrees", "verdict", "direction"),
    *("cause", "reason", "evidence", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""


def table_rows(
    spec: TableSpec, reported: pd.DataFrame, cells: pd.DataFrame, programs: pd.DataFrame | None = None
) -> list[Row]:
    """All rows of a table: the rows of the paper with verdicts, and those of our methods and stand-ins without.

    They are in the paper's order of data sets. The variants of a row follow it. The rows of our methods and of
    stand-ins follow those of each data set.
    """
    of_table = reported[reported.table == spec.number]
    rows: list[Row] = []
    for (dataset, n_clusters), group in of_table.groupby(["dataset", "n_clusters"], sort=False, dropna=False):
        k = None if pd.isna(n_clusters) else int(n_clusters)
        metrics = list(dict.fromkeys(group.metric[group.method != _OF_DATA_ITSELF]))
        drafts, here = [], cells[cells.dataset == dataset]
        for (method, lam), values in group.groupby(["method", "lam"], sort=False, dropna=False):
            if method == _OF_DATA_ITSELF:
                beside = runs_beside(programs, spec.number, str(dataset), _OF_DATA_ITSELF, k, math.nan)
                drafts.append(_data_row(spec, str(dataset), k, values, here, beside))
                continue
            found = tuple(
                Value(str(v.metric), float(v.value), _decimals(v.decimals), note=str(v.note))
                for v in values.itertuples()
            )
            names = (str(method), *spec.variants.get(str(method), ()))
            of_names = [
                runs_beside(programs, spec.number, str(dataset), name, k, float(lam)) for name in names
            ]
            for name, own in zip(names, of_names, strict=True):
                kind, choice = _chosen(
                    spec, reported, here, str(dataset), name, k, float(lam), of=str(method)
                )
                role = "paper" if name == method else "variant"
                if role == "paper" or choice.n_all:
                    row = Row(str(dataset), name, k, float(lam), role, kind, choice, found)
                    drafts.append(replace(row, runs=own, all_runs=tuple(chain(*of_names))))
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
        rows += explained(judged, spec)
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
    """One line per reported value, with the verdict of its row, in the columns `VERDICT_COLUMNS`.

    Rows that are not the paper's are left out. ``seeds`` is the number of starts that have a value.
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
                    "program": row.program.program if row.program and value.program_kind else "",
                    "program_kind": value.program_kind,
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


_TEXT = ("paper", "table", "dataset", "method", "metric", "program", "program_kind", "kind", "setting", "agrees",
         "verdict", "direction", "cause", "reason", "evidence", "note")  # fmt: skip
_COUNTS = ("n_clusters", "decimals", "program_runs", "seeds")


def load_verdicts(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join files of verdicts, those of `verdict_frame` or the scoreboard's CSV.

    Missing texts are read as empty strings.
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
        choice = _at_reported_level(spec, spec.match, reported, at, whose, named, k, lam)
        if choice is not None:
            return MATCHED, choice
    choice = choose(at)
    if at.params.nunique() > 1:
        note = "the paper publishes no setting, so the one with the lowest mean objective is shown"
        choice = replace(choice, note="; ".join(filter(None, [choice.note, note])))
    return AS_PRINTED, choice


def _at_reported_level(
    spec: TableSpec,
    match: MatchSpec,
    reported: pd.DataFrame,
    cells: pd.DataFrame,
    dataset: str,
    method: str,
    n_clusters: int | None,
    lam: float,
) -> Choice | None:
    """The front of the cells at the fairness that the paper reports for a method; None if it reports none.

    If the cost at the reported value itself is more than reported, the tolerance of the level counts. It may not make
    us better than reported, only as good.
    """
    level = reported_level(
        match, spec.number, reported, dataset, method, own=spec.own, n_clusters=n_clusters, lam=lam
    )
    if level is None:
        return None
    cost = _reported_cost(match, spec.number, reported, dataset, method, n_clusters)
    choice = at_level(cells, level.value, match, cost)
    found = choice.spread(match.order).mean
    higher = match.order in COLUMNS and COLUMNS[match.order].direction == "higher"
    if choice.reached and (found >= cost if higher else found <= cost):
        return choice
    return replace(at_level(cells, level.allowed, match, cost), loosened=True)


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
    runs: tuple[ProgramRuns, ...],
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
    return beside_program(replace(row, verdict=verdict, note=note, runs=runs, all_runs=runs), spec, at)


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
    has_cost = any(is_cost(value) for value in row.values)
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
        if not math.isnan(value.reported) and not fitting(spec, row, value.metric, "unpublished")
    ]
    if any(fitting(spec, row, value.metric, "impossible") for value in row.values):
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
    row = beside_program(replace(row, verdict=verdict), spec, cells)
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
    plain = replace(row, method=spec.control, runs=(), all_runs=(), choice=choice)
    verdict = _judged(_measured([plain], spec)[0], spec, cells).verdict
    if verdict not in ranks or ranks[verdict] > ranks[row.verdict]:
        return row
    words = f"{spec.control} has these values too, so the row says nothing about this method"
    return replace(row, verdict="not judged", note="; ".join(filter(None, [row.note, words])))


def _why_not_judged(value: Value, row: Row, spec: TableSpec, has_cost: bool) -> str:
    """Why a reported value does not count for the verdict of its row; empty if it does."""
    if math.isnan(value.reported):
        return ""
    if fitting(spec, row, value.metric, "unpublished"):
        return "the paper publishes too little to judge this value"
    if value.metric in TIMES:
        return "time of another machine, not judged"
    if row.kind != MATCHED or spec.match is None:
        return ""
    if value.metric == spec.match.fairness:
        return "this value chose the setting, so it is not judged"
    if is_fairness(value.metric) or (has_cost and not is_cost(value)):
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
    worse = [is_worse(value) for value in judged if value.agrees != "yes"]
    return "worse" if any(worse) else "better" if worse and not row.choice.loosened else "on the front"


def _direction(row: Row) -> str:
    """How the values that differ do so."""
    words = []
    for value in row.values:
        if value.agrees not in ("lower", "higher"):
            continue
        worse = is_worse(value)
        if is_cost(value):
            words.append("dearer" if worse else "cheaper")
        elif is_fairness(value.metric):
            words.append("less fair" if worse else "fairer")
        else:
            words.append(f"{value.agrees} {metric_label(value.metric)}")
    return ", ".join(dict.fromkeys(words))


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
