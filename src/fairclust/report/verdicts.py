"""Verdicts: whether this run reproduces the rows of a paper's table. Each row gets one verdict.

All verdicts are one data frame with a line for each value (`verdict_frame`). The tables, the scoreboard and the page
are views of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd

from fairclust.pipeline.columns import TIMES, column_of
from fairclust.pipeline.papers import MatchSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.render import joined, metric_label, read_data
from fairclust.report.rows import (
    AS_PRINTED,
    MATCHED,
    NO_VALUE,
    Row,
    Value,
    compare_cost,
    compare_value,
    explain,
    fitting,
    is_cost,
    is_fairness,
    is_near,
    is_worse,
    runs_beside,
    stand_beside_program,
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
_PASSES = {
    "reproduced": 0,
    "on the front": 0,
    "better": 0,
    "reached by a start": 1,
    "as the published program": 1,
}
"""Verdicts of rows that plain clustering must not pass as well, and their ranks."""

VERDICT_COLUMNS = [
    *("paper", "table", "dataset", "n_clusters", "lam", "method", "metric", "reported", "decimals"),
    *("program", "program_kind", "program_mean", "program_low", "program_high", "program_runs", "kind"),
    *("setting", "seeds", "mean", "sd", "low", "high", "agrees", "verdict", "direction"),
    *("cause", "reason", "evidence", "note"),
]
ROW_KEY = ["paper", "table", "dataset", "n_clusters", "lam", "method"]
"""The columns that together name one row."""
_OF_ROWS = ("row", "role", "original", "row_note", "lam_used", "starts", "starts_asked", "program_words", "program_sd",
            "counts")  # fmt: skip
_TEXT = ("paper", "table", "dataset", "method", "metric", "program", "program_kind", "kind", "setting", "agrees",
         "verdict", "direction", "cause", "reason", "evidence", "note")  # fmt: skip
_COUNTS = ("n_clusters", "decimals", "program_runs", "seeds")


def verdict_frame(paper: str, spec: TableSpec, rows: Iterable[Row]) -> pd.DataFrame:
    """One line per value, with the verdict of its row; a row without values has a line without a metric.

    Columns: `VERDICT_COLUMNS`, in which ``seeds`` is the number of starts that have a value, and `_OF_ROWS`; ``row`` is
    the number of the row, and ``counts`` says whether the line is about a reported value.
    """
    lines = []
    for number, row in enumerate(rows):
        program, choice = row.program, row.choice
        for value in row.values or [Value("")]:
            lacks = math.isnan(value.reported)
            further = lacks and value.metric in spec.beside and not value.note
            lines.append(
                {
                    **{**vars(row), **vars(value), **vars(value.ours)},
                    **{f"program_{name}": of for name, of in vars(value.program).items()},
                    "program_kind": program.kind if program and value.program.n else "",
                    **{"row": number, "paper": paper, "table": spec.number},
                    **{"setting": choice.setting, "lam_used": choice.lam},
                    **{"starts": choice.n_ok, "starts_asked": choice.n_all},
                    "decimals": None if lacks else value.decimals,
                    "program": program.program if program and value.program.n else "",
                    "program_words": f"{program.program}: {program.words}" if program else "",
                    **{"program_runs": value.program.n, "seeds": value.ours.n},
                    **{"row_note": row.note, "note": joined(*dict.fromkeys([value.note, row.note]))},
                    "counts": row.role == "paper" and not further,
                }
            )
    # The further attributes of the rows and values are no columns.
    frame = pd.DataFrame(lines, columns=[*VERDICT_COLUMNS, *_OF_ROWS])
    return frame.astype(dict.fromkeys(_COUNTS, "Int64") | {"counts": bool})


def reported_lines(frame: pd.DataFrame) -> pd.DataFrame:
    """The lines of a `verdict_frame` that are about reported values, in the columns `VERDICT_COLUMNS`."""
    return frame.loc[frame.counts & (frame.metric != ""), VERDICT_COLUMNS].reset_index(drop=True)


def load_verdicts(paths: Iterable[Path]) -> pd.DataFrame:
    """Read and join files of `reported_lines`, the scoreboard's CSV included. Missing texts are empty strings."""
    frames = [read_data(path, VERDICT_COLUMNS, _TEXT, _COUNTS) for path in paths]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=VERDICT_COLUMNS)


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
        part = _Part(spec, reported, cells[cells.dataset == dataset], programs, str(dataset), k)
        stand_ins = [
            replace(part, cells=cells[cells.dataset == name], dataset=name, original=part)
            for name in spec.stand_ins.get(str(dataset), [])
        ]
        rows += [row for one in (part, *stand_ins) for row in one.rows(group)]
    return rows


