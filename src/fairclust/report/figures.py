"""The figures, from the tidy scores, stored labels and prepared data: nothing is fitted here."""

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
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fairclust.bench.store import CellStore, atomic_write, read_table
from fairclust.datasets.errors import DatasetSkipped
from fairclust.datasets.store import PreparedDataset, load_prepared
from fairclust.report import charts
from fairclust.report.catalogue import FIGURES, PAPER_TABLES, FigureKind, Names
from fairclust.report.columns import COLUMNS, load_cells
from fairclust.report.redaction import redact_text
from fairclust.report.selection import OVERVIEW_LEVEL, best_starts, choose, reported_level
from fairclust.reported import load_reported

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
    axes.set_ylabel(COLUMNS[metric].label, color=colour)
    axes.tick_params(axis="y", colors=colour)


def _say_why(axes: Axes, cells: pd.DataFrame) -> None:
    _say(axes, choose(cells).note.partition("\n")[0] or "no cell has a lambda")


def _say(axes: Axes, reason: str, width: int = 50) -> None:
    axes.set_axis_off()
    text = "nothing to show\n" + "\n".join(wrap(reason, width))
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


@dataclass(frozen=True)
class Material:
    """What a plot is made of.

    Attributes
    ----------
    kind : FigureKind
    cells, steps : DataFrame
        Scores (with `cpu_seconds`) and outer steps of one data set, or of those that share the figure; of the
        kind's method if it has one.
    title : str
        The data set's name for readers.
    shown : Names
    plane : Path, optional
        The prepared data set, unscaled, where the plot shows points.
    stores : Path
        Folder of all stores of cells.
    methods : sequence of str
        All methods of the run, in the configuration's order: it decides colours and marks.
    """

    kind: FigureKind
    cells: pd.DataFrame
    steps: pd.DataFrame
    title: str
    shown: Names
    plane: Path | None = None
    stores: Path = Path()
    methods: Sequence[str] = ()

    def look(self, method: str) -> tuple[str, str]:
        """Colour and mark of a method, the same in all figures of a run and on the page."""
        return look((self.methods or self.shown.in_order(self.cells.method.unique())).index(method))

    @property
    def of_method(self) -> str:
        """The method that the figure is about, after a comma."""
        return f", {self.shown.method(self.kind.method)}" if self.kind.method else ""


def look(number: int) -> tuple[str, str]:
    """Colour and mark of a method by its place in the list, as on the page: different for 64 of them."""
    colour, shape = charts.look(number)
    return COLOURS[colour], MARKS[shape]


def _panels(material: Material) -> Iterator[tuple[Figure, Axes, pd.DataFrame]]:
    """A panel for each K, titled; with nothing to show it says why and is not handed out."""
    ks = sorted(material.cells.n_clusters.unique())
    n_columns = min(3, max(1, len(ks)))
    n_rows = max(1, -(-len(ks) // n_columns))
    size = (6.4 * n_columns, 3.8 * n_rows)
    figure, panels = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for axes in panels.flat[max(1, len(ks)) :]:
        axes.set_axis_off()
    for axes, k in zip(panels.flat, ks or [0], strict=False):
        cells = material.cells[material.cells.n_clusters == k]
        if (cells.status == "ok").any():
            axes.set_title(f"{material.title}{material.of_method}, K = {k}")
            yield figure, axes, cells
        else:
            axes.set_title(material.title + material.of_method)
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
    """Cost against fairness for every method of a data set; the best start of every setting.

    A line joins the settings that no other setting of the method beats in both; the others are faint. Hollow
    marks are the reported numbers. Of a graph without points the cost is the normalised cut.
    """
    fairness = material.kind.fairness
    sign = -1 if COLUMNS[fairness].direction == "lower" else 1
    for figure, axes, at_k in _panels(material):  # noqa: B007
        if at_k.empty:
            continue
        cost = material.kind.cost if at_k[material.kind.cost].notna().any() else "ncut"
        axes.set_xlabel(_with_direction(cost))
        axes.set_ylabel(_with_direction(fairness))
        axes.xaxis.set_major_locator(MaxNLocator(6))
        limit = _cost_limit(at_k, cost) if COLUMNS[cost].is_cost else np.inf
        reported = _reported_points(material, at_k)
        beyond, any_faint, methods = [], False, material.shown.in_order(at_k.method.unique())
        for number, method in enumerate(methods):
            best, name = best_starts(at_k[at_k.method == method]), material.shown.method(method)
            colour, mark = material.look(method)
            # Smaller and smaller, so that of marks in one place all are seen.
            size = 9 - 5 * number / max(1, len(methods) - 1)
            style: dict[str, Any] = {"color": colour, "marker": mark, "markersize": size}
            style |= {"markeredgecolor": "0.25", "markeredgewidth": 0.5}
            if (best[cost] > limit).any():
                beyond.append(f"{name} (up to {best[cost].max():,.0f})")
                best = best[best[cost] <= limit]
            best = best.sort_values([cost, fairness], ascending=[True, sign < 0])
            fair = sign * best[fairness]
            unbeaten = fair > fair.cummax().shift(fill_value=-np.inf)
            front, others = best[unbeaten], best[~unbeaten]
            if not COLUMNS[cost].is_cost:
                # Two measures of fairness: nothing to trade.
                front, others = best, best[:0]
            line = ":" if len(front) > 1 and COLUMNS[cost].is_cost else ""
            any_faint |= len(others) > 0
            axes.plot(others[cost], others[fairness], linestyle="", alpha=0.2, **style)
            axes.plot(front[cost], front[fairness], linestyle=line, linewidth=1, label=name, **style)
            if method in reported:
                style |= {"markersize": 12, "markerfacecolor": "none"}
                style |= {"markeredgecolor": colour, "markeredgewidth": 1.5}
                axes.plot(*reported[method], linestyle="", **style)
        # Beside the axes: a dozen methods would cover the points.
        axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1.02))
        notes = ["hollow: reported"] if len(reported) else []
        notes += ["faint: beaten by another setting of the same method"] if any_faint else []
        notes += ["dearer than shown: " + ", ".join(beyond)] if beyond else []
        text = "\n".join(wrap("; ".join(notes), 70))
        axes.text(0, -0.2, text, transform=axes.transAxes, fontsize=8, color="0.35", va="top")
    return figure


