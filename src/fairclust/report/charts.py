"""The pictures of the page in SVG: fronts, one for each cost and fairness metric of a data set and K, and mean ranks.

The page holds the fronts as data, so that its script only shows what is drawn here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from fairclust.fronts import Axes, front_of, window
from fairclust.messages import count
from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import COSTS, FAIRNESS, SHOWN
from fairclust.report.render import bound_text, labelled

WIDTH, HEIGHT = 400, 270


def with_values(points: pd.DataFrame, metrics: Sequence[str]) -> list[str]:
    """The metrics with at least one finite value."""
    return [name for name in metrics if np.isfinite(points[name].astype(float)).any()]


def front_chart(
    points: pd.DataFrame,
    methods: Sequence[str],
    names: Names,
    title: str,
    marked: Mapping[str, Collection[str]],
) -> dict[str, Any]:
    """The fronts of one data set and K; `points` are its rows of `leaderboard.make_settings`.

    `marked` has the methods that are no better than random labels, by cost. They are on no front but their own. In
    ``data``, ``marks`` are the settings, and ``pictures`` has a picture for every pair of metrics, by their positions
    in `SHOWN`.
    """
    # Costs and fairness that agree to seven digits are equal: machines round differently.
    points = points.assign(**{name: [float(f"{v:.7g}") for v in points[name]] for name in SHOWN})
    # A single cluster would be perfectly fair.
    points.loc[points.n_nonempty < points.n_clusters, list(COSTS)] = np.nan
    costs = with_values(points, COSTS) or [COSTS[0]]
    points = points.sort_values([costs[0], "method", "params"], ignore_index=True)
    pictures = {}
    for cost in costs:
        for fairness in FAIRNESS:
            pair = f"{SHOWN.index(cost)},{SHOWN.index(fairness)}"
            higher = METRICS[fairness].direction == "higher"
            values = points[["method", cost, fairness]]
            front = front_of(values, cost, fairness, higher=higher, apart=marked.get(cost, ()))
            pictures[pair] = _picture(front, names, fairness)
    marks = []
    for point in points.to_dict("records"):
        bounds = {cost: point[f"excess_{cost}"] for cost in COSTS}
        marks.append({
            **{"method": methods.index(point["method"]), "setting": point["setting"], "seed": int(point["seed"])},
            "values": ",".join("" if pd.isna(point[name]) else f"{point[name]:.7g}" for name in SHOWN),
            # How much cheaper other labels may be.
            "excess": next(([COSTS.index(c), bound_text(e)] for c, e in bounds.items() if not pd.isna(e)), []),
        })  # fmt: skip
    # For readers with data of their own.
    sizes = {name: points.iloc[0][f"n_{name}s"] for name in ("row", "feature", "group")}
    return {
        "title": title,
        "size": ", ".join(count(int(n), name) for name, n in sizes.items() if not pd.isna(n)),
        "data": {"costs": [SHOWN.index(cost) for cost in costs], "pictures": pictures, "marks": marks},
    }


def ranks_picture(ranks: pd.Series, differ: float, names: Names, marked: Collection[str]) -> Markup:
    """Mean ranks of methods with bars of the critical difference: methods whose bars do not overlap differ.

    Methods that are `marked` as no better than random labels are hollow.
    """
    low, high = min(1.0, ranks.min() - differ / 2), max(float(len(ranks)), ranks.max() + differ / 2)
    axes = Axes((low, high), (len(ranks) + 1, 0), (250, 628), (0, 20 * len(ranks) + 20))
    labels = [escape(labelled(names, str(method))) for method in ranks.index]
    parts = [axes.frame(ys=list(enumerate(labels, 1)))]
    for line, (method, rank) in enumerate(ranks.items(), 1):
        colour, shape = names.look(str(method))
        ends, y = (axes.across(rank + side * differ / 2) for side in (-1, 1)), axes.up(line)
        hollow = " random" if method in marked else ""
        parts.append(
            f'<path class="l c{colour}" d="M{next(ends):g} {y:g}H{next(ends):g}"/>'
            f'<use href="#m{shape}" class="p c{colour} l2{hollow}" '
            f'transform="translate({axes.across(rank):g} {y:g})"/>'
        )
    size = f"0 0 640 {axes.edges_y[1] + 20}"
    return Markup(
        f'<svg class="dots" viewBox="{size}" role="img" aria-label="Mean ranks">{"".join(parts)}</svg>'
    )


def _picture(front: pd.DataFrame, names: Names, fairness: str) -> dict[str, str]:
    """What the script shows: axes, lines and region as SVG, the place and level of each mark, and a note.

    A place is empty for a mark beyond the edges. The level is 2 on the front of all methods, 1 on that of its own.
    """
    metric = METRICS[fairness]
    methods, x, y, best, own, finite = (
        front[name].to_numpy() for name in ("method", "x", "y", "best", "own", "finite")
    )
    levels = np.where(best, 2, np.where(own, 1, 0))
    if not finite.any():
        return {"frame": "", "at": ";".join(",,0" for _ in levels), "note": "No setting has both values."}
    x0, x1, y0, y1 = window(front, bounded=bool(np.isfinite(metric.range[1])))
    axes = Axes((x0, x1), (y0, y1), (58, 390), (12, 226))
    inside = finite & (x <= x1) & (y <= y1)
    px, py = axes.across(x), axes.up(y)
    order = np.argsort(x, kind="stable")
    order = order[inside[order]]
    on_front = [(px[i], py[i]) for i in order[best[order]]]
    of_method: dict[str, list[str]] = {}
    for i in order[own[order]]:
        of_method.setdefault(str(methods[i]), []).append(f"{px[i]:g},{py[i]:g}")
    stairs = ""  # the outline of the region that the front dominates
    if on_front:
        base, ((left, top), *others) = axes.edges_y[metric.direction == "higher"], on_front
        steps = "".join(f"H{a:g}V{b:g}" for a, b in others)
        stairs = f'<path class="stairs" d="M{left:g} {base}V{top:g}{steps}H{axes.edges_x[1]}V{base}Z"/>'
    lines = [
        f'<polyline class="l c{names.look(name)[0]}" data-m="{escape(name)}" points="{" ".join(path)}"/>'
        for name, path in of_method.items()
        if len(path) > 1
    ]
    counted = Counter(map(str, methods[~inside]))
    beyond = ", ".join(f"{names.method(name)} ({n})" for name, n in counted.items())
    return {
        "frame": f"{stairs}{axes.frame()}{''.join(lines)}",
        "at": ";".join(
            f"{a:g},{b:g},{level}" if shown else f",,{level}"
            for a, b, level, shown in zip(px, py, levels, inside, strict=True)
        ),
        "note": f"Beyond the edges, without a finite value, or with empty clusters: {beyond}." * bool(beyond),
    }