@dataclass(frozen=True)
class _Part:
    """The part of a table that is about one data set and K."""

    spec: TableSpec
    reported: pd.DataFrame  # all values of the paper
    cells: pd.DataFrame  # those of the data set
    programs: pd.DataFrame | None
    dataset: str
    n_clusters: int | None
    original: _Part | None = None  # the part of the paper that this one stands in for

    def rows(self, group: pd.DataFrame) -> list[Row]:
        """The rows of the paper, with verdicts, and those of our methods; of a stand-in, rows without verdicts."""
        rows: list[Row] = []
        if not self.original:
            for (method, lam), values in group.groupby(["method", "lam"], sort=False, dropna=False):
                rows += self._paper_rows(str(method), float(lam), values)
        rows += self._extra_rows(group)
        self._measure(rows)
        for row in rows:
            if row.role in ("paper", "variant"):
                self._judge(row)
                self._control(row)
        explain(rows, self.spec)
        return rows

    def _paper_rows(self, method: str, lam: float, values: pd.DataFrame) -> Iterator[Row]:
        """The row of a method of the paper, and those of its variants that were run."""
        names = (method, *self.spec.variants.get(method, ()))
        runs = [
            runs_beside(self.programs, self.spec.number, self.dataset, name, self.n_clusters, lam)
            for name in names
        ]
        for name, own in zip(names, runs, strict=True):
            kind, choice = self._chosen(name, lam, of=method)
            if name == method or choice.n_all:
                found = [
                    Value(str(v.metric), float(v.value), decimals_of(v.decimals), note=str(v.note))
                    for v in values.itertuples()
                ]
                role, every = "paper" if name == method else "variant", tuple(chain(*runs))
                at = (self.dataset, name, self.n_clusters, lam)
                yield Row(*at, role, kind, choice, found, runs=own, all_runs=every)

    def _extra_rows(self, group: pd.DataFrame) -> Iterator[Row]:
        """Rows that are not the paper's: our methods and stand-ins. A row without cells would be empty."""
        of_methods = group[group.method != _OF_DATA_ITSELF]
        metrics = list(dict.fromkeys(of_methods.metric))
        role = "stand-in" if self.original else "ours"
        asked = [(method, math.nan) for method in self.spec.ours if method not in set(group.method)]
        if self.original:
            pairs = of_methods[["method", "lam"]].drop_duplicates().itertuples(index=False)
            asked = [*((str(method), float(lam)) for method, lam in pairs), *asked]
        for method, lam in asked:
            part = self
            if self.original:
                # A stand-in may have been run with another K.
                ran = cells_of(self.cells, self.dataset, method).n_clusters.unique()
                k = self.n_clusters if self.n_clusters in ran or len(ran) != 1 else int(ran[0])
                part = replace(self, n_clusters=k)
            kind, choice = part._chosen(method, lam)
            if choice.n_all:
                values = [Value(str(metric)) for metric in metrics]
                original = self.original.dataset if self.original else ""
                yield Row(self.dataset, method, part.n_clusters, lam, role, kind, choice, values, original)

    def _chosen(self, method: str, lam: float, of: str = "") -> tuple[str, Choice]:
        """Kind of comparison and setting of a row.

        A stand-in has other data, so the lambda printed for the original data set is used only if the table has no
        rule for matching the fairness. A variant has the settings and the level of the method `of`.
        """
        spec, named = self.spec, of or method
        printed = named in spec.settings or not math.isnan(lam)
        kind = AS_PRINTED if printed or spec.match is None else MATCHED
        if method == _OF_DATA_ITSELF:
            ok = self.cells.n_rows.notna().any()
            why_not = f"the data set is {NOT_RUN}" if self.cells.empty else "no fit ended well"
            return AS_PRINTED, Choice(self.cells[:0], "" if ok else why_not)
        at = cells_of(self.cells, self.dataset, method, self.n_clusters)
        if at.empty:
            why_not = f"the {'data set' if self.cells.empty else 'method'} is {NOT_RUN}"
            ran = (self.cells.method == method).any()
            return kind, Choice(at, f"not run with K = {self.n_clusters}" if ran else why_not)
        if self.n_clusters is None and at.n_clusters.nunique() > 1:
            return kind, Choice(at[:0], "the paper does not state K")
        if printed and not (self.original and spec.match and not math.isnan(lam)):
            return AS_PRINTED, choose_printed(at, lam, spec.settings.get(named, {}))
        if spec.match is not None:
            choice = (self.original or self)._at_reported_level(spec.match, at, named, lam)
            if choice is not None:
                return MATCHED, choice
        choice = choose(at)
        if at.params.nunique() > 1:
            note = "the paper publishes no setting, so the one with the lowest mean objective is shown"
            choice = replace(choice, note=joined(choice.note, note))
        return AS_PRINTED, choice

    def _at_reported_level(
        self, match: MatchSpec, cells: pd.DataFrame, method: str, lam: float
    ) -> Choice | None:
        """The front of the cells at the fairness that the paper reports for a method; None if it reports none.

        If the cost at the reported value itself is more than reported, the tolerance of the level counts. It may not
        make us better than reported, only as good.
        """
        number, k = self.spec.number, self.n_clusters
        row = (self.dataset, method, self.spec.own, k, lam)
        if (level := reported_level(match, number, self.reported, *row)) is None:
            return None
        at = self.reported[(self.reported.table == number) & (self.reported.dataset == self.dataset)]
        at = at[(at.method == method) & (at.metric == match.order)]
        at = at if k is None else at[(at.n_clusters == k).fillna(False)]
        cost = float(at.value.iloc[0]) if len(at) else math.nan
        choice = at_level(cells, level[0], match, cost)
        found = choice.spread(match.order).mean
        higher = column_of(match.order).direction == "higher"
        if choice.reached and (found >= cost if higher else found <= cost):
            return choice
        return replace(at_level(cells, level[1], match, cost), loosened=True)

    def _measure(self, rows: Iterable[Row]) -> None:
        """Give our values to the rows, also those of the further metrics that the table shows (`spec.beside`)."""
        rows = list(rows)
        own = next((row for row in rows if row.method == self.spec.own), None)
        unit = own.choice.spread("seconds").mean if own else math.nan
        for row in rows:
            shown = {value.metric for value in row.values}
            row.say(row.choice.note)
            if row.method == _OF_DATA_ITSELF:
                for value in row.values:
                    column = OF_DATA.get(value.metric, value.metric)
                    value.ours = spread(self.cells.get(column, pd.Series(dtype=float)).dropna()[:1])
                continue
            row.values += [Value(metric) for metric in self.spec.beside if metric not in shown]
            seconds = row.choice.spread("seconds")
            for value in row.values:
                value.ours = row.choice.spread(value.metric)
                if value.metric == "seconds_std":
                    value.ours = Spread(seconds.sd, n=0 if math.isnan(seconds.sd) else seconds.n)
                elif value.metric == "relative_seconds":
                    # In units of the mean of the paper's own method.
                    known = "seconds" in row.choice.cells and unit > 0
                    value.ours = spread(row.choice.cells.seconds / unit) if known else NO_VALUE

    def _judge(self, row: Row) -> None:
        """Compare the values of a row with those that the paper reports, and give it a verdict."""
        spec, has_cost = self.spec, any(is_cost(value) for value in row.values)
        unjudged = {value.metric: _why_not_judged(value, row, spec, has_cost) for value in row.values}
        for value in row.values:
            if value.ours.n and not math.isnan(value.reported) and not unjudged[value.metric]:
                compare = compare_cost if row.kind == MATCHED else compare_value
                value.agrees = compare(value.metric, value.reported, value.decimals, value.ours)
            value.note = joined(value.note, unjudged[value.metric])
        row.say(_collapse(row))
        published = [v for v in row.reported if not fitting(spec, row, v.metric, "unpublished")]
        if any(fitting(spec, row, value.metric, "impossible") for value in row.values):
            row.verdict = "impossible"
        elif not published:
            row.verdict = "unpublished"
        elif not any(value.ours.n for value in published):
            row.verdict = "not run"
            row.note = row.note or "the scorer has no value for these metrics"
        else:
            lacking = [v.metric for v in published if not v.ours.n and not unjudged[v.metric]]
            if lacking:
                row.say(f"no value for {', '.join(map(metric_label, lacking))}")
            matched = row.kind == MATCHED
            row.verdict = _matched_verdict(row) if matched else _printed_verdict(row, bool(lacking))
            stand_beside_program(row, spec, self.cells)
            row.direction = _direction(row) if row.verdict == "another optimum" else ""

    def _control(self, row: Row) -> None:
        """Take the verdict away if plain clustering, which knows nothing of groups, passes the row as well."""
        control = self.spec.control
        if not control or row.method in (control, _OF_DATA_ITSELF) or row.verdict not in _PASSES:
            return
        if row.kind == MATCHED:
            _, choice = self._chosen(control, row.lam, of=row.method)
        else:
            choice = choose(cells_of(self.cells, self.dataset, control, self.n_clusters))
        values = [Value(value.metric, value.reported, value.decimals) for value in row.values]
        plain = Row(self.dataset, control, self.n_clusters, row.lam, row.role, row.kind, choice, values)
        self._measure([plain])
        self._judge(plain)
        if plain.verdict in _PASSES and _PASSES[plain.verdict] <= _PASSES[row.verdict]:
            row.verdict = "not judged"
            row.say(f"{control} has these values too, so the row says nothing about this method")