def _with_direction(metric: str) -> str:
    """A metric's name for an axis, and which values are better."""
    column = COLUMNS[metric]
    return column.label + (f" ({column.direction} is better)" if column.direction != "none" else "")


def _seeds(n_seeds: int) -> str:
    return f"a line for each of {n_seeds} seeds" if n_seeds > 1 else "one seed"


def _reported_points(material: Material, cells: pd.DataFrame) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The paper's numbers for the data set and K of `cells`: costs and fairness for each method."""
    kind, first = material.kind, cells.iloc[0]
    if not kind.table:
        return {}
    found = load_reported(PAPER_TABLES[kind.table].paper)
    found = found[(found.dataset == first.dataset) & (found.n_clusters == first.n_clusters)]
    costs, fairness = (found[found.metric == name] for name in (kind.cost, kind.fairness))
    # A method may stand in a table with several lambdas, and a paper may have two tables for the two.
    points = costs.merge(fairness, on=["method", "lam"], suffixes=("", "_fairness"))
    points = points.dropna(subset=["value", "value_fairness"])
    return {
        str(method): (of_method.value.to_numpy(float), of_method.value_fairness.to_numpy(float))
        for method, of_method in points.groupby("method")
    }


def _cost_limit(cells: pd.DataFrame, cost: str) -> float:
    """A little above the methods that have several settings: a lone control far off would squeeze them."""
    ok = cells[cells.status == "ok"]
    settings = ok.groupby("method").params.transform("nunique")
    highest = ok[settings > 1][cost].max()
    return np.inf if np.isnan(highest) else float(highest + 0.25 * abs(highest))


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
        axes.set_xlabel(f"outer step ({_seeds(len(chosen))}, λ = {lam:g})")
        axes.set_ylabel("Energy")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def plot_cost_by_k(material: Material) -> Figure:
    """Cost against K, with and without the fairness term (VFC, Figure 3)."""
    ok = material.cells[(material.cells.status == "ok") & material.cells.lam.notna()]
    figure, axes = plt.subplots(figsize=(5.6, 3.8))
    axes.set_title(material.title + material.of_method)
    if ok.empty:
        _say_why(axes, material.cells)
        return figure
    for number, (lam, cells) in enumerate(ok.groupby("lam")):
        grouped = cells.groupby("n_clusters")[material.kind.cost]
        (colour, mark), middle = look(number), grouped.median()
        axes.fill_between(middle.index, grouped.min(), grouped.max(), color=colour, alpha=0.18, linewidth=0)
        label = f"λ = {lam:g}" + (" (vanilla)" if lam == 0 else "")
        axes.plot(middle.index, middle, color=colour, marker=mark, label=label)
    axes.set_xlabel("K")
    axes.set_ylabel(COLUMNS[material.kind.cost].label)
    axes.legend(frameon=False)
    _footnote(axes, material.cells, ok)
    return figure


def _footnote(axes: Axes, cells: pd.DataFrame, ok: pd.DataFrame) -> None:
    left, seeds = len(cells) - len(ok), ok.seed.nunique()
    text = f"line: median of {seeds} seeds; band: lowest to highest" if seeds > 1 else "one seed"
    text += f"; {left} of {len(cells)} cells missing" if left else ""
    axes.text(0, -0.24, text, transform=axes.transAxes, fontsize=8, color="0.35")


