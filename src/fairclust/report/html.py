"""The page for readers: one file, made from the tidy scores, that needs neither network nor JavaScript."""

from __future__ import annotations

import json
import math
import zipfile
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from gzip import compress
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairclust.looks import SHAPES
from fairclust.messages import counted
from fairclust.metrics.table import METRICS
from fairclust.outputs import atomic_write, write_text
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PaperSpec
from fairclust.report import agreement, page_tables
from fairclust.report.charts import HEIGHT, WIDTH, front_chart, with_values
from fairclust.report.claims import load_claims
from fairclust.report.leaderboard import CONTROL, COSTS, FAIRNESS, SHOWN, no_better
from fairclust.report.printed import LEGEND
from fairclust.report.render import Table, labelled, template
from fairclust.report.selection import INSTANCE, shareable
from fairclust.report.tables import HEADS, load_evidence, row_verdicts, summary
from fairclust.report.verdicts import SIGNS, VERDICTS

_ORIGIN = ("git_commit", "python", "platform", "cpu_count")


@dataclass(frozen=True)
class Results:
    """What a run has found, as data frames."""

    scores: pd.DataFrame  # from `pipeline.scores.load_scores`
    settings: pd.DataFrame  # from `leaderboard.make_settings`
    leaderboard: pd.DataFrame  # from `leaderboard.make_leaderboard`
    names: Names


def make_page(
    results: Results,
    provenance: Mapping[str, Any],
    papers: Mapping[str, PaperSpec],
    files: Mapping[str, Path],
) -> str:
    """The HTML of the page; see `write_page` for the parameters."""
    board = load_evidence([files[name] for name in ["tables/scoreboard.csv"] if name in files])
    with_data = set(board.paper[board.seeds.fillna(0) > 0])
    shown = [name for name in papers if name in with_data]
    titles = {name: papers[name].short_name for name in shown}
    claims = {name: load_claims(files[at]) for name in shown if (at := f"tables/{name}/claims.csv") in files}
    empty = set(results.scores.dataset) - set(results.scores.dataset[results.scores.status == "ok"])
    return template("fairclust.report", "page", "index.html.j2").render(
        **_fronts(results),
        agreement=agreement.picture(agreement.compared(board, titles, results.names)) if shown else None,
        totals=counted(row_verdicts(board[board.paper.isin(shown)]).verdict, VERDICTS),
        summary=Table("Rows of the papers' tables", summary(board, claims, titles)),
        verdicts=VERDICTS,
        signs=SIGNS,
        heads=HEADS,
        legend_of_tables=LEGEND,
        papers=[
            page_tables.paper_section(name, papers[name], board, claims.get(name), files, results.names)
            for name in shown
        ],
        without=[papers[name].short_name for name in papers if name not in shown]
        + sorted(map(results.names.dataset, empty)),
        **_tables(results),
        origin={key: provenance.get(key, "unknown") for key in _ORIGIN},
        commit_date=provenance.get("commit_date", ""),
        versions=provenance.get("versions", {}),
        mixture=results.scores.versions.value_counts().to_dict(),
        config=yaml.safe_dump(provenance.get("config", {}), sort_keys=False, allow_unicode=True),
    )


def _fronts(results: Results) -> dict[str, Any]:
    """The charts of all fronts, and what the template needs to show and to choose them."""
    settings, names = results.settings, results.names
    methods = names.in_order(results.scores.method.unique())
    marked = {cost: no_better(results.leaderboard, cost) for cost in COSTS}
    marks = []
    for method in methods:
        colour, shape = names.look(method)
        label, family = labelled(names, method), names.family(method)
        random = [SHOWN.index(cost) for cost in COSTS if method in marked[cost]]
        look = {"colour": colour, "shape": shape, "random": random}
        marks.append({"name": method, "label": label, "family": family, **look})
    drawn = set(settings.method)
    # The data sets and values of K with the most settings come first.
    instances = sorted(settings.groupby(INSTANCE, sort=False), key=lambda one: -len(one[1]))
    fronts: dict[str, list[dict[str, Any]]] = {}
    for instance, rows in instances:
        chart = front_chart(rows, methods, names, page_tables.instance_title(names, *instance), marked)
        fronts.setdefault(chart["dataset"], []).append(chart)
    # In the order of the page, which is that of its data.
    charts = [chart for rows in fronts.values() for chart in rows]
    metrics = [
        {
            "label": metric.label,
            "higher": metric.direction == "higher",
            "decimals": metric.decimals,
            "range": [bound if math.isfinite(bound) else None for bound in metric.range],
        }
        for metric in map(METRICS.__getitem__, SHOWN)
    ]
    data = {"methods": marks, "metrics": metrics, "charts": [chart.pop("data") for chart in charts]}
    return {
        # Packed, because as text the pictures are three times as large as the rest of the page.
        "data": b64encode(compress(json.dumps(data, ensure_ascii=False).encode(), mtime=0)).decode(),
        "shapes": SHAPES,
        "size": (WIDTH, HEIGHT),
        "methods": marks,
        "legend": [{**mark, "number": i} for i, mark in enumerate(marks) if methods[i] in drawn],
        "control": CONTROL,
        "families": sorted({mark["family"] for mark in marks}),
        "charts": charts,
        "fronts": fronts,
        # The metrics that can be chosen, each with its index among all of them.
        "costs": [(SHOWN.index(name), METRICS[name].label) for name in with_values(settings, COSTS)],
        "fairness": [(SHOWN.index(name), METRICS[name].label) for name in with_values(settings, FAIRNESS)],
    }


def _tables(results: Results) -> dict[str, Any]:
    """The tables on the run."""
    scores, settings, names = results.scores, results.settings, results.names
    return {
        "counts": scores.status.value_counts().to_dict(),
        "n_cells": len(scores),
        "datasets": list(dict.fromkeys(names.dataset(str(name)) for name in scores.dataset)),
        "boards": page_tables.leaderboards(results.leaderboard, names),
        "columns": page_tables.columns_table(settings, names),
        "times": page_tables.times_table(scores, names),
        "glossary": page_tables.glossary(),
        "missing": page_tables.missing_table(scores, names),
        "about": page_tables.datasets_table(scores, names),
    }


def write_page(
    results: Results,
    runs: pd.DataFrame,
    provenance: dict[str, Any],
    papers: Mapping[str, PaperSpec],
    files: Mapping[str, Path],
    page: Path,
    archive: Path,
) -> None:
    """Write the page, and an archive of it with tables, figures and scores; texts are `shareable`.

    Papers without data of this run get no section. `files` are the tables, the scoreboard, the claims and the figures,
    by their places in the folder of results. `runs` are the times and memory of the cells.
    """
    text = shareable(make_page(results, provenance, papers, files))
    write_text(page, text)
    # The archive has the folders of the results, so that the links of the page lead to its figures.
    members: dict[str, bytes] = {"report/index.html": text.encode()}
    for name, path in sorted(files.items()):
        members[name] = path.read_bytes() if path.suffix == ".png" else shareable(path.read_text()).encode()
    for name, frame in (("scores", results.scores), ("runs", runs)):
        members[f"scores/{name}.csv"] = shareable(frame.to_csv(index=False)).encode()
    with atomic_write(archive) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in members.items():
            # ZipInfo's default date is fixed, so that equal pages give equal archives.
            info = zipfile.ZipInfo(f"results/{name}")
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            packed.writestr(info, content)
