"""The page for readers: one file, made from the tidy scores, that needs no network."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from gzip import compress
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from fairclust.looks import SHAPES
from fairclust.messages import counted
from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PaperSpec
from fairclust.report import agreement, page_tables
from fairclust.report.charts import HEIGHT, WIDTH, front_chart, with_values
from fairclust.report.claims import load_claims
from fairclust.report.leaderboard import CONTROL, COSTS, FAIRNESS, SHOWN, make_settings, no_better
from fairclust.report.printed import LEGEND
from fairclust.report.render import Table, labelled, template
from fairclust.report.selection import INSTANCE, shareable
from fairclust.report.tables import HEADS, load_evidence, row_verdicts, summary
from fairclust.report.verdicts import SIGNS, VERDICTS


def make_page(
    scores: pd.DataFrame,
    leaderboard: pd.DataFrame,
    names: Names,
    provenance: Mapping[str, Any],
    papers: Mapping[str, PaperSpec],
    files: Mapping[str, Path],
) -> str:
    """The HTML of the page. Papers without data of this run get no section; texts are `shareable`.

    `scores` are from `pipeline.scores.load_scores`, and `leaderboard` from `make_leaderboard`. `files` are the tables,
    the scoreboard, the claims and the figures, by their places in the folder of results.
    """
    board = load_evidence([files[name] for name in ["tables/scoreboard.csv"] if name in files])
    with_data = set(board.paper[board.seeds.fillna(0) > 0])
    shown = [name for name in papers if name in with_data]
    titles = {name: papers[name].short_name for name in shown}
    claims = {name: load_claims(files[at]) for name in shown if (at := f"tables/{name}/claims.csv") in files}
    empty = set(scores.dataset) - set(scores.dataset[scores.status == "ok"])
    settings = make_settings(scores)
    page = template("fairclust.report", "page", "index.html.j2").render(
        **_fronts(scores, settings, leaderboard, names),
        agreement=agreement.picture(agreement.compared(board, titles, names)) if shown else None,
        totals=counted(row_verdicts(board[board.paper.isin(shown)]).verdict, VERDICTS),
        summary=Table("Rows of the papers' tables", summary(board, claims, titles)),
        verdicts=VERDICTS,
        signs=SIGNS,
        heads=HEADS,
        legend_of_tables=LEGEND,
        papers=[
            page_tables.paper_section(name, papers[name], board, claims.get(name), files, names)
            for name in shown
        ],
        without=[papers[name].short_name for name in papers if name not in shown]
        + sorted(map(names.dataset, empty)),
        counts=scores.status.value_counts().to_dict(),
        n_cells=len(scores),
        datasets=list(dict.fromkeys(names.dataset(str(name)) for name in scores.dataset)),
        boards=page_tables.leaderboards(leaderboard, names),
        glossary=page_tables.glossary(),
        missing=page_tables.missing_table(scores, names),
        origin=provenance,
        mixture=scores.versions.value_counts().to_dict(),
        config=yaml.safe_dump(provenance["config"], sort_keys=False, allow_unicode=True),
    )
    # Behind the texts stand the data, packed from shareable texts, and the script.
    texts, data, script = page.rpartition('<script type="text/plain"')
    return f"{shareable(texts)}{data}{script}"


def _fronts(
    scores: pd.DataFrame, settings: pd.DataFrame, leaderboard: pd.DataFrame, names: Names
) -> dict[str, Any]:
    """The charts of all fronts, and what the template needs to show and to choose them."""
    methods = names.in_order(scores.method.unique())
    marked = {cost: no_better(leaderboard, cost) for cost in COSTS}
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
    for (dataset, k), rows in instances:
        title = names.dataset(dataset)
        chart = front_chart(rows, methods, names, f"{title}, K = {k}", marked)
        fronts.setdefault(title, []).append(chart)
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
        "data": b64encode(
            compress(shareable(json.dumps(data, ensure_ascii=False)).encode(), mtime=0)
        ).decode(),
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
