"""Plots of single clusterings: the points of a plane, and the shares of the groups in every cluster."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairclust.datasets.errors import DatasetSkipped
from fairclust.datasets.store import PreparedDataset, load_prepared
from fairclust.looks import COLOURS, MARKS
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.scores import labels_of
from fairclust.plot import in_figure
from fairclust.report.figures.drawing import SOFT, FigureData, Panel, Sheet, at_lam
from fairclust.report.redaction import redact_text
from fairclust.report.render import metric_label
from fairclust.report.selection import Choice, choose, reported_level

# More points than this are drawn as a bitmap in a PDF, because single shapes would take megabytes.
_MAX_SHAPES = 5_000


def _choice(material: FigureData, panel: Panel) -> Choice:
    """The setting of a method on a data set.

    If the figure names a table, settings are chosen as in this table. Otherwise, the setting has the lambda that the
    figure names, or else the largest lambda.
    """
    spec, of, level = material.spec, panel.cells, None
    if not panel.method:
        return Choice(of, "no cell was run")
    if not spec.table or spec.lam is not None:
        of = at_lam(of, spec.lam)
    if material.match is not None and len(material.reported) and spec.table:
        reported, at = material.reported, (panel.dataset, panel.method)
        level = reported_level(material.match, spec.table, reported, *at, n_clusters=panel.k)
    return choose(of, level.allowed if level else None, material.match)


def draw_clusters(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """The points of data sets with two features: the colour is the cluster and the shape is the group.

    There is a panel for each data set and method, with the best start of the setting. The points are drawn unscaled,
    although the methods see them scaled. `y` names the metrics that are printed below each panel.
    """
    sheet.note(
        "colour is the cluster, shape is the group; each panel shows the start with the lowest objective"
    )
    choice, (data, reason) = _choice(material, panel), _load_plane(material.planes.get(panel.dataset))
    if data is None or choice.cell is None:
        sheet.say(axes, reason or choice.note)
        return
    labels = labels_of(Path(choice.cell.pack), str(choice.cell.key))
    if labels is None or len(labels) != len(data.X):
        sheet.say(axes, "the cell has no labels")
        return
    _draw_points(axes, data, labels)
    values = [
        f"{metric_label(name)} {choice.cell[name]:,.{COLUMNS[name].decimals}f}"
        for name in material.spec.y or ("fairness_ratio", "sse")
        if name in choice.cell and pd.notna(choice.cell[name])
    ]
    below = "\n".join([", ".join(values), *wrap(choice.setting, 44)[:2]])
    axes.set_xlabel(in_figure(below), fontsize=8)
    for number, group in enumerate(data.group_names):
        handle = Line2D([], [], color=SOFT, linestyle="", marker=MARKS[number % len(MARKS)])
        sheet.legend.setdefault(group, handle)


def _draw_points(axes: Axes, data: PreparedDataset, labels: np.ndarray) -> None:
    style: dict[str, Any] = {"s": 10, "alpha": 0.7, "linewidths": 0, "rasterized": len(labels) > _MAX_SHAPES}
    for group in range(len(data.group_names)):
        of = data.groups == group
        colours = [COLOURS[label % len(COLOURS)] for label in labels[of]]
        axes.scatter(data.X[of, 0], data.X[of, 1], c=colours, marker=MARKS[group % len(MARKS)], **style)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_aspect("equal", adjustable="datalim")


def _load_plane(folder: Path | None) -> tuple[PreparedDataset | None, str]:
    """The points of a data set with two features, or None and the reason."""
    if folder is None:
        return None, "the points were not prepared"
    try:
        data = load_prepared(Path(folder))
    except DatasetSkipped as skipped:
        return None, redact_text(str(skipped))
    if data.X.shape[1] != 2:
        return None, f"the points have {data.X.shape[1]} features, not two"
    return data, ""


def draw_group_shares(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """The groups' shares in every cluster and in the data, with a panel for each data set, K and method."""
    sheet.note("below the bars: rows of the cluster; each panel shows the start with the lowest objective")
    choice = _choice(material, panel)
    cell = choice.cell
    if cell is None or not isinstance(cell.counts, str):
        sheet.say(axes, choice.note or "the cell has no counts")
        return
    lam = f", λ = {cell.lam:g}" if pd.notna(cell.lam) else ""
    sheet.set_title(axes, panel.title + lam)
    table = json.loads(cell.counts)
    counts = np.array(list(table.values()), dtype=float)
    counts = counts[:, counts.sum(axis=0) > 0]
    columns = np.column_stack([counts.sum(axis=1), counts])
    shares = columns / columns.sum(axis=0)
    # Bars are placed by number and not by their text, because two clusters may have the same size.
    places, bottom = np.arange(columns.shape[1]), np.zeros(columns.shape[1])
    for number, (group, row) in enumerate(zip(table, shares, strict=True)):
        bars = axes.bar(places, row, bottom=bottom, color=COLOURS[number % len(COLOURS)], width=0.8)
        sheet.legend.setdefault(group, bars)
        bottom += row
    names = ["all", *(f"{size:,.0f}" for size in columns.sum(axis=0)[1:])]
    axes.set_xticks(places, names, fontsize=7, rotation=90 if len(names) > 6 else 0)
    axes.set_ylabel("Share of the groups")
    axes.grid(False)
