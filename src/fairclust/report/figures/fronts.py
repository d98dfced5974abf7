"""Plots of cost against fairness, with one point for each setting of a method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from fairclust.fronts import front_of
from fairclust.pipeline.columns import column_of
from fairclust.plot import in_figure
from fairclust.report.figures.drawing import (
    SOFT,
    FigureData,
    Panel,
    Sheet,
    axis_label,
    few_ticks,
    finite,
    note_starts,
    usable,
)
from fairclust.report.selection import settings_table, varied_params

_COST_OF_GRAPHS = "ncut"


def means_front(cells: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """The points of the front of one data set and K: each setting at the mean over its starts, the cheapest first.

    The cells have finite values. The points have the further columns params, x_sd and y_sd.
    """
    points = settings_table(cells, [x, y], with_sd=True).reset_index()
    points = points.assign(x_sd=points[f"{x} sd"].fillna(0.0), y_sd=points[f"{y} sd"].fillna(0.0))
    lower = column_of(y).direction == "lower"
    points = points.sort_values([x, y], ascending=[True, lower], ignore_index=True)
    return front_of(points, x, y, higher=not lower).points


def draw_front(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """`x` (a cost) against each of `y` (fairness metrics), with a panel for every data set and K.

    A mark is the mean of a setting over its starts. A line joins the settings of a method that no other
    setting of the method beats in both metrics; the other settings are faint. Hollow marks are the reported
    values.
    """
    cells, x, y = panel.cells, material.spec.x, panel.y
    if finite(cells, x).empty and len(finite(cells, _COST_OF_GRAPHS)):
        x = _COST_OF_GRAPHS
    ok = usable(sheet, axes, cells, x, y)
    if ok is None:
        return
    is_cost = column_of(x).is_cost
    settings, reported = means_front(ok, x, y), material.reported_points(panel.dataset, panel.k, x, y)
    limit = _cost_limit(settings) if is_cost else np.inf
    methods = material.methods(ok)
    for number, method in enumerate(methods):
        points = settings[settings.method == method]
        name = material.names.method(method)
        colour, mark = material.look(method)
        # Later marks are smaller, so that marks at the same place are all visible.
        style: dict[str, Any] = {
            "color": colour, "marker": mark, "markersize": 8 - 4 * number / max(1, len(methods) - 1),
            "markeredgecolor": "0.25", "markeredgewidth": 0.5,
        }  # fmt: skip
        beyond = points[points.x > limit]
        if len(beyond):
            sheet.note(
                f"{panel.title}: settings of {name} that cost more than the panel shows: "
                f"{len(beyond)}, up to {beyond.x.max():,.5g}"
            )
            points = points[points.x <= limit]
        # If both axes show fairness, there is no trade-off with a cost, so no setting is drawn as beaten.
        front = points[points.own] if is_cost else points
        others = points.drop(front.index)
        if len(others):
            sheet.note("faint: settings that another setting of the same method beats in both metrics")
        axes.plot(others.x, others.y, linestyle="", alpha=0.2, **style)
        bars: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.8, "alpha": 0.45}
        axes.errorbar(front.x, front.y, front.y_sd, front.x_sd, **bars)
        joined = ":" if is_cost and len(front) > 1 else ""
        line = axes.plot(front.x, front.y, linestyle=joined, linewidth=1, **style)[0]
        sheet.legend.setdefault(name, line)
        of = reported[reported.method == method]
        if len(of):
            axes.plot(
                of.x, of.y, linestyle="", marker=mark, markersize=11, markerfacecolor="none", markeredgecolor=colour,
                markeredgewidth=1.5,
            )  # fmt: skip
            sheet.note("hollow: reported by the paper")
    axes.set_xlabel(axis_label(x))
    axes.set_ylabel(axis_label(y))
    few_ticks(axes)
    note_starts(sheet, cells, ok, "marks")


def _cost_limit(points: pd.DataFrame) -> float:
    """A limit a little above the highest cost on the fronts of the methods with several settings.

    Without it, one distant reference method, or a setting that another one of its method beats, would squeeze all
    others.
    """
    highest = points.x[points.several & points.own].max()
    return np.inf if pd.isna(highest) else highest + 0.1 * abs(highest)


def draw_bands(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """`x` against each of `y`, with a panel for each method. The panels of a data set have the same axes.

    A point is the mean of a setting over its starts, with one standard deviation to each side and its lambda. A line
    with a band joins the means that no other mean of the method beats in both metrics.
    """
    x, y = material.spec.x, panel.y
    ok = usable(sheet, axes, panel.cells, x, y, with_lam=True)
    if ok is None:
        return
    first = sheet.shared.setdefault((panel.dataset, y), axes)
    if first is not axes:
        axes.sharex(first)
        axes.sharey(first)
    points, names = means_front(ok, x, y), _short_names(ok)
    colour, mark = material.look(panel.method)
    axes.errorbar(
        points.x, points.y, points.y_sd, points.x_sd,
        linestyle="", marker=mark, markersize=5, color=colour, alpha=0.35, linewidth=1,
    )  # fmt: skip
    front = points[points.own]
    axes.plot(front.x, front.y, color=colour, marker=mark, markersize=5)
    low, high = front.y - front.y_sd, front.y + front.y_sd
    axes.fill_between(front.x, low, high, color=colour, alpha=0.18, linewidth=0)
    for point in points.itertuples():
        axes.annotate(
            in_figure(names[str(point.params)]), (point.x, point.y), textcoords="offset points", xytext=(4, 3),
            fontsize=6, color=SOFT,
        )  # fmt: skip
    axes.set_xlabel(axis_label(x))
    axes.set_ylabel(axis_label(y))
    few_ticks(axes)
    sheet.note("numbers at the points: lambda")
    note_starts(sheet, panel.cells, ok, "points")


def _short_names(cells: pd.DataFrame) -> dict[str, str]:
    """Short names of settings: the lambda, and further parameters that differ between them."""
    found = varied_params(cells.params.unique())
    # Only parameters that every setting has can tell the settings apart. Others, such as `record_labels`, change only
    # what a fit records.
    shared = sorted(set.intersection(*map(set, found.values())) - {"lam"})
    lams = cells.groupby("params").lam.first()
    shown = {text: [str(of[name]) for name in shared] for text, of in found.items()}
    return {text: ", ".join([f"{lams[text]:g}", *values]) for text, values in shown.items()}
