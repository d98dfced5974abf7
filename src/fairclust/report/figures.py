"""The figures, from the tidy scores alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fairclust.bench.store import atomic_write, read_table
from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import FIGURES, FigureKind, Names
from fairclust.report.selection import best_starts, choose

# Okabe and Ito's palette: told apart by all common kinds of colour vision. Marks differ as well.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442"]
MARKS = ["o", "s", "^", "D", "v", "P", "X", "*"]
plt.rcParams.update(
    {
        "font.size": 11,
        "axes.spines.top": False,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "figure.dpi": 120,
        "savefig.bbox": "tight",
        # Dates and random ids in files would make every rerun look like a change.
        "svg.hashsalt": "fairclust",
    }
)


def _save(figure: Figure, stem: Path, formats: Sequence[str]) -> None:
    for kind in formats:
        metadata = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind, {})
        with atomic_write(stem.with_name(f"{stem.name}.{kind}")) as file:
            figure.savefig(file, format=kind, metadata=metadata, dpi=150)
    plt.close(figure)


def _band(axes: Axes, cells: pd.DataFrame, metric: str, colour: str, mark: str) -> None:
    grouped = cells.groupby("lam")[metric]
    middle = grouped.median()
    axes.fill_between(middle.index, grouped.min(), grouped.max(), color=colour, alpha=0.18, linewidth=0)
    axes.plot(middle.index, middle, color=colour, marker=mark, markersize=4)
    axes.set_ylabel(METRICS[metric].label, color=colour)
    axes.tick_params(axis="y", colors=colour)


def _say_why(axes: Axes, cells: pd.DataFrame) -> None:
    reason = choose(cells).note.partition("\n")[0] or "no cell has a lambda"
    axes.set_axis_off()
    axes.text(0.5, 0.5, "nothing to show\n" + "\n".join(wrap(reason, 50)), ha="center", va="center")


@dataclass(frozen=True)
class Material:
    """What a plot is made of.

    Attributes
    ----------
    kind : FigureKind
    cells, steps : DataFrame
        Scores and outer steps of one data set, of the kind's method if it has one.
    title : str
        The data set's name for readers.
    shown : Names
    """

    kind: FigureKind
    cells: pd.DataFrame
    steps: pd.DataFrame
    title: str
    shown: Names


def _panels(material: Material) -> Iterator[tuple[Figure, Axes, pd.DataFrame]]:
    """A panel for each K, titled; with nothing to show it says why and is not handed out."""
    ks = sorted(material.cells.n_clusters.unique())
    size = (5.6 * max(1, len(ks)), 3.8)
    figure, panels = plt.subplots(1, max(1, len(ks)), figsize=size, squeeze=False)
    for axes, k in zip(panels[0], ks or [0], strict=True):
        cells = material.cells[material.cells.n_clusters == k]
        if (cells.status == "ok").any():
            axes.set_title(f"{material.title}, K = {k}")
            yield figure, axes, cells
        else:
            axes.set_title(material.title)
            _say_why(axes, cells)
            yield figure, axes, cells[:0]


def plot_lam_tradeoff(material: Material) -> Figure:
    """Cost and fairness error against lambda (VFC, Figure 2).

    Lines are medians over seeds, bands run from the smallest to the largest.
    """
    for figure, axes, cells in _panels(material):  # noqa: B007
        ok = cells[(cells.status == "ok") & cells.lam.notna()]
        if ok.empty:
            continue
        axes.set_xlabel("λ")
        axes.xaxis.set_major_locator(MaxNLocator(6))
        positive = ok.lam[ok.lam > 0]
        if len(positive) and positive.max() > 100 * positive.min():
            axes.set_xscale("symlog", linthresh=positive.min())
        _band(axes, ok, material.kind.cost, COLOURS[0], MARKS[0])
        right = axes.twinx()
        right.grid(False)
        _band(right, ok.replace({"fairness_error": {np.inf: np.nan}}), "fairness_error", COLOURS[1], MARKS[1])
        right.set_ylim(bottom=0)
        _footnote(axes, cells, ok)
    return figure


def plot_front(material: Material) -> Figure:
    """Cost against balance for every method of a data set; the best start of every setting."""
    for figure, axes, at_k in _panels(material):  # noqa: B007
        if at_k.empty:
            continue
        axes.set_xlabel(METRICS["sse"].label)
        axes.set_ylabel(METRICS["balance"].label)
        limit = _cost_limit(at_k)
        beyond = []
        for number, (method, cells) in enumerate(at_k.groupby("method")):
            best, name = best_starts(cells), material.shown.method(str(method))
            style: dict[str, Any] = {
                "color": COLOURS[number % len(COLOURS)],
                "marker": MARKS[number % len(MARKS)],
            }
            line = ":" if len(best) > 1 else ""
            if (best.sse > limit).any():
                beyond.append(f"{name} (up to {best.sse.max():,.0f})")
                best = best[best.sse <= limit]
            axes.plot(best.sse, best.balance, linestyle=line, linewidth=1, label=name, **style)
        axes.legend(frameon=False, fontsize=9)
        if beyond:
            text = "\n".join(wrap("dearer than shown: " + ", ".join(beyond), 70))
            axes.text(0, -0.2, text, transform=axes.transAxes, fontsize=8, color="0.35", va="top")
    return figure


def _cost_limit(cells: pd.DataFrame) -> float:
    """A little above the methods that have several settings: a lone control far off would squeeze them."""
    ok = cells[cells.status == "ok"]
    settings = ok.groupby("method").params.transform("nunique")
    highest = ok[settings > 1].sse.max()
    return np.inf if np.isnan(highest) else 1.25 * float(highest)


def plot_convergence(material: Material) -> Figure:
    """Energy against outer steps, one line per seed, at the largest lambda (VFC, Figure 1)."""
    for figure, axes, cells in _panels(material):  # noqa: B007
        if cells.empty:
            continue
        lam = cells.lam.max()
        chosen = cells[(cells.lam == lam) & (cells.status == "ok")]
        for cell in chosen.itertuples():
            steps = material.steps[material.steps.key == cell.key].sort_values("step")
            axes.plot(steps.step, steps.objective, color=COLOURS[0], alpha=0.5, marker=".", linewidth=1)
        axes.set_xlabel(f"outer step (one line for each of {len(chosen)} seeds, λ = {lam:g})")
        axes.set_ylabel("Energy")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_cost_by_k(material: Material) -> Figure:
    """Cost against K, with and without the fairness term (VFC, Figure 3)."""
    ok = material.cells[(material.cells.status == "ok") & material.cells.lam.notna()]
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    axes.set_title(material.title)
    if ok.empty:
        _say_why(axes, material.cells)
        return figure
    for number, (lam, cells) in enumerate(ok.groupby("lam")):
        grouped = cells.groupby("n_clusters")[material.kind.cost]
        colour, middle = COLOURS[number % len(COLOURS)], grouped.median()
        axes.fill_between(middle.index, grouped.min(), grouped.max(), color=colour, alpha=0.18, linewidth=0)
        label = f"λ = {lam:g}" + (" (vanilla)" if lam == 0 else "")
        axes.plot(middle.index, middle, color=colour, marker=MARKS[number % len(MARKS)], label=label)
    axes.set_xlabel("K")
    axes.set_ylabel(METRICS[material.kind.cost].label)
    axes.legend(frameon=False)
    _footnote(axes, material.cells, ok)
    return figure


def _footnote(axes: Axes, cells: pd.DataFrame, ok: pd.DataFrame) -> None:
    left, seeds = len(cells) - len(ok), ok.seed.nunique()
    text = f"line: median of {seeds} seeds; band: lowest to highest" if seeds > 1 else "one seed"
    text += f"; {left} of {len(cells)} cells missing" if left else ""
    axes.text(0, -0.24, text, transform=axes.transAxes, fontsize=8, color="0.35")


PLOTS: dict[str, Callable[[Material], Figure]] = {
    "front": plot_front,
    "lam_tradeoff": plot_lam_tradeoff,
    "convergence": plot_convergence,
    "cost_by_k": plot_cost_by_k,
}


def plot_figures(
    requests: Mapping[str, Sequence[str]],
    scores: Path,
    folder: Path,
    shown: Names,
    formats: Sequence[str],
) -> None:
    """Draw figures of the catalogue.

    Parameters
    ----------
    requests : mapping
        File stem to kind and data set, from `catalogue.figure_requests`.
    scores : Path
        The Parquet file of the scores; the outer steps lie beside it.
    folder : Path
        Output.
    shown : Names
    formats : sequence of str
    """
    frame = read_table(scores)
    steps = read_table(scores.with_name("steps.parquet"))
    for stem, (name, dataset) in requests.items():
        kind = FIGURES[name]
        mine = frame.dataset == dataset
        if kind.method:
            mine &= frame.method == kind.method
        material = Material(kind, frame[mine], steps, shown.dataset(dataset), shown)
        _save(PLOTS[kind.plot](material), folder / stem, formats)
