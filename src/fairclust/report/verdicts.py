"""Verdicts: whether this run reproduces the rows of a paper's table.

Each row gets one verdict. A row is a method on a data set with a K (and a printed lambda). There are two kinds of
comparison. *As printed*: the paper publishes the setting, and the mean of every value over the starts must agree.
*Matched fairness*: the paper does not publish the setting, so the setting is chosen by one fairness metric. This metric
is then not judged, and the other values decide whether our clustering dominates the reported one or is dominated by it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from fairclust.pipeline.columns import COLUMNS, TIMES
from fairclust.pipeline.papers import ReasonSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.names import metric_label
from fairclust.report.selection import (
    HAIR,
    NOT_RUN,
    Choice,
    Spread,
    cells_of,
    choose,
    choose_printed,
    half_unit,
    reported_level,
    spread,
)

SHARE = 0.02
"""Largest difference at which two values can agree, as a share of the reported one, unless they print alike."""

AS_PRINTED, MATCHED = "as printed", "matched fairness"
KINDS = (AS_PRINTED, MATCHED)

VERDICTS = {
    "reproduced": "every value agrees: the mean over the starts is within max(half a unit of the last "
    f"printed digit, min(2 standard deviations, {100 * SHARE:g} %)) of the reported value",
    "better": "at least one value is better than reported, and none is worse",
    "mixed": "some values are better than reported and others are worse, or this run lacks one of the values",
    "worse": "at least one value is worse than reported, and none is better",
    "not reproduced": "a count of the data set differs from the reported one",
    "dominates": f"ours is as fair as reported; another value is better by more than {100 * SHARE:g} %, and none is "
    "worse",
    "on the front": f"ours is as fair as reported, and all other values are within {100 * SHARE:g} %",
    "dominated": f"ours is as fair as reported; another value is worse by more than {100 * SHARE:g} %, and none is "
    "better",
    "less fair": "no setting of the grid is as fair as reported",
    "collapsed": "clusters are empty, or the balance is 0 and the paper's is not",
    "impossible": "a reported value cannot be the quantity that its column names",
    "not judged": "all reported values are times of another machine, or were used to choose the setting",
    "not run": "this run has no value; the reason says why",
    "unpublished": "the paper prints no value, or too little to run the row",
}
"""Verdict to its meaning, in the order of the summaries."""

REASON_UNKNOWN = "reason not known"
_NEED_A_REASON = frozenset(
    ("better", "mixed", "worse", "not reproduced", "dominates", "dominated", "less fair", "collapsed")
)
_OF_DATA_ITSELF = "data"

VERDICT_COLUMNS = [
    *("paper", "table", "dataset", "n_clusters", "lam", "method", "metric", "reported", "decimals", "kind"),
    *("setting", "seeds", "mean", "sd", "best", "agrees", "verdict", "reason", "evidence", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""


NO_VALUE = Spread()


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
    agrees : {'yes', 'better', 'worse', 'no', ''}
        'no' is a value that differs in a metric without a better direction; empty if the value is not judged.
    reason, evidence, note : str
    """

    metric: str
    reported: float = math.nan
    decimals: int = 0
    ours: Spread = NO_VALUE
    agrees: str = ""
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
    role : {'paper', 'ours', 'stand-in'}
        Only rows of the paper have reported values and a verdict.
    original : str
        The paper's data set that a stand-in replaces.
    kind : {'as printed', 'matched fairness', ''}
    choice : Choice
    values : tuple of Value
        In the order of the paper. Only rows of the paper have reported values.
    verdict, note : str
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
    verdict: str = ""
    note: str = ""

    @property
    def reasons(self) -> list[str]:
        """The reasons of the values without duplicates, each with its evidence."""
        found = []
        for value in self.values:
            evidence = f" (evidence: {value.evidence})" if value.evidence else ""
            found.append(value.reason + evidence)
        return [text for text in dict.fromkeys(found) if text]


