"""The figures of the paper on mixtures (FMC), from the tidy scores and steps alone."""

from __future__ import annotations

import json
from collections.abc import Callable

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairclust.report.columns import COLUMNS
from fairclust.report.figures import COLOURS, Material, _say_why, _seeds, _with_direction


def plot_bands(material: Material) -> Figure:
    """Cost against fairness, means over the starts with bands of a standard deviation (FMC, Figures 2 and 4).

    A panel for each method, with common axes; a point for each setting, by its lambda. A line joins the means
    that no other mean of the method beats in both.
    """
    kind = material.kind
    k = material.cells.n_clusters.min()
    at_k = material.cells[material.cells.n_clusters == k]
    run = [method for method in kind.methods if method in set(at_k.method)]
    n_panels = max(1, len(run))
    figure, panels = plt.subplots(
        1,
        n_panels,
        figsize=(4.4 * n_panels, 3.8),
        squeeze=False,
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    if not run:
        panels[0, 0].set_title(material.title)
        _say_why(panels[0, 0], at_k)
        return figure
    figure.suptitle(f"{material.title}, K = {k}: means and standard deviations over the starts, by λ")
    sign = -1 if COLUMNS[kind.fairness].direction == "lower" else 1
    for axes, method in zip(panels.flat, run, strict=True):
        cells = at_k[at_k.method == method]
        ok = cells[(cells.status == "ok") & cells.lam.notna()]
        axes.set_title(f"{material.shown.method(method)} ({ok.seed.nunique()} starts)", fontsize=10)
        if ok.empty:
            _say_why(axes, cells)
            continue
        by_setting = ok.groupby("params")[[kind.cost, kind.fairness]]
        middle, spread = by_setting.mean(), by_setting.std(ddof=0)
        names = _short_names(ok)
        order = middle.sort_values([kind.cost, kind.fairness], ascending=[True, sign < 0]).index
        middle, spread = middle.loc[order], spread.loc[order]
        fair = sign * middle[kind.fairness]
        front = middle.index[fair > fair.cummax().shift(fill_value=-float("inf"))]
        colour, mark = material.look(method)
        x, y = middle[kind.cost], middle[kind.fairness]
        axes.errorbar(
            x, y, spread[kind.fairness], spread[kind.cost],
            linestyle="", marker=mark, color=colour, alpha=0.35, linewidth=1,
        )  # fmt: skip
        axes.plot(x[front], y[front], color=colour, marker=mark)
        low, high = (y + s * spread[kind.fairness] for s in (-1, 1))
        axes.fill_between(x[front], low[front], high[front], color=colour, alpha=0.18, linewidth=0)
        for setting in middle.index:
            axes.annotate(
                names[setting],
                (x[setting], y[setting]),
                textcoords="offset points",
                xytext=(5, 4),
                fontsize=7,
                color="0.35",
            )
        axes.set_xlabel(_with_direction(kind.cost))
        axes.xaxis.set_major_locator(MaxNLocator(5))
    # The panels share it: not before the last has its points.
    panels[0, 0].set_ylim(bottom=0)
    panels[0, 0].set_ylabel(_with_direction(kind.fairness))
    return figure


def _short_names(cells: pd.DataFrame) -> dict[str, str]:
    """Settings by their lambda, and by what else differs between them."""
    found = {text: json.loads(text) for text in cells.params.unique()}
    varied = [
        key
        for key in next(iter(found.values()))
        if key != "lam" and len({str(params.get(key)) for params in found.values()}) > 1
    ]
    lams = cells.groupby("params").lam.first()
    return {
        text: ", ".join([f"{lams[text]:g}", *(str(params.get(key)) for key in varied)])
        for text, params in found.items()
    }


def plot_terms(material: Material) -> Figure:
    """The two terms of the objective against steps at one lambda, a line per seed (FMC, Figure 10)."""
    kind = material.kind
    figure, panels = plt.subplots(1, 2, figsize=(9.6, 3.8), layout="constrained")
    chosen = material.cells[(material.cells.status == "ok") & (material.cells.lam <= kind.lam)]
    chosen = chosen[(chosen.lam == chosen.lam.max()) & (chosen.n_clusters == chosen.n_clusters.min())]
    figure.suptitle(material.title + material.of_method)
    for axes, term, name in zip(panels, ("clustering", "fairness"), (kind.cost, kind.fairness), strict=True):
        if chosen.empty:
            _say_why(axes, material.cells)
            continue
        for cell in chosen.itertuples():
            steps = material.steps[material.steps.key == cell.key].sort_values("step")
            axes.plot(steps.step, steps[term], color=COLOURS[0], alpha=0.5, linewidth=1)
        first = chosen.iloc[0]
        axes.set_xlabel(f"step ({_seeds(len(chosen))}, λ = {first.lam:g}, K = {first.n_clusters})")
        axes.set_ylabel(COLUMNS[name].label)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


PLOTS: dict[str, Callable[[Material], Figure]] = {"bands": plot_bands, "terms": plot_terms}
