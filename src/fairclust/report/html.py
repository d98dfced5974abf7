"""The page for readers: one file, made from the tidy scores, that needs neither network nor JavaScript."""

from __future__ import annotations

import inspect
import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from fairclust.bench.store import atomic_write, read_table
from fairclust.bench.summary import brief
from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import PAPER_TABLES, Names, PaperTable
from fairclust.report.charts import SHAPES, front_chart, look, tick_text, with_settings
from fairclust.report.columns import load_cells
from fairclust.report.leaderboard import COSTS, FAIRNESS, LEADERBOARD_RULE, leaderboard, settings
from fairclust.report.redaction import redact_config, redact_csv, redact_text
from fairclust.report.render import lam, number
from fairclust.report.scoreboard import (
    COMPARED,
    RULE,
    VERDICTS,
    difference_text,
    metric_label,
    reported_text,
    reproduced_text,
    scoreboard,
    totals,
)
from fairclust.report.selection import describe
from fairclust.report.tables import compare
from fairclust.reported import PAPERS

NOT_IN_PAPER = "not in the paper"
_FMC = "Park et al. (FMC)"


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, whether it holds numbers, whether readers may filter by it."""

    title: str
    is_number: bool = False
    filters: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the page: text in the cells, None for none."""

    caption: str
    columns: list[Column]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """A verdict, shown with a sign of its own."""

    text: str

    @property
    def key(self) -> str:
        """Its name in the style sheet."""
        return self.text.replace(" ", "-")


