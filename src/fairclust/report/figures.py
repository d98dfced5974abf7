"""The figures of papers and of a run, drawn from cells, their steps and their labels. No method is fitted here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from fairclust.datasets.store import load_prepared
from fairclust.fronts import front_of
from fairclust.looks import COLOURS, MARKS, in_matplotlib, look
from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import COLUMNS, TIMES, column_of
from fairclust.pipeline.papers import FigureSpec
from fairclust.pipeline.scores import labels_of
from fairclust.plot import in_figure
from fairclust.report.drawing import BY_ROWS, SOFT, FigureData, NothingToShow, Panel, Plot, Sheet
from fairclust.report.material import Material
from fairclust.report.render import metric_label, number
from fairclust.report.selection import (
    INSTANCE,
    SETTING,
    best_starts,
    choose,
    first_line,
    settings_table,
    varied,
    where,
    whole_settings,
)

_COST_OF_GRAPHS = "ncut"
_WITHOUT_ZERO = (*TIMES, "nll", "objective", "sse", "kmedians_cost", "ncut")
"""Columns whose axis need not begin at zero."""
# More points than this are drawn as a bitmap in a PDF, because single shapes would take megabytes.
_MAX_SHAPES = 5_000


def draw_front(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """`x` (a cost) against each of `y` (fairness metrics), with a panel for every data set and K.

    A mark is the mean of a setting over its starts. A line joins the settings of a method that no other
    setting of the method beats in both metrics; the other settings are faint. Hollow marks are the reported values.
    """
    cells, x, y = panel.cells, material.spec.x, panel.y
    if _finite(cells, x).empty and len(_finite(cells, _COST_OF_GRAPHS)):
        x = _COST_OF_GRAPHS
    is_cost = column_of(x).is_cost
    ok = _whole(material, sheet, panel, x, y)
    x_sd, y_sd, lower = f"{x} sd", f"{y} sd", column_of(y).direction == "lower"
    settings = settings_table(ok, [x, y], with_sd=True).reset_index().fillna({x_sd: 0.0, y_sd: 0.0})
    settings = settings.sort_values([x, y], ascending=[True, lower], ignore_index=True)
    settings = front_of(settings, x, y, higher=not lower)
    reported = _reported(material, panel, x).merge(_reported(material, panel, y), on=["method", "lam"])
    # A quarter above the highest cost on the fronts of the methods with several settings, and that the paper reports
    # for these. Without this limit, one distant reference method, or a setting that another one of its method beats,
    # would squeeze all others.
    fronts = settings[settings.several & settings.own]
    highest = max(fronts.x.max(), reported.value_x[reported.method.isin(fronts.method)].max())
    limit = np.inf if not is_cost or pd.isna(highest) else highest + 0.25 * abs(highest)
    methods = material.methods(ok)
    for place, method in enumerate(methods):
        points = settings[settings.method == method]
        name = material.names.method(method)
        colour, mark = material.look(method)
        # Later marks are smaller, so that marks at the same place are all visible.
        style: dict[str, Any] = {
            "color": colour, "marker": mark, "markersize": 8 - 3 * place / max(1, len(methods) - 1),
            "markeredgecolor": "0.25", "markeredgewidth": 0.5,
        }  # fmt: skip
        beyond = points[points.x > limit]
        if len(beyond):
            detail = f"{len(beyond)}, up to {number(beyond.x.max(), column_of(x).decimals)}"
            sheet.note(f"settings of {name} that cost more than the panel shows", panel, detail)
            points = points[points.x <= limit]
        # If both axes show fairness, there is no trade-off with a cost, so no setting is drawn as beaten.
        front = points[points.own] if is_cost else points
        others = points.drop(front.index)
        if len(others):
            sheet.note("faint: settings that another setting of the same method beats in both metrics")
        axes.plot(others.x, others.y, linestyle="", alpha=0.2, **style)
        bars: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.8, "alpha": 0.45}
        axes.errorbar(front.x, front.y, _reach(front.y, front[y_sd], y), front[x_sd], **bars)
        joined = ":" if is_cost and len(front) > 1 else ""
        line = axes.plot(front.x, front.y, linestyle=joined, linewidth=1, **style)[0]
        sheet.legend.setdefault(name, line)
        printed = reported[reported.method == method]
        if len(far := printed[printed.value_x > limit]):
            sheet.note(
                f"reported for {name}, beyond the panel",
                panel,
                number(far.value_x.max(), column_of(x).decimals),
            )
            printed = printed[printed.value_x <= limit]
        if len(printed):
            axes.plot(
                printed.value_x, printed.value_y, linestyle="", marker=mark, markersize=11, markerfacecolor="none",
                markeredgecolor=colour, markeredgewidth=1.5,
            )  # fmt: skip
            sheet.note("hollow: reported by the paper")
    axes.set(xlabel=_axis_label(x), ylabel=_axis_label(y))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(6))
    _widen(axes, y)
    _note_starts(sheet, cells, ok, "marks")


def _widen(axes: Axes, y: str) -> None:
    """Make the axes at least a twentieth as long as their numbers are large, so that ticks have few digits.

    The vertical axis does not go far below the least value that the metric `y` can have.
    """
    for limits, set_limits in ((axes.get_xlim(), axes.set_xlim), (axes.get_ylim(), axes.set_ylim)):
        lacking = 0.05 * max(map(abs, limits)) - (limits[1] - limits[0])
        if lacking > 0:
            set_limits(limits[0] - lacking / 2, limits[1] + lacking / 2)
    least, top = METRICS[y].range[0] if y in METRICS else -np.inf, axes.get_ylim()[1]
    axes.set_ylim(bottom=max(axes.get_ylim()[0], least - 0.04 * (top - least)))


def _whole(material: FigureData, sheet: Sheet, panel: Panel, *names: str) -> pd.DataFrame:
    """The `whole_settings` with finite means of `names`; notes on the others, and NothingToShow if none is left."""
    _usable(panel.cells, *names)
    ok = panel.cells[panel.cells.status == "ok"].dropna(subset=list(names))
    whole = whole_settings(ok)
    finite = np.isfinite(whole[list(names)].astype(float)).all(axis=1)
    kept = whole[finite.groupby([whole[name] for name in SETTING]).transform("all")]
    lacking = "whose mean is infinite, because a group is missing from a cluster"
    for before, after, why in ((ok, whole, "that leave clusters empty"), (whole, kept, lacking)):
        numbers = (settings.drop_duplicates(SETTING).groupby("method").size() for settings in (before, after))
        for method, (n, n_kept) in pd.concat(numbers, axis=1).fillna(0).astype(int).iterrows():
            if n_kept < n:
                name = material.names.method(str(method))
                sheet.note(f"settings of {name} {why}", panel, f"{n - n_kept} of {n}")
        if after.empty:
            raise NothingToShow(f"there are only settings {why}")
    return kept


def _reach(mean: pd.Series, sd: pd.Series, metric: str) -> np.ndarray:
    """A standard deviation to each side of a mean, but not beyond the values that the metric can have: shape (2, n)."""
    low, high = METRICS[metric].range if metric in METRICS else (-np.inf, np.inf)
    return np.clip([np.minimum(sd, mean - low), np.minimum(sd, high - mean)], 0, None)


def _reported(material: FigureData, panel: Panel, metric: str) -> pd.DataFrame:
    """The values that the paper reports for a metric: columns method, lam and value."""
    place = {"dataset": panel.dataset, "n_clusters": panel.k, "metric": metric}
    values = where(material.reported, **place).dropna(subset=["value"])
    # Some papers report the cost and the fairness in different tables. A figure may also refer to no table.
    mine = where(values, table=material.spec.table)
    values = (mine if len(mine) else values) if material.spec.table else values[:0]
    return values[["method", "lam", "value"]]


def draw_along_lam(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """Each of `y` against lambda, with a panel for each data set, K and method: means with bands, and one start.

    Where some starts have an infinite value, the mean has a gap.
    """
    y, (colour, _) = panel.y, material.look(panel.method)
    ok = _usable(panel.cells, "lam")
    ok = ok[ok[y].notna()].astype({y: float})
    axes.set(xlabel="λ", ylabel=_axis_label(y))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    positive = ok.lam[ok.lam > 0]
    if len(positive) and positive.max() > 100 * positive.min():
        axes.set_xscale("symlog", linthresh=positive.min())
        # Matplotlib would also mark a power of ten below the smallest lambda, over the zero.
        powers = np.arange(np.ceil(np.log10(positive.min())), np.floor(np.log10(positive.max())) + 1)
        axes.set_xticks([0, *10.0**powers])
    style: dict[str, Any] = {"color": colour, "linestyle": "-", "marker": "."}
    if ok.seed.nunique() > 1:
        has_mean = np.isfinite(ok[y]).groupby(ok.lam).transform("all")
        _draw_band(axes, ok.assign(**{y: ok[y].where(has_mean)}), "lam", y, colour, "")
        sheet.note("dashed: one start")
        style |= {"linestyle": "--", "marker": ""}
    one = ok[ok.seed == ok.seed.min()].sort_values("lam")
    axes.plot(one.lam, one[y].replace(np.inf, np.nan), linewidth=0.9, alpha=0.8, **style)
    endless = np.isinf(ok[y]).groupby(ok.lam).sum()
    if len(endless := endless[endless > 0]):
        lams = f"{endless.index[0]:g}" + (f" to {endless.index[-1]:g}" if len(endless) > 1 else "")
        most = f"{endless.max()} of {ok.groupby('lam').size().max()}"
        why = "because a group is missing from a cluster, so that the mean has a gap"
        sheet.note(f"{metric_label(y)} is infinite, {why}", panel, f"in up to {most} starts at λ = {lams}")
    _widen(axes, y)
    _note_starts(sheet, panel.cells, ok)


def draw_lines(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """Each of `y` against `x`, K or the number of rows, with a line for each method and lambda.

    A figure that names a lambda shows only this one, or else the largest below it. Otherwise a method has a line for
    every lambda that ran with the most values of `x`. Fits that leave clusters empty are left out, as in claims: their
    cost is that of a smaller K. Of several settings at a lambda, the one with the lowest mean objective is used.
    """
    x, y, limit = str(material.spec.x), panel.y, material.spec.lam
    ok = _usable(panel.cells, x, y)
    whole = _whole(material, sheet, panel, x, y).index
    drawn = []
    for method in material.methods(ok):
        mine = ok[ok.method == method]
        if limit is not None:
            mine = pd.concat([_at_lam(cells, limit) for _, cells in mine.groupby(INSTANCE)])
        places = mine.groupby("lam", dropna=False)[x].transform("nunique")
        shown = mine[(places == places.max()) & mine.index.isin(whole)]
        for place, (lam, fits) in enumerate(shown.groupby("lam", dropna=False)):
            each = [cells for _, cells in fits.groupby(INSTANCE)]
            if any(cells.params.nunique() > 1 for cells in each):
                sheet.note("if a method has several settings, the one with the lowest objective is shown")
            drawn.append(pd.concat([choose(cells).cells for cells in each]))
            # Without the fairness term, a method is a plain one, which is black everywhere.
            style = in_matplotlib(look("KMeans")) if lam == 0 else material.look(method)
            line = _draw_band(axes, drawn[-1], x, y, *style)
            line.set_linestyle(("-", "--", ":")[max(0, place - 1) % 3])
            name = material.names.method(method) + (f", λ = {lam:g}" if pd.notna(lam) else "")
            sheet.legend.setdefault(name, line)
    if not drawn:
        which = "" if limit is None else f" with λ up to {limit:g}"
        raise NothingToShow(f"no setting{which} was run that uses all clusters")
    axes.set_ylabel(_axis_label(y))
    if y not in _WITHOUT_ZERO:
        axes.set_ylim(bottom=0)
    _note_starts(sheet, panel.cells, pd.concat(drawn))
    if x == BY_ROWS:
        axes.set(xlabel="Rows, or nodes of a graph", xscale="log")
        if y in TIMES:
            axes.set_yscale("log")
    else:
        axes.set_xlabel("K")
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def draw_steps(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """What the estimator records, against its outer steps, with a line for each start."""
    cells, y = panel.cells, panel.y
    # If several settings have this lambda, the one with the lowest mean objective is drawn.
    ok = choose(_at_lam(cells[cells.status == "ok"], material.spec.lam)).cells
    steps = material.steps[material.steps.key.isin(ok.key)]
    if ok.empty:
        raise NothingToShow(_why_empty(cells, [y]))
    if y not in steps or steps[y].isna().all():
        raise NothingToShow(f"the method records no {metric_label(y)} at its steps")
    colour, mark = material.look(str(ok.method.iloc[0]))
    for key in ok.key:
        line = steps[steps.key == key].sort_values("step").dropna(subset=[y])
        style: dict[str, Any] = {"marker": mark, "markersize": 3} if len(line) <= 40 else {}
        axes.plot(line.step, line[y].astype(float), color=colour, alpha=0.55, linewidth=1, **style)
    lam = ok.lam.iloc[0]
    step = "step" + (f", λ = {lam:g}" if pd.notna(lam) else "")
    axes.set(xlabel=step, ylabel=in_figure(metric_label(y)))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    sheet.note("each line is one start")


def _start(material: FigureData, panel: Panel) -> tuple[pd.Series, str]:
    """The start of the method that is nearest to what the paper reports in the metrics of `y`, and its setting.

    If the paper reports nothing, it is the start with the lowest objective. A figure that refers to a table takes it
    from all settings. Other figures take it from the settings with the lambda that they name, or the largest one.
    """
    spec, cells = material.spec, panel.cells
    ok = cells[cells.status == "ok"]
    apart = pd.Series(0.0, ok.index)
    for metric in spec.y:
        values = _reported(material, panel, metric)
        for value in values.value[values.method == panel.method][:1]:
            apart += ((ok[metric].astype(float) - value) / (abs(value) or 1.0)) ** 2
    if apart.any():
        nearest = ok.loc[apart.idxmin()]
        return nearest, varied(str(nearest.params), ok.params.unique())
    choice = choose(cells if spec.table and spec.lam is None else _at_lam(cells, spec.lam))
    if choice.cells.empty:
        raise NothingToShow(choice.note)
    return best_starts(choice.cells).iloc[0], choice.setting


def draw_clusters(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """The points of data sets with two features: the colour is the cluster and the shape is the group.

    There is a panel for each data set and method, with the metrics of `y` below it. The points are drawn unscaled,
    although the methods see them scaled.
    """
    near = ": of all settings and starts of a method, the one nearest to the reported values"
    sheet.note("colour is the cluster, shape is the group" + (near if material.spec.table else ""))
    cell, setting = _start(material, panel)
    data = load_prepared(material.planes[panel.dataset])
    if data.X.shape[1] != 2:
        raise NothingToShow(f"the points have {data.X.shape[1]} features, not two")
    labels = labels_of(cell.path, str(cell.key))
    style: dict[str, Any] = {"s": 10, "alpha": 0.7, "linewidths": 0, "rasterized": len(labels) > _MAX_SHAPES}
    for code, group in enumerate(data.group_names):
        rows, mark = data.groups == code, MARKS[code % len(MARKS)]
        colours = [COLOURS[label % len(COLOURS)] for label in labels[rows]]
        axes.scatter(data.X[rows, 0], data.X[rows, 1], c=colours, marker=mark, **style)
        sheet.legend.setdefault(f"group {group}", Line2D([], [], color=SOFT, linestyle="", marker=mark))
    axes.set(xticks=[], yticks=[])
    axes.set_aspect("equal", adjustable="datalim")
    values = [
        f"{metric_label(name)} {cell[name]:,.{COLUMNS[name].decimals}f}"
        for name in material.spec.y or ("fairness_ratio", "sse")
        if name in cell and pd.notna(cell[name])
    ]
    below = "\n".join([", ".join(values), *wrap(setting, 32)[:2]])
    axes.set_xlabel(in_figure(below), fontsize=7)


def draw_group_shares(material: FigureData, sheet: Sheet, axes: Axes, panel: Panel) -> None:
    """The groups' shares in every cluster and in the data, with a panel for each data set, K and method."""
    sheet.note("below the bars: rows of the cluster; each panel shows the start with the lowest objective")
    cell, _ = _start(material, panel)
    lam = f", λ = {cell.lam:g}" if pd.notna(cell.lam) else ""
    sheet.set_title(axes, panel.title + lam)
    counts = pd.DataFrame(json.loads(cell.counts), dtype=float)
    counts = counts[counts.sum(axis=1) > 0]
    names = ["all", *(f"{size:,.0f}" for size in counts.sum(axis=1))]
    counts = pd.concat([counts.sum().to_frame().T, counts]).set_axis(names)
    # Groups of several data sets have the same colours, so that the legend says whose groups they are.
    of_data = f"{material.names.dataset(panel.dataset)}: " if len(material.spec.datasets) > 1 else ""
    # Bars are placed by number and not by the text below them, because two clusters may have as many rows.
    places, below = np.arange(len(names)), np.zeros(len(names))
    for code, (group, share) in enumerate(counts.div(counts.sum(axis=1), axis=0).items()):
        bars = axes.bar(places, share, bottom=below, color=COLOURS[code % len(COLOURS)])
        below = below + share.to_numpy()
        sheet.legend.setdefault(f"{of_data}{group}", bars)
    axes.set_xticks(places, names)
    axes.tick_params(axis="x", labelsize=7, labelrotation=90 if len(names) > 6 else 0)
    axes.set(ylabel="Share of the groups", ylim=(0, 1))
    axes.grid(False)