def table_rows(spec: TableSpec, reported: pd.DataFrame, cells: pd.DataFrame) -> list[Row]:
    """All rows of a table: the rows of the paper with verdicts, and those of our methods and stand-ins without.

    Parameters
    ----------
    spec : TableSpec
    reported : DataFrame
        All reported values of the paper, from `pipeline.reported.load_reported`.
    cells : DataFrame
        From `pipeline.scores.load_cells`.

    Returns
    -------
    list of Row
        In the paper's order of data sets. The rows of our methods and of stand-ins follow those of each data set.
    """
    of_table = reported[reported.table == spec.number]
    rows: list[Row] = []
    for (dataset, n_clusters), group in of_table.groupby(["dataset", "n_clusters"], sort=False, dropna=False):
        k = None if pd.isna(n_clusters) else int(n_clusters)
        metrics = list(dict.fromkeys(group.metric[group.method != _OF_DATA_ITSELF]))
        drafts, here = [], cells[cells.dataset == dataset]
        for (method, lam), values in group.groupby(["method", "lam"], sort=False, dropna=False):
            if method == _OF_DATA_ITSELF:
                drafts.append(_data_row(spec, str(dataset), k, values, here))
                continue
            kind, choice = _chosen(spec, reported, here, str(dataset), str(method), k, float(lam))
            found = tuple(
                Value(str(v.metric), float(v.value), _decimals(v.decimals), note=str(v.note))
                for v in values.itertuples()
            )
            drafts.append(Row(str(dataset), str(method), k, float(lam), "paper", kind, choice, found))
        methods = list(dict.fromkeys(group.method[group.method != _OF_DATA_ITSELF]))
        ours = [
            _extra_row(spec, reported, here, str(dataset), method, k, math.nan, metrics, "")
            for method in spec.ours
            if method not in methods
        ]
        # Without cells in this run, the row of a method of ours would be empty.
        drafts += [row for row in ours if row.choice.n_all]
        rows += [_judged(row, spec) for row in _measured(drafts, spec)]
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
                    "kind": row.kind,
                    "setting": row.choice.setting,
                    "seeds": value.ours.n,
                    "mean": value.ours.mean,
                    "sd": value.ours.sd,
                    "best": value.ours.best,
                    "agrees": value.agrees,
                    "verdict": row.verdict,
                    "reason": value.reason,
                    "evidence": value.evidence,
                    "note": "; ".join(dict.fromkeys(filter(None, [value.note, row.note]))),
                }
            )
    frame = pd.DataFrame(lines, columns=VERDICT_COLUMNS)
    return frame.astype({"n_clusters": "Int64", "decimals": "Int64", "seeds": "Int64"})


_TEXT = ("paper", "table", "dataset", "method", "metric", "kind", "setting", "agrees", "verdict", "reason",
         "evidence", "note")  # fmt: skip
_COUNTS = ("n_clusters", "decimals", "seeds")


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


def tolerance(reported: float, decimals: int, sd: float | None) -> float:
    """The largest difference between a mean and a reported value that still agree.

    Parameters
    ----------
    reported : float
    decimals : int
        Printed decimals of `reported`.
    sd : float or None
        Standard deviation over the starts, NaN for a single start; None at matched fairness, where it is not used.

    Returns
    -------
    float
        max(half a unit of the last printed digit, min(2 sd, 2 % of the value)). If sd is None, the larger of half a
        unit and 2 %.
    """
    share = SHARE * abs(reported)
    if sd is not None:
        share = min(0.0 if math.isnan(sd) else 2 * sd, share)
    return max(half_unit(decimals), share) * HAIR


def compare_value(metric: str, reported: float, decimals: int, mean: float, sd: float | None) -> str:
    """Whether a mean agrees with a reported value.

    Parameters
    ----------
    metric : str
        A name in `pipeline.columns.COLUMNS` or `pipeline.reported.OF_DATA`.
    reported, decimals, sd
        As for `tolerance`.
    mean : float

    Returns
    -------
    {'yes', 'better', 'worse', 'no'}
        'no' is a value that differs in a metric without a better direction.
    """
    if metric in OF_DATA:
        return "yes" if mean == reported else "no"
    if abs(mean - reported) <= tolerance(reported, decimals, sd):
        return "yes"
    direction = COLUMNS[metric].direction
    if direction == "none":
        return "no"
    return "better" if (mean < reported) == (direction == "lower") else "worse"


