"""Fronts as the page shows them. When a reader chooses other metrics, `page/page.js` redraws them by the same rules."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd

from fairclust.fronts import front_of, look
from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import COSTS, FAIRNESS
from fairclust.report.redaction import redact_config
from fairclust.report.render import plain
from fairclust.report.selection import varied_params

SHOWN = (*COSTS, *FAIRNESS)
WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 390, 12, 226
FRAME = {"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM}
"""The picture and, in it, the axes, for the template."""


def with_settings(points: pd.DataFrame) -> pd.DataFrame:
    """`points` with a column `setting`: lambda, and the parameters that differ among the settings of the method on the
    data set."""
    text = pd.Series("", index=points.index)
    for _, of in points.groupby(["dataset", "n_clusters", "method"], sort=False):
        varied = varied_params(of.params)
        text.loc[of.index] = [_setting_text(json.loads(params), varied[params]) for params in of.params]
    return points.assign(setting=text)


def _setting_text(params: Mapping[str, Any], varied: Mapping[str, Any]) -> str:
    lam = [f"λ = {plain(params['lam'])}"] if "lam" in params else []
    others = [f"{name} = {plain(redact_config(varied[name]))}" for name in sorted(set(varied) - {"lam"})]
    return ", ".join([*lam, *others])


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers between `low` and `high`."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw * 0.9999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """The short text of a tick's number."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.6g}M"
    if size >= 1e4:
        return f"{value / 1e3:.6g}k"
    return f"{value:.6g}" if size > 1e-12 else "0"


def front_chart(points: pd.DataFrame, methods: Sequence[str], names: Names, title: str) -> dict[str, Any]:
    """The front of one data set and K: the first cost that has values there, against the first fairness metric.

    Returns what the template draws: title, rows (of the table of the front), head (headings of its last two columns),
    note (which points are not shown, or why there are none), keys (methods on the front, as positions in `methods`),
    and, if there is something to show, marks, lines, stairs, ticks and labels, with places in the picture.
    """
    cost_name = next((name for name in COSTS if np.isfinite(points[name]).any()), COSTS[0])
    metric = METRICS[FAIRNESS[0]]
    # Rounded to the digits that the page holds, so that the browser computes the same fronts.
    points = points.assign(**{name: [float(f"{v:.7g}") for v in points[name]] for name in SHOWN})
    points = points.sort_values([cost_name, "method", "params"], ignore_index=True)
    front = front_of(points, cost_name, metric.name, higher=metric.direction == "higher")
    if not front.points.finite.any():
        return {"title": title, "marks": [], "rows": [], "note": "no cell ended well", "keys": []}
    x0, x1, y0, y1 = front.window(bounded=bool(np.isfinite(metric.range[1])))

    def across(x: Any) -> Any:
        return np.round(LEFT + (x - x0) / (x1 - x0) * (RIGHT - LEFT), 1)

    def up(y: Any) -> Any:
        return np.round(BOTTOM - (y - y0) / (y1 - y0) * (BOTTOM - TOP), 1)

    found = front.points.assign(px=across(front.points.x), py=up(front.points.y))
    found = found.assign(inside=found.finite & (found.x <= x1) & (found.y <= y1))
    inside, best = found[found.inside], found[found.best]
    number = {name: i for i, name in enumerate(methods)}
    lines = [(method, of) for method, of in inside[inside.own].groupby("method", sort=False) if len(of) > 1]
    # Faint marks first, so that the front lies on top.
    marks = found.sort_values(["best", "own"], kind="stable").to_dict("records")
    return {
        "title": title,
        "marks": [_mark(point, number, names, cost_name) for point in marks],
        "n_inside": len(inside),
        "lines": [
            {
                "method": number[method],
                "colour": look(names.look(method))[0],
                "path": " ".join(f"{x:g},{y:g}" for x, y in zip(of.px, of.py, strict=True)),
            }
            for method, of in lines
        ],
        "stairs": _stairs(inside[inside.best], front.higher),
        "x_ticks": [(f"{across(v):g}", tick_text(v)) for v in ticks(x0, x1)],
        "y_ticks": [(f"{up(v):g}", f"{up(v) + 4:g}", tick_text(v)) for v in ticks(y0, y1)],
        "labels": (f"{METRICS[cost_name].label} (lower is better)", f"{metric.label} ({metric.direction} is better)"),
        "rows": [
            [names.method(p["method"]), p["setting"] or "–", str(p["seed"]), value_text(cost_name, p["x"]),
             value_text(metric.name, p["y"])]
            for p in best.to_dict("records")
        ],
        "head": [METRICS[cost_name].label, metric.label],
        "note": _left_out(found[~found.inside].method, names),
        "keys": [number[m] for m in pd.unique(inside[inside.best].method)],
    }  # fmt: skip


def _mark(point: Mapping[str, Any], number: Mapping[str, int], names: Names, cost: str) -> dict[str, Any]:
    colour, shape = look(names.look(point["method"]))
    return {
        **{"method": number[point["method"]], "colour": colour, "shape": shape},
        **{"setting": point["setting"], "seed": point["seed"], "inside": point["inside"]},
        "x": f"{point['px']:g}" if point["inside"] else "0",
        "y": f"{point['py']:g}" if point["inside"] else "0",
        "level": "on" if point["best"] else "own" if point["own"] else "off",
        "values": ",".join("" if pd.isna(point[name]) else f"{point[name]:.7g}" for name in SHOWN),
        "tip": f"{names.method(point['method'])}: {describe(point, cost, FAIRNESS[0])}",
    }


def value_text(metric: str, value: float) -> str:
    """A metric's value for readers."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    # Halves are rounded up, as in browsers. Python's formatting would round them to the even digit.
    unit = Decimal(1).scaleb(-METRICS[metric].decimals)
    return f"{Decimal(value).quantize(unit, ROUND_HALF_UP):,}"


def describe(point: Mapping[str, Any], cost: str, fairness: str) -> str:
    """A point in words: setting, seed, cost, fairness."""
    parts = [*filter(None, [point["setting"]]), f"seed {point['seed']}"]
    parts += [f"{METRICS[name].label} {value_text(name, point[name])}" for name in (cost, fairness)]
    return ", ".join(parts)


def _stairs(front: pd.DataFrame, higher: bool) -> str:
    """The outline of the region that the front dominates, as an SVG path."""
    if front.empty:
        return ""
    base = BOTTOM if higher else TOP
    (x, y), *others = zip(front.px, front.py, strict=True)
    return f"M{x:g} {base}V{y:g}" + "".join(f"H{x:g}V{y:g}" for x, y in others) + f"H{RIGHT}V{base}Z"


def _left_out(gone: pd.Series, names: Names) -> str:
    if gone.empty:
        return ""
    parts = [f"{names.method(m)} ({number})" for m, number in gone.value_counts(sort=False).items()]
    return f"Beyond the edges, or without a finite value: {', '.join(parts)}."
