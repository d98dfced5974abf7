"""Plots of the history that an estimator records at its outer steps, with a line for each start."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from fairclust.plot import in_figure
from fairclust.report.figures.drawing import (
    FigureData,
    Sheet,
    at_lam,
    column_label,
    count_starts,
    few_ticks,
    why_empty,
)
from fairclust.report.selection import choose


def plot_convergence(material: FigureData) -> Sheet:
    """The objective (or each of `y`) against outer steps, with a panel for each data set, K and method.

    All lines have the lambda that the figure names, or else the largest lambda.
    """
    return _plot_steps(material, material.spec.y or ("objective",), first_k=False, per_row=3)


def plot_terms(material: FigureData) -> Sheet:
    """Each of `y` against steps: terms of the objective, or metrics that the estimator records."""
    ys = material.spec.y or ("clustering", "fairness")
    return _plot_steps(material, ys, first_k=True, per_row=4)


def _plot_steps(material: FigureData, ys: tuple[str, ...], *, first_k: bool, per_row: int) -> Sheet:
    panels = material.panels(first_k=first_k, methods=True, ys=ys)
    n_columns = min(per_row, len(ys) if len(ys) > 1 else len(panels))
    sheet = Sheet(material.spec.title, n_columns, (3.0, 2.4))
    for panel in panels:
        _draw_steps(material, sheet, sheet.add(panel.title), panel.cells, panel.y)
    return sheet


def _draw_steps(material: FigureData, sheet: Sheet, axes: Axes, cells: pd.DataFrame, y: str) -> None:
    # If several settings have this lambda, the one with the lowest mean objective is drawn.
    ok = choose(at_lam(cells[cells.status == "ok"], material.spec.lam)).cells
    steps = material.steps[material.steps.key.isin(ok.key)]
    if ok.empty or y not in steps or steps[y].isna().all():
        reason = f"the method records no {column_label(y)} at its steps" if len(ok) else why_empty(cells)
        sheet.say(axes, reason)
        return
    colour, mark = material.look(str(ok.method.iloc[0]))
    for key in ok.key:
        line = steps[steps.key == key].sort_values("step").dropna(subset=[y])
        style: dict[str, Any] = {"marker": mark, "markersize": 3} if len(line) <= 40 else {}
        axes.plot(line.step, line[y].astype(float), color=colour, alpha=0.55, linewidth=1, **style)
    lam = ok.lam.iloc[0]
    axes.set_xlabel("step" + (f", λ = {lam:g}" if pd.notna(lam) else ""))
    axes.set_ylabel(in_figure(column_label(y)))
    few_ticks(axes, whole_x=True)
    sheet.note(f"lines: {count_starts(ok)}")