def row_verdict(kind: str, agrees: Iterable[str], *, missing: bool, reached: bool) -> str:
    """The verdict of a row, from the comparisons of its judged values.

    Parameters
    ----------
    kind : {'as printed', 'matched fairness'}
    agrees : iterable of str
        From `compare_value`.
    missing : bool
        Whether this run has no value for a reported value that should be judged.
    reached : bool
        Whether the setting is as fair as reported.

    Returns
    -------
    str
        A key of `VERDICTS`.
    """
    found = set(agrees)
    if not reached:
        return "less fair"
    if not found and not missing:
        return "not judged"
    better, worse = "better" in found, bool(found & {"worse", "no"})
    if (better and worse) or (missing and not worse):
        return "mixed"
    if kind == MATCHED:
        return "dominates" if better else "dominated" if worse else "on the front"
    return "better" if better else "worse" if worse else "reproduced"


def _chosen(
    spec: TableSpec,
    reported: pd.DataFrame,
    cells: pd.DataFrame,
    dataset: str,
    method: str,
    n_clusters: int | None,
    lam: float,
    original: tuple[str, int | None] | None = None,
) -> tuple[str, Choice]:
    """Kind of comparison and setting of a row; `original` is the data set that a stand-in replaces, with its K.

    A stand-in has other data, so the lambda printed for the original data set is used only if the table has no rule for
    matching the fairness.
    """
    at = cells_of(cells, dataset, method, n_clusters)
    if at.empty:
        return _kind(spec, method, lam), Choice(at, _why_not(cells, dataset, method, n_clusters))
    if n_clusters is None and at.n_clusters.nunique() > 1:
        return _kind(spec, method, lam), Choice(at[:0], "the paper does not state K")
    printed = method in spec.settings or not math.isnan(lam)
    if printed and not (original and spec.match and not math.isnan(lam)):
        return AS_PRINTED, choose_printed(at, lam, spec.settings.get(method, {}))
    level = None
    if spec.match is not None:
        level = reported_level(
            spec.match,
            spec.number,
            reported,
            original[0] if original else dataset,
            method,
            own=spec.own,
            n_clusters=original[1] if original else n_clusters,
            lam=lam,
        )
    if level is not None:
        return MATCHED, choose(at, level, spec.match)
    choice = choose(at)
    if at.params.nunique() > 1:
        note = "the paper publishes no setting, so the one with the lowest mean objective is shown"
        choice = replace(choice, note="; ".join(filter(None, [choice.note, note])))
    return AS_PRINTED, choice


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
    spec: TableSpec, dataset: str, n_clusters: int | None, values: pd.DataFrame, cells: pd.DataFrame
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
            ours = Spread(float(counts.iloc[0]), math.nan, math.nan, 1)
            agrees = compare_value(str(value.metric), float(value.value), 0, ours.mean, None)
            verdicts.add("reproduced" if agrees == "yes" else "not reproduced")
        decimals = _decimals(value.decimals)
        found.append(
            Value(str(value.metric), float(value.value), decimals, ours, agrees, note=str(value.note))
        )
    order = ("not reproduced", "not run", "reproduced")
    verdict = next((name for name in order if name in verdicts), "unpublished")
    note = "" if verdict != "not run" else f"the data set is {NOT_RUN}" if at.empty else "no fit ended well"
    row = Row(
        dataset, _OF_DATA_ITSELF, n_clusters, math.nan, "paper", AS_PRINTED, Choice(at[:0]), tuple(found)
    )
    return _with_reasons(replace(row, verdict=verdict, note=note), spec)


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
        return Spread(of_seconds.sd, math.nan, math.nan, 0 if math.isnan(of_seconds.sd) else of_seconds.n)
    if metric == "relative_seconds":
        if "seconds" not in choice.cells or math.isnan(unit) or unit <= 0:
            return NO_VALUE
        return spread(choice.cells.seconds / unit, "lower")
    return choice.spread(metric)


