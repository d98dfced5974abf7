"""The rows of a paper's table, with the setting that represents each row, and its values; see `TableSpec`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from fairclust.messages import NOT_UNIQUE
from fairclust.pipeline.columns import column_of
from fairclust.pipeline.papers import MatchSpec, TableSpec
from fairclust.pipeline.reported import OF_DATA
from fairclust.report.render import joined
from fairclust.report.selection import (
    NOT_RUN,
    Choice,
    Spread,
    at_level,
    cells_of,
    choose,
    choose_printed,
    of_k,
    reported_level,
    spread,
    where,
)

AS_PRINTED, MATCHED = "as printed", "matched fairness"
OF_DATA_ITSELF = "data"
"""The method of rows whose values are properties of the data set."""
NO_VALUE = Spread()


def chose_setting(kind: Any, metric: Any, level_metric: str) -> Any:
    """Whether a value is the fairness at which the setting of its row was chosen; of single rows, or of columns."""
    return (kind == MATCHED) & (metric == level_metric)


class ProgramRuns(NamedTuple):
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
    """A method on a data set with a K. `Part.measure` fills in our values, and `verdicts.table_rows` the verdict."""

    dataset: str
    method: str
    n_clusters: int | None
    lam: float  # the printed lambda; NaN if there is none
    # 'paper', 'variant' (not counted) or 'ours'. Rows of the first two have reported values and a verdict.
    role: str
    kind: str  # 'as printed', 'matched fairness' or empty
    choice: Choice
    values: list[Value]  # in the order of the paper
    # The published program, run with the start and the iterate of this row.
    runs: tuple[ProgramRuns, ...] = ()
    # The same with every start and iterate. They decide whether the program has the printed values.
    all_runs: tuple[ProgramRuns, ...] = ()
    # The runs that are shown. Of those that agree with ours, or else with the paper, or else of all, they are the
    # nearest to the paper.
    program: ProgramRuns | None = None
    as_program: bool = False  # whether ours agrees with some of `runs`
    verdict: str = ""  # a key of `VERDICTS`
    finding: str = ""  # the verdict in a sentence
    direction: str = ""  # how the row differs
    note: str = ""

    @property
    def reported(self) -> list[Value]:
        """The values that the paper prints."""
        return [value for value in self.values if not math.isnan(value.reported)]

    @property
    def judged(self) -> list[Value]:
        """The values that decide about the verdict."""
        return [value for value in self.values if value.agrees]


class Part(NamedTuple):
    """The part of a table that is about one data set and K."""

    spec: TableSpec
    reported: pd.DataFrame  # all values of the paper
    values: pd.DataFrame  # those of this part of the table
    cells: pd.DataFrame  # those of the data set
    programs: pd.DataFrame | None  # from `pipeline.reported.load_programs`
    dataset: str
    n_clusters: int | None

    def rows(self) -> list[Row]:
        """The rows of the paper with their variants, and those of our methods."""
        rows: list[Row] = []
        for (method, lam), values in self.values.groupby(["method", "lam"], sort=False, dropna=False):
            rows += self._paper_rows(str(method), float(lam), values)
        rows += self._our_rows()
        self.measure(rows)
        return rows

    def _paper_rows(self, method: str, lam: float, values: pd.DataFrame) -> Iterator[Row]:
        """The row of a method of the paper, and those of its variants that were run."""
        names = (method, *self.spec.variants.get(method, ()))
        runs = [self._program_runs(name, lam) for name in names]
        for name, program_runs in zip(names, runs, strict=True):
            kind, choice = self.chosen(name, lam, of=method)
            if name == method or choice.n_all:
                printed = [
                    Value(str(v.metric), float(v.value), int(v.decimals), note=str(v.note))
                    for v in values.fillna({"decimals": 0}).itertuples()
                ]
                role, every = "paper" if name == method else "variant", tuple(chain(*runs))
                place = (self.dataset, name, self.n_clusters, lam)
                yield Row(*place, role, kind, choice, printed, runs=program_runs, all_runs=every)

    def _program_runs(self, method: str, lam: float) -> tuple[ProgramRuns, ...]:
        """The runs of published programs beside the row of a method."""
        if self.programs is None or self.programs.empty:
            return ()
        place = {"table": self.spec.number, "dataset": self.dataset, "n_clusters": self.n_clusters}
        printed = where(self.programs, **place, method=method, lam=lam)
        runs = []
        for (program, words), lines in printed.groupby(["program", "variant"], sort=False):
            values = {
                str(v.metric): Spread(float(v.mean), float(v.sd), float(v.low), float(v.high), int(v.runs))
                for v in lines.itertuples()
            }
            first = lines.iloc[0]
            setting = joined(str(words), str(first.setting))
            runs.append(ProgramRuns(str(program), str(first.kind), setting, values))
        return tuple(runs)

    def _our_rows(self) -> Iterator[Row]:
        """Rows of our methods. A row without cells would be empty."""
        metrics = list(dict.fromkeys(self.values.metric[self.values.method != OF_DATA_ITSELF]))
        for method in self.spec.ours:
            kind, choice = self.chosen(method, math.nan)
            if choice.n_all and method not in set(self.values.method):
                values = [Value(str(metric)) for metric in metrics]
                yield Row(self.dataset, method, self.n_clusters, math.nan, "ours", kind, choice, values)

    def chosen(self, method: str, lam: float, of: str = "") -> tuple[str, Choice]:
        """Kind of comparison and setting of a row.

        A variant has the settings and the level of the method `of`.
        """
        spec, named = self.spec, of or method
        printed = named in spec.settings or not math.isnan(lam)
        kind = AS_PRINTED if printed or spec.match is None else MATCHED
        if method == OF_DATA_ITSELF:
            ok = self.cells.n_rows.notna().any()
            why_not = f"the data set is {NOT_RUN}" if self.cells.empty else "no fit ended well"
            return AS_PRINTED, Choice(self.cells[:0], "" if ok else why_not)
        cells = cells_of(self.cells, self.dataset, method, self.n_clusters)
        if cells.empty:
            why_not = f"the {'data set' if self.cells.empty else 'method'} is {NOT_RUN}"
            ran = (self.cells.method == method).any()
            return kind, Choice(cells, f"not run with K = {self.n_clusters}" if ran else why_not)
        if self.n_clusters is None and cells.n_clusters.nunique() > 1:
            return kind, Choice(cells[:0], "the paper does not state K")
        if printed:
            return AS_PRINTED, choose_printed(cells, lam, spec.settings.get(named, {}))
        if spec.match and (matched := self._at_reported_level(spec.match, cells, named, lam)):
            return MATCHED, matched
        choice = choose(cells)
        if cells.params.nunique() > 1:
            note = "the paper publishes no setting, so the one with the lowest mean objective is shown"
            choice = choice._replace(note=joined(choice.note, note))
        return AS_PRINTED, choice

    def _at_reported_level(
        self, match: MatchSpec, cells: pd.DataFrame, method: str, lam: float
    ) -> Choice | None:
        """The front of the cells at the fairness that the paper reports for a method; None if it reports none.

        If no setting reaches the reported value itself, or the cost there is more than reported, the tolerance of the
        level counts. It may not make us better than reported, only as good.
        """
        number, k = self.spec.number, self.n_clusters
        row = (self.dataset, method, self.spec.own, k, lam)
        if (level := reported_level(match, number, self.reported, *row)) is None:
            return None
        place = {"table": number, "dataset": self.dataset, **of_k(k)}
        costs = where(self.reported, **place, method=method, metric=match.order).value
        cost = float(costs.iloc[0]) if len(costs) else math.nan
        choice = at_level(cells, level[0], match, cost)
        mean = choice.spread(match.order).mean
        higher = column_of(match.order).direction == "higher"
        if choice.reached and not (mean < cost if higher else mean > cost):
            return choice
        return at_level(cells, level[1], match, cost)._replace(loosened=True)

    def measure(self, rows: list[Row]) -> None:
        """Add our values to the rows, including further metrics that the table shows (`spec.beside`)."""
        reference = next((row for row in rows if row.method == self.spec.own), None)
        unit = reference.choice.spread("seconds").mean if reference else math.nan
        for row in rows:
            shown = {value.metric for value in row.values}
            warnings = row.choice.cells.get("warnings", pd.Series(dtype=str)).fillna("").astype(str)
            warned = int(warnings.str.contains(NOT_UNIQUE, regex=False).sum())
            told = f"warning at {warned} of {len(warnings)} starts: {NOT_UNIQUE}" if warned else ""
            row.note = joined(row.choice.note, told)
            if row.method == OF_DATA_ITSELF:
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
                    value.ours = spread(row.choice.cells.seconds / unit) if unit > 0 else NO_VALUE