def make_page(scores: Path, runs: Path, provenance: Path, shown: Names) -> str:
    """The page.

    Parameters
    ----------
    scores, runs : Path
        Parquet files of the tidy tables.
    provenance : Path
        JSON of versions, machine and configuration.
    shown : Names

    Returns
    -------
    str
        HTML.
    """
    frame, costs = load_cells(scores), read_table(runs)
    origin = json.loads(provenance.read_text())
    board = scoreboard(frame)
    methods = shown.in_order(frame.method.unique())
    labels = {name: shown.method(name) for name in methods}
    points = with_settings(settings(frame))
    boards = _leaderboards(points, frame, costs, methods, shown)
    marks = [
        {
            "label": labels[m],
            "family": shown.families.get(m, "other"),
            "colour": look(i)[0],
            "shape": look(i)[1],
        }
        for i, m in enumerate(methods)
    ]
    drawn = set(points.method)
    legend = [{**mark, "number": i} for i, mark in enumerate(marks) if methods[i] in drawn]
    data = {
        "methods": marks,
        "metrics": [_metric(name) for name in (*COSTS, *FAIRNESS)],
        "costs": len(COSTS),
    }
    page = _environment().get_template("index.html.j2")
    return page.render(
        css=Markup(_text("style.css")),  # files of this package
        js=Markup(_text("page.js")),
        # No '<' may end the script element early.
        data=Markup(json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")),
        shapes=SHAPES,
        methods=marks,
        legend=legend,
        families=sorted({mark["family"] for mark in marks}),
        counts=frame.status.value_counts().to_dict(),
        n_cells=len(frame),
        n_datasets=frame.dataset.nunique(),
        totals=[
            {**row, "key": key}
            for row, key in zip(totals(board).to_dict("records"), [*PAPERS, ""], strict=True)
        ],
        verdicts=VERDICTS,
        rule=RULE,
        papers=[_paper(key, board, frame, shown) for key in PAPERS],
        charts=[
            front_chart(of, methods, labels, f"{shown.dataset(str(dataset))}, K = {k}")
            for (dataset, k), of in points.groupby(["dataset", "n_clusters"], sort=False)
        ],
        costs=_choices(points, COSTS),
        fairness=_choices(points, FAIRNESS),
        leaderboard_rule=LEADERBOARD_RULE,
        boards=boards,
        times=_times(costs, shown),
        glossary=_glossary(),
        missing=_missing(frame, shown),
        datasets=_datasets(frame, shown),
        origin={key: origin.get(key, "unknown") for key in ("git_commit", "python", "platform", "cpu_count")},
        versions=origin.get("versions", {}),
        config=yaml.safe_dump(redact_config(origin.get("config", {})), sort_keys=False, allow_unicode=True),
    )


def write_page(
    scores: Path,
    runs: Path,
    provenance: Path,
    tables: Iterable[Path],
    shown: Names,
    page: Path,
    archive: Path,
) -> None:
    """Write the page, and an archive of it with the tables and the tidy scores, folders cut off.

    Parameters
    ----------
    scores, runs : Path
        Parquet files; the CSV files beside them go into the archive.
    provenance : Path
    tables : iterable of Path
        Files of tables, for the archive.
    shown : Names
    page, archive : Path
        Output.
    """
    with atomic_write(page) as file:
        file.write(make_page(scores, runs, provenance, shown).encode())
    members = {"index.html": page}
    members |= {f"tables/{path.name}": path for path in sorted(map(Path, tables))}
    members |= {f"scores/{path.stem}.csv": path.with_suffix(".csv") for path in (scores, runs)}
    with atomic_write(archive) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, path in members.items():
            # A fixed date: the same page is the same archive.
            info = zipfile.ZipInfo(f"report/{name}")
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".csv":
                text = redact_csv(text)
            packed.writestr(info, text if path == page else redact_text(text))


def _text(name: str) -> str:
    return resources.files("fairclust.report").joinpath("page", name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["verdict"] = lambda value: isinstance(value, Verdict)
    return environment


def _metric(name: str) -> dict[str, Any]:
    metric = METRICS[name]
    return {
        "label": metric.label,
        "higher": metric.direction == "higher",
        "decimals": metric.decimals,
        "bounded": bool(np.isfinite(metric.range[1])),
    }


def _choices(points: pd.DataFrame, names: Iterable[str]) -> list[dict[str, Any]]:
    """Metrics that have a value somewhere, with their place among all."""
    every = (*COSTS, *FAIRNESS)
    return [
        {"index": every.index(name), "name": name, "label": METRICS[name].label}
        for name in names
        if np.isfinite(points[name]).any()
    ]


def _glossary() -> Table:
    """What each metric is, in the words of its own documentation."""
    body = []
    for metric in METRICS.values():
        low, high = (tick_text(bound) if np.isfinite(bound) else "∞" for bound in metric.range)
        better = f", {metric.direction} is better" if metric.direction != "none" else ""
        meaning = (inspect.getdoc(metric.function) or "").partition("\n\n")[0]
        body.append([metric.label, meaning, f"{low} to {high}{better}", metric.source])
    body.append(["NLL", "Mean negative log-likelihood of the rows under a mixture.", "lower is better", _FMC])
    columns = [Column("Metric"), Column("Meaning"), Column("Range"), Column("Source")]
    return Table("What the metrics mean", columns, body)


# Papers


def _paper(key: str, board: pd.DataFrame, scores: pd.DataFrame, shown: Names) -> dict[str, Any]:
    of_paper = board[board.paper == key]
    # Most tables of a paper choose alike: said once, and where a table differs.
    rules = [describe(spec.rule) for spec in PAPER_TABLES.values() if spec.paper == key]
    usual = max(rules, key=rules.count, default="")
    tables = []
    for name, of_table in of_paper.groupby("table", sort=False):
        spec_name = next((n for n, s in PAPER_TABLES.items() if (s.paper, s.table) == (key, name)), None)
        spec = PAPER_TABLES[spec_name] if spec_name else None
        extra = _beyond(compare(spec, scores)) if spec else of_table[:0]
        rows = pd.concat([of_table[of_table.verdict.isin(COMPARED)], extra], ignore_index=True)
        rows = _by_paper(rows, of_table)
        heading = "Numbers in the text" if name == "text" else f"Table {name}"
        heading += f": {spec.title}" if spec else ""
        tables.append(
            {
                "title": heading,
                "remarks": _remarks(spec, usual) if spec else [],
                "compared": _compared(f"{PAPERS[key].short_name}, {heading}", rows, shown),
                "others": _others(of_table[~of_table.verdict.isin(COMPARED)], shown),
                "n_cells": len(of_table),
                "n_compared": int(of_table.verdict.isin(COMPARED).sum()),
            }
        )
    paper = PAPERS[key]
    return {
        **{"key": key, "name": paper.short_name, "citation": paper.citation},
        **{"rule": usual, "tables": tables},
    }


def _remarks(spec: PaperTable, usual: str) -> list[str]:
    rule = describe(spec.rule)
    return [*([rule] if rule != usual else []), *spec.remarks]


def _by_paper(rows: pd.DataFrame, of_table: pd.DataFrame) -> pd.DataFrame:
    """Data sets and methods in the paper's order, then those that it does not have."""

    def place(values: pd.Series) -> pd.Series:
        order = {name: i for i, name in enumerate(of_table[values.name].unique())}
        return values.map(order).fillna(len(order)).astype(float)

    return rows.sort_values(["dataset", "method"], key=place, kind="stable")


def _beyond(long: pd.DataFrame) -> pd.DataFrame:
    """Rows that the paper does not have, where there is something to show."""
    mine = long[(long.note == NOT_IN_PAPER) & long.reproduced.notna()]
    return mine.assign(verdict=NOT_IN_PAPER)


def _compared(caption: str, rows: pd.DataFrame, shown: Names) -> Table:
    columns = [
        Column("Data set", filters=True),
        Column("Method", filters=True),
        Column("Metric", filters=True),
        Column("Reported", is_number=True),
        Column("Reproduced", is_number=True),
        Column("Difference", is_number=True),
        Column("Verdict", filters=True),
        Column("K", is_number=True),
        Column("Setting (paper's λ)"),
        Column("Remark"),
    ]
    body = [
        [
            shown.dataset(row.dataset),
            shown.method(row.method),
            metric_label(row.metric),
            reported_text(row),
            reproduced_text(row),
            difference_text(row.difference),
            Verdict(row.verdict),
            "–" if pd.isna(row.n_clusters) else str(row.n_clusters),
            _setting(row),
            _first_line(row.remark),
        ]
        for row in rows.itertuples()
    ]
    return Table(caption, columns, body)


def _setting(row: Any) -> str:
    ours = "" if pd.isna(row.setting) else str(row.setting)
    ours = ours.replace("lam=", "λ=").replace("=", " = ") or "–"
    return ours + (f" ({lam(row.lam)})" if pd.notna(row.lam) else "")


def _others(rows: pd.DataFrame, shown: Names) -> Table | None:
    """What is not compared, with the reasons, a row for each reason and data set."""
    if rows.empty:
        return None
    body = []
    for (verdict, remark, dataset), of in rows.groupby(["verdict", "remark", "dataset"], sort=False):
        words = [Verdict(verdict), _first_line(remark), shown.dataset(dataset), _methods(of, shown)]
        body.append([*words, str(len(of))])
    columns = [
        Column("Verdict"),
        Column("Reason"),
        Column("Data set"),
        Column("Methods"),
        Column("Cells", is_number=True),
    ]
    return Table("Cells that are not compared", columns, body)


# Leaderboard, times, what is missing


def _leaderboards(
    points: pd.DataFrame, scores: pd.DataFrame, runs: pd.DataFrame, methods: list[str], shown: Names
) -> list[dict[str, Any]]:
    """A leaderboard for every cost and fairness metric for which an instance counts; the first is shown."""
    ok = scores[scores.status == "ok"].groupby("method").size()
    every = scores.groupby("method").size()
    seconds = runs[runs.status == "ok"].groupby("method").wall_seconds.median()
    found = []
    names = (*COSTS, *FAIRNESS)
    for cost in COSTS:
        for fairness in FAIRNESS:
            board = leaderboard(points, methods, cost, fairness)
            if board.empty:
                continue
            instances = [name for name in board.columns if isinstance(name, tuple)]
            rows = [
                [
                    number(row["mean_rank"], 2),
                    shown.method(method),
                    shown.families.get(method, "other"),
                    number(100 * row["mean_score"], 1),
                    str(int(row["instances"] - row["covered"])),
                    str(int(every.get(method, 0) - ok.get(method, 0))),
                    number(seconds.get(method, np.nan), 3),
                    *(number(100 * row[name], 1) for name in instances),
                ]
                for method, row in board.iterrows()
            ]
            columns = [
                Column("Mean rank", is_number=True),
                Column("Method"),
                Column("Family", filters=True),
                Column("Mean score", is_number=True),
                Column("Instances missing", is_number=True),
                Column("Cells missing", is_number=True),
                Column("Median seconds", is_number=True),
                *(Column(f"{shown.dataset(str(d))}, K = {k}", is_number=True) for d, k in instances),
            ]
            caption = f"{METRICS[cost].label} against {METRICS[fairness].label}: {len(instances)} instances"
            found.append(
                {
                    "cost": names.index(cost),
                    "fairness": names.index(fairness),
                    "table": Table(caption, columns, rows),
                }
            )
    return found


def _times(runs: pd.DataFrame, shown: Names) -> dict[str, Table]:
    """Seconds of the fits: by method, and by data set and method."""
    ok = runs[runs.status == "ok"]

    def body(groups: Any, words: Any) -> list[list[str]]:
        return [
            [
                *words(at),
                f"{len(of):,}",
                number(of.wall_seconds.median(), 3),
                number(of.wall_seconds.max(), 3),
                number(of.wall_seconds.sum(), 1),
                number(of.cpu_seconds.sum(), 1),
                number(of.peak_memory_mb.max(), 0),
            ]
            for at, of in groups
        ]

    numbers = [
        Column(title, is_number=True)
        for title in ("Fits", "Median s", "Slowest s", "All s", "All CPU s", "Peak memory MB")
    ]
    by_method = body(ok.groupby("method", sort=False), lambda m: [shown.method(m)])
    both = body(
        ok.groupby(["dataset", "n_clusters", "method"], sort=False),
        lambda at: [shown.dataset(at[0]), str(at[1]), shown.method(at[2])],
    )
    return {
        "methods": Table("Run times by method", [Column("Method"), *numbers], by_method),
        "all": Table(
            "Run times by data set and method",
            [
                Column("Data set", filters=True),
                Column("K", is_number=True),
                Column("Method", filters=True),
                *numbers,
            ],
            both,
        ),
    }


def _missing(scores: pd.DataFrame, shown: Names) -> Table | None:
    bad = scores[scores.status != "ok"]
    if bad.empty:
        return None
    first = bad.assign(reason=[brief(r) for r in bad.reason])
    body = [
        [status, shown.dataset(dataset), _methods(of, shown), str(len(of)), reason]
        for (status, dataset, reason), of in first.groupby(["status", "dataset", "reason"], sort=False)
    ]
    columns = [
        Column("Status", filters=True),
        Column("Data set", filters=True),
        Column("Methods"),
        Column("Cells", is_number=True),
        Column("Reason"),
    ]
    return Table("Cells without a result", columns, body)


def _datasets(scores: pd.DataFrame, shown: Names) -> Table:
    body = []
    for dataset, of in scores.groupby("dataset", sort=False):
        first = of.sort_values("n_rows", na_position="last").iloc[0]
        ks = ", ".join(str(k) for k in sorted(of.n_clusters.unique()))
        sizes = [number(first[name], 0) for name in ("n_rows", "n_features", "n_groups")]
        body.append(
            [shown.dataset(str(dataset)), *sizes, ks, f"{(of.status == 'ok').sum():,} of {len(of):,}"]
        )
    columns = [
        Column("Data set"),
        *(Column(t, is_number=True) for t in ("Rows", "Features", "Groups")),
        Column("K"),
        Column("Cells ok"),
    ]
    return Table("Data sets of the run", columns, body)


def _methods(cells: pd.DataFrame, shown: Names) -> str:
    # Names may hold commas.
    return "; ".join(dict.fromkeys(shown.method(m) for m in cells.method))


def _first_line(text: Any) -> str:
    return "" if pd.isna(text) else str(text).partition("\n")[0]