def _why_empty(cells: pd.DataFrame, names: Iterable[str]) -> str:
    """Why cells have nothing to show of the columns `names`."""
    if cells.empty:
        return "no cell was run"
    if not (cells.status == "ok").any():
        return f"{cells.status.iloc[0]}: {first_line(cells.reason.iloc[0])}"
    return f"no cell has a finite value of {', '.join(map(metric_label, names))}"


def _usable(cells: pd.DataFrame, *names: str) -> pd.DataFrame:
    """The `_finite` cells; NothingToShow if there is none."""
    ok = _finite(cells, *names)
    if ok.empty:
        raise NothingToShow(_why_empty(cells, names))
    return ok


def _finite(cells: pd.DataFrame, *names: str) -> pd.DataFrame:
    """Cells with status 'ok' and with finite values in all columns of `names`."""
    ok = cells[cells.status == "ok"]
    return ok[np.isfinite(ok.reindex(columns=list(names)).astype(float)).all(axis=1)]


def _at_lam(cells: pd.DataFrame, limit: float | None) -> pd.DataFrame:
    """Cells of one method at its largest lambda up to the limit; all cells if the method has no lambda."""
    lams = cells.lam.dropna()
    if lams.empty:
        return cells
    below = lams if limit is None else lams[lams <= limit * (1 + 1e-9)]
    return cells[cells.lam == below.max()]