def plot_clusters(material: Material) -> Figure:
    """The points of a plane: clusters by colour, groups by shape, a panel for each method (BFKM, Figure 6).

    The clusterings are those of the table that the kind names; of data that it does not have, the overview's.
    Points are shown unscaled, though the methods see them scaled.
    """
    spec = PAPER_TABLES[material.kind.table]
    listed = load_reported(spec.paper).query("table == @spec.table").method.unique()
    run = set(material.cells.method)
    methods = [method for method in [*listed, *spec.beyond] if method in run]
    n_columns = min(4, max(1, len(methods)))
    n_rows = max(1, -(-len(methods) // n_columns))
    size = (3.4 * n_columns, 3.6 * n_rows)
    figure, panels = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    figure.suptitle(f"{material.title}: colour is the cluster, shape the group")
    data, reason = _plane(material.plane)
    for axes in panels.flat[len(methods) :]:
        axes.set_axis_off()
    if data is None or not methods:
        _say(panels[0, 0], reason or "none of the table's methods was run", 28)
        return figure
    for axes, method in zip(panels.flat, methods, strict=False):
        axes.set_title(material.shown.method(str(method)), fontsize=10)
        cells = material.cells[material.cells.method == method]
        level = reported_level(spec, cells.dataset.iloc[0], str(method))
        choice = choose(cells, OVERVIEW_LEVEL) if level is None else choose(cells, level, spec.rule)
        if choice.cell is None:
            _say(axes, choice.note, 28)
            continue
        labels = _stored_labels(material.stores, choice.cell)
        if labels is None or len(labels) != len(data.X):
            _say(axes, "its labels are no longer in the store of cells", 28)
            continue
        for group in range(len(data.group_names)):
            of = data.groups == group
            axes.scatter(
                *data.X[of].T,
                c=[COLOURS[label % len(COLOURS)] for label in labels[of]],
                marker=MARKS[group % len(MARKS)],
                s=14,
                alpha=0.7,
                linewidths=0,
            )
        values = [
            f"{COLUMNS[name].label} {choice.cell[name]:.{COLUMNS[name].decimals}f}"
            for name in ("fairness_ratio", "sse")
        ]
        axes.set_xlabel("\n".join([", ".join(values), *wrap(choice.setting, 40)]), fontsize=8)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.set_aspect("equal", adjustable="datalim")
    shapes = [
        Line2D([], [], color="0.35", linestyle="", marker=MARKS[group % len(MARKS)], label=name)
        for group, name in enumerate(data.group_names)
    ]
    figure.legend(handles=shapes, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


def _plane(folder: Path | None) -> tuple[PreparedDataset | None, str]:
    """Data of two columns, or None and why."""
    if folder is None:
        return None, "the points were not prepared"
    try:
        data = load_prepared(folder)
    except DatasetSkipped as skipped:
        return None, redact_text(str(skipped))
    if data.X.shape[1] != 2:
        return None, f"the points have {data.X.shape[1]} features, not two"
    return data, ""


def _stored_labels(stores: Path, cell: pd.Series) -> np.ndarray | None:
    entry = CellStore(stores / cell.dataset / cell.method / f"k{cell.n_clusters}").get(cell.key)
    return None if entry is None else entry[1]


PLOTS: dict[str, Callable[[Material], Figure]] = {
    "front": plot_front,
    "lam_tradeoff": plot_lam_tradeoff,
    "convergence": plot_convergence,
    "cost_by_k": plot_cost_by_k,
    "clusters": plot_clusters,
}


def plot_figures(
    requests: Mapping[str, Sequence[str]],
    scores: Path,
    folder: Path,
    shown: Names,
    formats: Sequence[str],
    *,
    planes: Sequence[Path] = (),
    stores: Path = Path(),
) -> None:
    """Draw figures of the catalogue.

    Parameters
    ----------
    requests : mapping
        File stem to kind and data set, from `catalogue.figure_requests`.
    scores : Path
        The Parquet file of the scores; the outer steps, and what the cells cost, lie beside it.
    folder : Path
        Output.
    shown : Names
    formats : sequence of str
    planes : sequence of Path
        Prepared data sets, unscaled, in folders of their names: for figures that show points.
    stores : Path
        Folder of the stores of cells, by data set, method and K.
    """
    of_plane = {folder.name: folder for folder in planes}
    # Here, not above: those modules take what they draw with from this one.
    from fairclust.report.mixture_figures import PLOTS as MIXTURE_PLOTS
    from fairclust.report.spectral_figures import PLOTS as SPECTRAL_PLOTS

    plots = PLOTS | MIXTURE_PLOTS | SPECTRAL_PLOTS
    frame = load_cells(scores)
    methods = shown.in_order(frame.method.unique())
    steps = read_table(scores.with_name("steps.parquet"))
    for stem, (name, dataset) in requests.items():
        kind = FIGURES[name]
        mine = frame.dataset.str.startswith(kind.across) if kind.across else frame.dataset == dataset
        if kind.method:
            mine &= frame.method == kind.method
        if kind.methods:
            mine &= frame.method.isin(kind.methods)
        title, plane = shown.dataset(dataset), of_plane.get(dataset)
        material = Material(kind, frame[mine], steps, title, shown, plane, stores, methods)
        _save(plots[kind.plot](material), folder / stem, formats)