def decimals_of(value: object) -> int:
    """Printed decimals as an integer; 0 if there are none."""
    return 0 if pd.isna(value) else int(value)  # type: ignore[call-overload]


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
    if lacking:
        return "not reproduced"
    found = {value.agrees for value in row.judged}
    if found <= {"yes", "start"}:
        return "not judged" if not found else "reproduced" if found == {"yes"} else "reached by a start"
    off = [value for value in row.judged if value.agrees not in ("yes", "start")]
    near = [is_near(value.metric, value.reported, value.decimals, value.ours.mean) for value in off]
    return "another optimum" if all(near) and "no" not in found else "not reproduced"


def _matched_verdict(row: Row) -> str:
    """The verdict of a row at matched fairness, beside the paper alone."""
    judged = row.judged
    if not row.choice.reached:
        # A setting that has the reported fairness and cost within two standard deviations is on the front, although
        # its mean fairness misses the level.
        shown = [v for v in row.reported if v.agrees or is_fairness(v.metric)]
        found = {compare_value(v.metric, v.reported, v.decimals, v.ours) for v in shown if v.ours.n}
        return "on the front" if found == {"yes"} and judged else "less fair"
    if not judged:
        return "not judged"
    worse = [is_worse(value) for value in judged if value.agrees != "yes"]
    return "worse" if any(worse) else "better" if worse and not row.choice.loosened else "on the front"


def _direction(row: Row) -> str:
    """How the values that differ do so."""
    words = []
    for value in (value for value in row.values if value.agrees in ("lower", "higher")):
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
    used = cells.n_nonempty.dropna()
    fewer = used[used < cells.n_clusters[used.index]]
    if len(fewer):
        low, high = int(fewer.min()), int(fewer.max())
        some = f"{low}" if low == high else f"{low} to {high}"
        k = int(cells.n_clusters.iloc[0])
        found.append(f"{some} of {k} clusters are in use in {len(fewer)} of {len(used)} starts")
    empty = int((cells.balance == 0).sum())
    if empty and any(value.metric == "balance" and value.reported > 0 for value in row.values):
        found.append(f"the balance is 0 in {empty} of {len(cells)} starts")
    return "; ".join(found)