def _draw_band(axes: Axes, cells: pd.DataFrame, by: str, name: str, colour: str, mark: str) -> Any:
    """A line of the means over the starts, with a band of one standard deviation, over `by`; returns the line."""
    grouped = cells.groupby(by)[name]
    mean, sd = grouped.mean(), grouped.std(ddof=1).fillna(0.0)
    x = mean.index.to_numpy(float)
    down, up = _reach(mean, sd, name)
    axes.fill_between(x, mean - down, mean + up, color=colour, alpha=0.18, linewidth=0)
    return axes.plot(x, mean, color=colour, marker=mark, markersize=4, linewidth=1.2)[0]


def _note_starts(sheet: Sheet, cells: pd.DataFrame, ok: pd.DataFrame, what: str = "lines") -> None:
    """Note the number of starts behind the means, and missing cells."""
    sheet.starts.setdefault(what, set()).update(ok.groupby(SETTING).seed.nunique())
    bad = int((cells.status != "ok").sum())
    if bad:
        sheet.note(f"{bad:,} of {len(cells):,} cells are missing")


def _axis_label(name: str) -> str:
    """A column's name for an axis, and which values are better, escaped for matplotlib."""
    direction = column_of(name).direction
    return in_figure(metric_label(name) + (f" ({direction} is better)" if direction != "none" else ""))


PLOTS = {
    # A data set and K with at most two methods, as in a sweep over K, allows few comparisons.
    "front": Plot(draw_front, (3.7, 2.9), metrics=(), least_methods=3),
    "along_lam": Plot(draw_along_lam, (3.1, 2.5), methods=True, metrics=()),
    "lines": Plot(draw_lines, (3.5, 2.7), ks="joined", metrics=()),
    "steps": Plot(draw_steps, (3.0, 2.4), ks="first", methods=True, metrics=("objective",)),
    "clusters": Plot(
        draw_clusters, (1.55, 1.4), ks="first", left=0.12, methods=True, per_row=8, in_rows=True
    ),
    "group_shares": Plot(draw_group_shares, (3.0, 2.4), ks="first", methods=True),
}
"""The plots that a figure of a paper can name."""


def make_figure(material: Material, spec: FigureSpec, stem: Path, formats: Sequence[str]) -> None:
    """Draw a figure and write it as `stem` with each of the endings in `formats` (png, pdf, svg)."""
    FigureData(**vars(material), spec=spec).draw(PLOTS[spec.plot]).save(stem, formats)
