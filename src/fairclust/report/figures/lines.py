"""Plots of a metric against lambda, K or the number of rows: lines of means over the starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from fairclust.looks import COLOURS, MARKS, in_matplotlib, numbered_look
from fairclust.plot import in_figure
from fairclust.report.figures.drawing import (
    FigureData,
    Panel,
    Sheet,
    at_lam,
    axis_label,
    column_label,
    draw_band,
    few_ticks,
    finite,
    mean_and_spread,
    note_starts,
    usable,
    why_empty,
)
from fairclust.report.selection import choose

_LOGARITHMIC = ("seconds", "cpu_seconds")
_WITHOUT_ZERO = (*_LOGARITHMIC, "nll", "objective")
"""Columns whose axis need not begin at zero."""


def plot_lam_tradeoff(material: FigureData) -> Sheet:
    """The first of `y` (left axis) and the second (right axis) against lambda.

    Each data set, K and method has a panel.
    """
    left, *others = material.spec.y
    panels = material.panels(methods=True)
    sheet = Sheet(material.spec.title, min(3, len(panels)), (3.1, 2.5), wide=True)
    for panel in panels:
        axes = sheet.add(panel.title)
        ok = usable(sheet, axes, panel.cells, left, with_lam=True)
        if ok is None:
            continue
        axes.set_xlabel("λ")
        few_ticks(axes)
        positive = ok.lam[ok.lam > 0]
        if len(positive) and positive.max() > 100 * positive.min():
            axes.set_xscale("symlog", linthresh=positive.min())
        _draw_on(axes, ok, left, 0)
        for right in others[:1]:
            twin = axes.twinx()
            twin.grid(False)
            _draw_on(twin, finite(ok, right), right, 1)
            twin.set_ylim(bottom=0)
            if len(finite(ok, right)) < len(ok):
                sheet.note(f"{column_label(right)} is infinite where a group is missing from a cluster")
        note_starts(sheet, panel.cells, ok)
    return sheet


def _draw_on(axes: Axes, cells: pd.DataFrame, metric: str, number: int) -> None:
    """Draw a line against lambda. The axis gets the colour of the line."""
    draw_band(axes, mean_and_spread(cells, "lam", metric), COLOURS[number], MARKS[number])
    axes.set_ylabel(in_figure(column_label(metric)), color=COLOURS[number])
    axes.tick_params(axis="y", colors=COLOURS[number])


def plot_cost_by_k(material: FigureData) -> Sheet:
    """Each of `y` against K, with a panel for each data set and method.

    A panel has a line for every lambda that ran with the largest number of values of K.
    """
    panels = material.panels(ks=False, methods=True, ys=material.spec.y)
    sheet = _sheet_of_metrics(material, panels)
    for panel in panels:
        axes, y = sheet.add(panel.title), panel.y
        ok = usable(sheet, axes, panel.cells, y, with_lam=True)
        if ok is None:
            continue
        ks = ok.groupby("lam").n_clusters.transform("nunique")
        ok = ok[ks == ks.max()]
        for number, (lam, at) in enumerate(ok.groupby("lam")):
            line = draw_band(
                axes, mean_and_spread(at, "n_clusters", y), *in_matplotlib(numbered_look(number))
            )
            sheet.legend.setdefault(f"λ = {lam:g}", line)
        axes.set_xlabel("K")
        axes.set_ylabel(axis_label(y))
        few_ticks(axes, whole_x=True)
        note_starts(sheet, panel.cells, ok)
    return sheet


def plot_by_size(material: FigureData) -> Sheet:
    """Each of `y` against the number of rows. A line for each method joins the data sets of the figure."""
    ys = material.spec.y
    sheet = Sheet(material.spec.title, min(3, len(ys)), (3.5, 2.7))
    sizes = material.cells.dataset.nunique()
    ks = sorted(int(k) for k in material.cells.n_clusters.unique())
    for y in ys:
        axes = sheet.add(f"{sizes} data sets" + (f", K = {ks[0]}" if len(ks) == 1 else ""))
        if _draw_lines(material, sheet, axes, material.cells, "n_rows", y):
            axes.set_xlabel("Rows")
            axes.set_xscale("log")
            if y in _LOGARITHMIC:
                axes.set_yscale("log")
    return sheet


def plot_metric_by_k(material: FigureData) -> Sheet:
    """Each of `y` against K, with a line for each method and a panel for each data set."""
    panels = material.panels(ks=False, ys=material.spec.y)
    sheet = _sheet_of_metrics(material, panels)
    for panel in panels:
        axes = sheet.add(panel.title)
        if _draw_lines(material, sheet, axes, panel.cells, "n_clusters", panel.y):
            axes.set_xlabel("K")
            few_ticks(axes, whole_x=True)
    return sheet


def _sheet_of_metrics(material: FigureData, panels: Sequence[Panel]) -> Sheet:
    """A sheet with a column for each metric, or with up to three columns for a single one."""
    n_ys = len(material.spec.y)
    return Sheet(material.spec.title, n_ys if n_ys > 1 else min(3, len(panels)), (3.5, 2.7))


def _draw_lines(
    material: FigureData, sheet: Sheet, axes: Axes, cells: pd.DataFrame, x: str, y: str
) -> list[Any]:
    """Draw a line for each method. If there is none, the panel shows the reason."""
    drawn = []
    for method, of in _one_setting_each(material, sheet, finite(cells, x, y)):
        colour, mark = material.look(method)
        line = draw_band(axes, mean_and_spread(of, x, y), colour, mark)
        lams = of.lam.dropna().unique()
        name = material.names.method(method) + (f", λ = {lams[0]:g}" if len(lams) == 1 else "")
        sheet.legend.setdefault(name, line)
        drawn.append(of)
    if not drawn:
        sheet.say(axes, why_empty(cells, (y,)))
        return drawn
    axes.set_ylabel(axis_label(y))
    if y not in _WITHOUT_ZERO:
        axes.set_ylim(bottom=0)
    note_starts(sheet, cells, pd.concat(drawn))
    return drawn


def _one_setting_each(
    material: FigureData, sheet: Sheet, ok: pd.DataFrame
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The cells of one setting of every method on every data set and K.

    The setting has the lambda that the figure names, or else the largest lambda. If several settings have this lambda,
    the one with the lowest mean objective is used.
    """
    for method in material.methods(ok):
        places = ok[ok.method == method].groupby(["dataset", "n_clusters"])
        at_places = [at_lam(of, material.spec.lam) for _, of in places]
        if any(cells.params.nunique() > 1 for cells in at_places):
            sheet.note("if a method has several settings, the one with the lowest objective is shown")
        yield method, pd.concat([choose(cells).cells for cells in at_places])
