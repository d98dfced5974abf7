"""The report of `fairclust front` as one HTML file that needs no network: a table of settings, and their fronts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
import pandas as pd

from fairclust.cli.fitting import RawTable
from fairclust.cli.page import again_part, answer_list, columns_part, document, table_part, title
from fairclust.fronts import front_of, tick_text, ticks
from fairclust.looks import COLOURS, SHAPES, look
from fairclust.messages import count
from fairclust.metrics.table import METRICS
from fairclust.report.render import number

_WIDTH, _HEIGHT = 440, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 430, 14, 256


def front_page(
    points: pd.DataFrame,
    cells: Sequence[Sequence[str]],
    said: Sequence[str],
    raw: RawTable,
    notes: Sequence[str],
    words: Sequence[str],
    table: str,
) -> str:
    """The page: answer, charts, a table of all settings, columns, and how to make it again.

    `points` has a row for each setting, and `cells` the same as text below a head.
    """
    numbers, groups = sorted(points.n_clusters.unique()), len(set(raw.crossed))
    over_k = cells[0][1] == "K"
    many = (
        f"{numbers[0]} to {numbers[-1]} clusters" if over_k else count(int(points.n_clusters[0]), "cluster")
    )
    facts = (
        f"{count(len(points), 'clustering')} with {many}, {count(len(raw.X), 'row')}, "
        f"{count(len(raw.preparation.features), 'column')} clustered by, {count(groups, 'group')}"
    )
    parts = [
        answer_list(said),
        _over_k(points) if over_k else _fronts(points),
        _settings(points, cells, over_k=over_k),
        columns_part(raw.preparation, raw.columns, notes),
        again_part(words),
    ]
    what = "How many clusters" if over_k else "What fairness costs"
    return document(f"{what}: {title(table)}", facts, parts)


def _fronts(points: pd.DataFrame) -> str:
    """Cost against two metrics of fairness."""
    plain = points.increase.notna().all()
    points = points.assign(cost=100 * points.increase if plain else points.sse)
    label = "cost above k-means, %" if plain else "SSE (lower is better)"
    charts = []
    for name in ("balance", "delta"):
        metric = METRICS[name]
        front = front_of(points, "cost", name, higher=metric.direction == "higher")
        x0, x1, y0, y1 = front.window(bounded=bool(np.isfinite(metric.range[1])))
        drawn = front.points.assign(joined=front.points.own, strong=front.points.best)
        labels = (label, f"{metric.label} ({metric.direction} is better)")
        charts.append(_chart(drawn, (x0, x1, y0, y1), labels))
    return (
        "<h2>The cost of fairness</h2><p>A mark is a setting of a method. Dark marks are on the front: no setting is "
        "cheaper and at least as fair. Pale marks are beaten by another setting. A line joins the settings of a method "
        f"that no other setting of this method beats.</p><div class=charts>{''.join(charts)}</div>"
        f"{_key(points)}"
    )


def _over_k(points: pd.DataFrame) -> str:
    """Cost, fairness and silhouette over the number of clusters."""
    charts = []
    names = {
        name: f"{METRICS[name].label} ({METRICS[name].direction} is better)" for name in ("sse", "balance")
    }
    for name, label in (names | {"silhouette": "Silhouette (higher is better)"}).items():
        drawn = points.assign(x=points.n_clusters, y=points[name], joined=points[name].notna(), strong=True)
        y0, y1 = drawn.y.min(), drawn.y.max()
        pad = 0.06 * (y1 - y0) or 0.05
        edges = (drawn.x.min() - 0.3, drawn.x.max() + 0.3, y0 - pad, y1 + pad)
        charts.append(_chart(drawn, edges, ("number of clusters", label)))
    return (
        "<h2>Numbers of clusters</h2><p>The silhouette says how far clusters are apart.</p>"
        f"<div class=charts>{''.join(charts)}</div>{_key(points)}"
    )


def _chart(points: pd.DataFrame, edges: tuple[float, float, float, float], labels: tuple[str, str]) -> str:
    """Marks at x and y within the edges: pale unless `strong`, and lines through those that are `joined`."""
    x0, x1, y0, y1 = edges
    inside = points[points.x.between(x0, x1) & points.y.between(y0, y1)].sort_values("x", kind="stable")
    across = (_LEFT + (inside.x - x0) / (x1 - x0) * (_RIGHT - _LEFT)).round(1)
    up = (_BOTTOM - (inside.y - y0) / (y1 - y0) * (_BOTTOM - _TOP)).round(1)
    inside = inside.assign(across=across, up=up)
    grid, words, marks = [], [], []
    for value in ticks(x0, x1):
        at = _LEFT + (value - x0) / (x1 - x0) * (_RIGHT - _LEFT)
        grid.append(f"M{at:.1f} {_TOP}V{_BOTTOM}")
        words.append(f'<text x="{at:.1f}" y="{_BOTTOM + 16}" class="x">{tick_text(value)}</text>')
    for value in ticks(y0, y1):
        at = _BOTTOM - (value - y0) / (y1 - y0) * (_BOTTOM - _TOP)
        grid.append(f"M{_LEFT} {at:.1f}H{_RIGHT}")
        words.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" class="y">{tick_text(value)}</text>')
    for method, rows in inside.groupby("method", sort=False):
        colour, shape = look(str(method))
        path = " ".join(f"{of.across:g},{of.up:g}" for of in rows[rows.joined].itertuples())
        if path.count(","):
            marks.append(f'<polyline points="{path}" style="stroke:{COLOURS[colour]}"/>')
        for of in rows.sort_values("strong").itertuples():
            told = escape(f"{method} {of.setting}: {labels[0]} {of.x:.4g}, {labels[1]} {of.y:.4g}")
            marks.append(
                f'<path d="{SHAPES[shape]}" transform="translate({of.across:g} {of.up:g})" fill="{COLOURS[colour]}"'
                f"{'' if of.strong else ' class=pale'}><title>{told}</title></path>"
            )
    beyond = len(points) - len(inside)
    note = f"<p class=quiet>{count(beyond, 'setting')} beyond the edges: see the table.</p>" if beyond else ""
    return (
        f'<div><svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(" against ".join(labels[::-1]))}">'
        f'<path class="grid" d="{"".join(grid)}"/>{"".join(words)}{"".join(marks)}'
        f'<text x="{(_LEFT + _RIGHT) // 2}" y="{_HEIGHT - 8}" class="x">{escape(labels[0])}</text>'
        f'<text transform="translate(12 {(_TOP + _BOTTOM) // 2}) rotate(-90)" class="x">{escape(labels[1])}</text>'
        f"</svg>{note}</div>"
    )


def _key(points: pd.DataFrame) -> str:
    """The marks of the methods."""
    listed = []
    for method in dict.fromkeys(points.method):
        colour, shape = look(str(method))
        mark = f'<path d="{SHAPES[shape]}" fill="{COLOURS[colour]}"/>'
        listed.append(f'<li><svg viewBox="-7 -7 14 14" aria-hidden="true">{mark}</svg>{escape(method)}</li>')
    return f"<ul class=key>{''.join(listed)}</ul>"


def _settings(points: pd.DataFrame, cells: Sequence[Sequence[str]], *, over_k: bool) -> str:
    """The table of all settings; those on the front of cost and balance are bold."""
    head, *rows = cells
    best = front_of(points, "sse", "balance", higher=True).points.best
    lines = [
        [f"<b>{cell}</b>" if on and not over_k else cell for cell in map(escape, row)]
        for row, on in zip(rows, best, strict=True)
    ]
    caption = (
        "Every method at every number of clusters."
        if over_k
        else f"Every setting; the {number(int(best.sum()), 0)} on the front of cost and balance are bold. "
        "'More' is the cost above k-means."
    )
    return (
        "<h2>All settings</h2>"
        + table_part(caption, list(map(escape, head)), lines, text=(1,))
        + (
            "<p class=quiet>The report of one setting, with profiles of its clusters and shares of groups, is made by "
            "<code>fairclust fit</code> with the same table, <code>--method</code>, <code>--set</code> and "
            "<code>--report</code>.</p>"
        )
    )
