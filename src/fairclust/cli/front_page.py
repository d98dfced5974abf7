"""The report of `fairclust front` as one HTML file that needs no network: a table of settings, and their fronts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairclust.cli.options import Front
from fairclust.cli.page import page
from fairclust.cli.rows import RowsInMemory
from fairclust.fronts import front_of, tick_text, ticks
from fairclust.looks import COLOURS, SHAPES, look
from fairclust.messages import count
from fairclust.metrics.table import METRICS
from fairclust.report.render import number

_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 430, 14, 256


def front_page(
    points: pd.DataFrame,
    cells: Sequence[Sequence[str]],
    said: Sequence[str],
    rows: RowsInMemory,
    notes: Sequence[str],
    args: Front,
) -> str:
    """The page: answer, charts, a table of all settings, columns, and how to make it again.

    `points` has a row for each setting, and `cells` the same as text below a head.
    """
    numbers, over_k = sorted(points.n_clusters.unique()), cells[0][1] == "K"
    best = front_of(points, "sse", "balance", higher=True).points.best
    many = (
        f"{numbers[0]} to {numbers[-1]} clusters" if over_k else count(int(points.n_clusters[0]), "cluster")
    )
    caption = (
        "Every method at every number of clusters."
        if over_k
        else f"Every setting; the {number(int(best.sum()), 0)} on the front of cost and balance are bold. "
        "'More' is the cost above k-means."
    )
    return page(
        "front",
        args,
        "How many clusters:" if over_k else "What fairness costs:",
        f"{count(len(points), 'clustering')} with {many}, {count(len(rows.X), 'row')}, "
        f"{count(len(rows.preparation.features), 'column')} clustered by, {count(len(rows.sizes), 'group')}",
        said,
        rows,
        notes,
        over_k=over_k,
        charts=_over_k(points) if over_k else _fronts(points),
        looks={str(method): _look(method) for method in points.method.unique()},
        caption=caption,
        head=cells[0],
        settings=cells[1:],
        strong=[] if over_k else np.flatnonzero(best).tolist(),
    )


def _look(method: Any) -> dict[str, str]:
    colour, shape = look(str(method))
    return {"colour": COLOURS[colour], "shape": SHAPES[shape]}


def _fronts(points: pd.DataFrame) -> list[dict[str, Any]]:
    """Cost against two metrics of fairness."""
    plain = points.increase.notna().all()
    points = points.assign(cost=100 * points.increase if plain else points.sse)
    label = "cost above k-means, %" if plain else "SSE (lower is better)"
    charts = []
    for metric in (METRICS["balance"], METRICS["delta"]):
        front = front_of(points, "cost", metric.name, higher=metric.direction == "higher")
        edges = front.window(bounded=bool(np.isfinite(metric.range[1])))
        drawn = front.points.assign(joined=front.points.own, strong=front.points.best)
        charts.append(_chart(drawn, edges, (label, f"{metric.label} ({metric.direction} is better)")))
    return charts


def _over_k(points: pd.DataFrame) -> list[dict[str, Any]]:
    """Cost, fairness and silhouette over the number of clusters."""
    shown = [METRICS[name] for name in ("sse", "balance")]
    labels = {metric.name: f"{metric.label} ({metric.direction} is better)" for metric in shown}
    charts = []
    for name, label in (labels | {"silhouette": "Silhouette (higher is better)"}).items():
        drawn = points.assign(x=points.n_clusters, y=points[name], joined=points[name].notna(), strong=True)
        low, high = drawn.y.min(), drawn.y.max()
        pad = 0.06 * (high - low) or 0.05
        edges = (drawn.x.min() - 0.3, drawn.x.max() + 0.3, low - pad, high + pad)
        charts.append(_chart(drawn, edges, ("number of clusters", label)))
    return charts


def _chart(
    points: pd.DataFrame, edges: tuple[float, float, float, float], labels: tuple[str, str]
) -> dict[str, Any]:
    """Where the template draws marks at x and y, pale unless `strong`; and lines through those that are `joined`."""
    x0, x1, y0, y1 = edges

    def across(x: Any) -> Any:
        return np.round(_LEFT + (x - x0) / (x1 - x0) * (_RIGHT - _LEFT), 1)

    def up(y: Any) -> Any:
        return np.round(_BOTTOM - (y - y0) / (y1 - y0) * (_BOTTOM - _TOP), 1)

    inside = points[points.x.between(x0, x1) & points.y.between(y0, y1)].sort_values("x", kind="stable")
    text = [
        f"{of.method} {of.setting}: {labels[0]} {of.x:.4g}, {labels[1]} {of.y:.4g}"
        for of in inside.itertuples()
    ]
    inside = inside.assign(x=across(inside.x), y=up(inside.y), text=text)
    beyond = len(points) - len(inside)
    return {
        **{"left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM, "labels": labels},
        "across": [(across(value), tick_text(value)) for value in ticks(x0, x1)],
        "up": [(up(value), tick_text(value)) for value in ticks(y0, y1)],
        "methods": [
            (
                _look(method),
                of.loc[of.joined, ["x", "y"]].to_numpy().tolist(),
                of.sort_values("strong")[["x", "y", "strong", "text"]].to_dict("records"),
            )
            for method, of in inside.groupby("method", sort=False)
        ],
        "beyond": count(beyond, "setting") if beyond else "",
    }