def _judged(row: Row, spec: TableSpec) -> Row:
    """A row of the paper with its verdict and reasons."""
    if row.role != "paper" or row.method == _OF_DATA_ITSELF:
        return row
    impossible = [value for value in row.values if _fitting(spec, row, value.metric, "impossible")]
    judged = {value.metric for value in row.values if _is_judged(value, row, spec)}
    values = []
    for value in row.values:
        note = "; ".join(filter(None, [value.note, _why_not_judged(value, row, spec)]))
        agrees = ""
        if value.metric in judged and value.ours.n:
            sd = None if row.kind == MATCHED else value.ours.sd
            agrees = compare_value(value.metric, value.reported, value.decimals, value.ours.mean, sd)
        values.append(replace(value, agrees=agrees, note=note))
    row = replace(row, values=tuple(values))
    collapse = _collapse(row)
    published = [
        value
        for value in row.values
        if not math.isnan(value.reported) and not _fitting(spec, row, value.metric, "unpublished")
    ]
    has_value = any(value.ours.n for value in published)
    if impossible:
        verdict = "impossible"
    elif not published:
        verdict = "unpublished"
    elif not has_value:
        verdict = "not run"
        row = replace(row, note=row.note or "the scorer has no value for these metrics")
    elif collapse:
        verdict = "collapsed"
        row = replace(row, note="; ".join(filter(None, [row.note, collapse])))
    else:
        lacking = [v.metric for v in row.values if v.metric in judged and not v.ours.n]
        verdict = row_verdict(
            row.kind,
            (v.agrees for v in row.values if v.agrees),
            missing=bool(lacking),
            reached=row.choice.reached,
        )
        if lacking:
            words = f"no value for {', '.join(map(metric_label, lacking))}"
            row = replace(row, note="; ".join(filter(None, [row.note, words])))
    return _with_reasons(replace(row, verdict=verdict), spec)


def _is_judged(value: Value, row: Row, spec: TableSpec) -> bool:
    return not math.isnan(value.reported) and not _why_not_judged(value, row, spec)


def _why_not_judged(value: Value, row: Row, spec: TableSpec) -> str:
    """Why a reported value does not count for the verdict of its row; empty if it does."""
    if math.isnan(value.reported):
        return ""
    if _fitting(spec, row, value.metric, "unpublished"):
        return "the paper publishes too little to judge this value"
    if value.metric in TIMES and value.metric != "relative_seconds":
        return "time of another machine, not judged"
    if value.metric == "relative_seconds" and row.method == spec.own:
        return "this is the unit of relative times, so it is not judged"
    if row.kind == MATCHED and spec.match is not None and value.metric == spec.match.fairness:
        return "this value chose the setting, so it is not judged"
    return ""


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


def _with_reasons(row: Row, spec: TableSpec) -> Row:
    """The row with a reason at each value that needs one."""
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
    if row.verdict not in _NEED_A_REASON:
        return row
    asked = [v.metric for v in row.values if v.agrees in ("better", "worse", "no")]
    asked = asked or [v.metric for v in row.values if not math.isnan(v.reported)]
    if row.verdict == "less fair" and spec.match is not None:
        asked.append(spec.match.fairness)
    values = []
    for value in row.values:
        if value.metric not in asked or math.isnan(value.reported):
            values.append(value)
            continue
        reason = _fitting(spec, row, value.metric, "deviation")
        if reason is None:
            values.append(replace(value, reason=REASON_UNKNOWN))
        else:
            words = reason.reason if reason.evidence else f"conjecture: {reason.reason}"
            values.append(replace(value, reason=words, evidence=reason.evidence or ""))
    return replace(row, values=tuple(values))


def _fitting(spec: TableSpec, row: Row, metric: str, kind: str) -> ReasonSpec | None:
    """The first reason of a kind that applies to a value."""
    found = (r for r in spec.reasons if r.kind == kind and r.fits(row.dataset, row.method, metric))
    return next(found, None)
