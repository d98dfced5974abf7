"""The figures of the s-FairSC poster, from the tidy scores alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairclust.report.columns import COLUMNS
from fairclust.report.figures import COLOURS, Material, _footnote, _say_why
from fairclust.report.selection import best_starts


def _lines(cells: pd.DataFrame, metric: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The cells that a line is made of, method by method: for a method with lambdas those of the largest."""
    ok = cells[(cells.status == "ok") & cells[metric].notna()]
    for method, of_method in ok.groupby("method"):
        lams = of_method.lam
        yield str(method), of_method[lams == lams.max()] if lams.notna().any() else of_method


def _draw_lines(axes: Axes, material: Material, x: str, metric: str) -> pd.DataFrame:
    """A line for each method: medians, and a band from the lowest to the highest; the cells drawn."""
    drawn = []
    for method, cells in _lines(material.cells, metric):
        colour, mark = material.look(method)
        grouped, label = cells.groupby(x)[metric], material.shown.method(method)
        if cells.lam.notna().any():
            label += f", λ = {cells.lam.max():g}"
        middle = grouped.median()
        axes.fill_between(middle.index, grouped.min(), grouped.max(), color=colour, alpha=0.18, linewidth=0)
        axes.plot(middle.index, middle, color=colour, marker=mark, markersize=4, label=label)
        drawn.append(cells)
    axes.set_ylabel(COLUMNS[metric].label)
    if drawn:
        axes.legend(frameon=False, fontsize=8)
    return pd.concat(drawn) if drawn else material.cells[:0]


def plot_by_size(material: Material) -> Figure:
    """A metric, or the seconds of a fit, against the number of nodes, across data sets of one family."""
    metric = material.kind.cost
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    axes.set_title(f"Graphs {material.kind.across.rstrip('_')}: {len(material.cells.dataset.unique())} sizes")
    cells = material.cells
    if metric not in cells or cells[metric].isna().all():
        _say_why(axes, cells)
        return figure
    drawn = _draw_lines(axes, material, "n_rows", metric)
    axes.set_xlabel("n")
    axes.set_xscale("log")
    if metric == "cpu_seconds":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    _footnote(axes, cells[cells.method.isin(drawn.method)], drawn)
    return figure


def plot_metric_by_k(material: Material) -> Figure:
    """A metric against the number of clusters, one line for each method."""
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    axes.set_title(material.title)
    cells = material.cells
    if not (cells.status == "ok").any():
        _say_why(axes, cells)
        return figure
    drawn = _draw_lines(axes, material, "n_clusters", material.kind.cost)
    axes.set_xlabel("K")
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _footnote(axes, drawn, drawn)
    return figure


def plot_group_shares(material: Material) -> Figure:
    """Shares of the groups in every cluster at the smallest K, beside the whole data's; the best start."""
    cells = material.cells
    at_k = cells[cells.n_clusters == cells.n_clusters.min()]
    ok = at_k[(at_k.status == "ok") & at_k.counts.notna()]
    found = {method: best_starts(of_method).iloc[-1] for method, of_method in ok.groupby("method")}
    figure, panels = plt.subplots(
        1, max(1, len(found)), figsize=(3.2 * max(1, len(found)) + 1, 3.8), sharey=True, squeeze=False
    )
    if not found:
        _say_why(panels[0, 0], at_k)
        return figure
    for axes, (method, cell) in zip(panels[0], sorted(found.items()), strict=True):
        table = json.loads(cell.counts)
        counts = np.array(list(table.values()), dtype=float)
        columns = np.column_stack([counts.sum(axis=1), counts[:, counts.sum(axis=0) > 0]])
        shares = columns / columns.sum(axis=0)
        names = ["all", *(f"{size:,.0f}" for size in columns.sum(axis=0)[1:])]
        bottom = np.zeros(len(names))
        for number, (group, row) in enumerate(zip(table, shares, strict=True)):
            axes.bar(names, row, bottom=bottom, color=COLOURS[number % len(COLOURS)], label=group, width=0.8)
            bottom += row
        label = material.shown.method(str(method))
        axes.set_title(label + (f", λ = {cell.lam:g}" if pd.notna(cell.lam) else ""), fontsize=9)
        axes.set_xlabel("nodes of the cluster")
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(False)
    panels[0, 0].set_ylabel(f"shares of the groups, {material.title}, K = {at_k.n_clusters.min()}")
    panels[0, -1].legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1), title="group")
    return figure


PLOTS: dict[str, Callable[[Material], Figure]] = {
    "by_size": plot_by_size,
    "metric_by_k": plot_metric_by_k,
    "group_shares": plot_group_shares,
}
