"""Plots of a metric against lambda, K or the number of rows, and of the histories that estimators record."""

from __future__ import annotations

from collections.abc import Iterator
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
    draw_band,
    few_ticks,
    finite,
    note_starts,
    usable,
    why_empty,
)
from fairclust.report.render import metric_label
from fairclust.report.selection import choose

_LOGARITHMIC = ("seconds", "cpu_seconds")
_WITHOUT_ZERO = (*_LOGARITHMIC, "nll", "objective")
"""Columns whose axis need not begin at zero."""


def draw_lam_tradeoff(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """The first of `y` (left axis) and the second (right axis) against lambda.

    Each data set, K and method has a panel.
    """
    left, *others = material.spec.y
    ok = usable(sheet, axes, panel.cells, left, with_lam=True)
    if ok is None:
        return
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
            sheet.note(f"{metric_label(right)} is infinite where a group is missing from a cluster")
    note_starts(sheet, panel.cells, ok)


def _draw_on(axes: Axes, cells: pd.DataFrame, metric: str, number: int) -> None:
    """Draw a line against lambda. The axis gets the colour of the line."""
    draw_band(axes, cells, "lam", metric, COLOURS[number], MARKS[number])
    axes.set_ylabel(in_figure(metric_label(metric)), color=COLOURS[number])
    axes.tick_params(axis="y", colors=COLOURS[number])


def draw_cost_by_k(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """Each of `y` against K, with a panel for each data set and method.

    A panel has a line for every lambda that ran with the largest number of values of K.
    """
    ok = usable(sheet, axes, panel.cells, panel.y, with_lam=True)
    if ok is None:
        return
    ks = ok.groupby("lam").n_clusters.transform("nunique")
    ok = ok[ks == ks.max()]
    for number, (lam, at) in enumerate(ok.groupby("lam")):
        line = draw_band(axes, at, "n_clusters", panel.y, *in_matplotlib(numbered_look(number)))
        sheet.legend.setdefault(f"λ = {lam:g}", line)
    axes.set_xlabel("K")
    axes.set_ylabel(axis_label(panel.y))
    few_ticks(axes, whole_x=True)
    note_starts(sheet, panel.cells, ok)


def draw_metric_by_size(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """Each of `y` against the number of rows. A line for each method joins the data sets of the figure."""
    if _draw_lines(material, sheet, axes, panel, "n_rows"):
        axes.set_xlabel("Rows")
        axes.set_xscale("log")
        if panel.y in _LOGARITHMIC:
            axes.set_yscale("log")


def draw_metric_by_k(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """Each of `y` against K, with a line for each method and a panel for each data set."""
    if _draw_lines(material, sheet, axes, panel, "n_clusters"):
        axes.set_xlabel("K")
        few_ticks(axes, whole_x=True)


def _draw_lines(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel, x: str) -> bool:
    """Draw a line for each method. If there is none, the panel shows the reason."""
    cells, y = panel.cells, panel.y
    drawn = []
    for method, of in _one_setting_each(material, sheet, finite(cells, x, y)):
        line = draw_band(axes, of, x, y, *material.look(method))
        lams = of.lam.dropna().unique()
        name = material.names.method(method) + (f", λ = {lams[0]:g}" if len(lams) == 1 else "")
        sheet.legend.setdefault(name, line)
        drawn.append(of)
    if not drawn:
        sheet.say(axes, why_empty(cells, (y,)))
        return False
    axes.set_ylabel(axis_label(y))
    if y not in _WITHOUT_ZERO:
        axes.set_ylim(bottom=0)
    note_starts(sheet, cells, pd.concat(drawn))
    return True


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


def draw_steps(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """What the estimator records, against its outer steps, with a line for each start.

    All lines have the lambda that the figure names, or else the largest lambda.
    """
    cells, y = panel.cells, panel.y
    # If several settings have this lambda, the one with the lowest mean objective is drawn.
    ok = choose(at_lam(cells[cells.status == "ok"], material.spec.lam)).cells
    steps = material.steps[material.steps.key.isin(ok.key)]
    if ok.empty or y not in steps or steps[y].isna().all():
        reason = f"the method records no {metric_label(y)} at its steps" if len(ok) else why_empty(cells)
        sheet.say(axes, reason)
        return
    colour, mark = material.look(str(ok.method.iloc[0]))
    for key in ok.key:
        line = steps[steps.key == key].sort_values("step").dropna(subset=[y])
        style: dict[str, Any] = {"marker": mark, "markersize": 3} if len(line) <= 40 else {}
        axes.plot(line.step, line[y].astype(float), color=colour, alpha=0.55, linewidth=1, **style)
    lam = ok.lam.iloc[0]
    axes.set_xlabel("step" + (f", λ = {lam:g}" if pd.notna(lam) else ""))
    axes.set_ylabel(in_figure(metric_label(y)))
    few_ticks(axes, whole_x=True)
    sheet.note("each line is one start")
