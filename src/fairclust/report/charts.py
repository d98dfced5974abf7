"""Fronts as inline SVG. When a reader chooses other metrics, `page/page.js` redraws them by the same rules."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import COSTS, FAIRNESS, pareto
from fairclust.report.looks import look
from fairclust.report.redaction import redact_config

SHOWN = (*COSTS, *FAIRNESS)
WIDTH, HEIGHT = 400, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 390, 12, 226


def setting_text(params: Mapping[str, Any], varied: Sequence[str]) -> str:
    """The parameters that differ among a method's settings, lambda first."""
    names = sorted((name for name in varied if name in params), key=lambda name: (name != "lam", name))
    return ", ".join(f"{'λ' if n == 'lam' else n} = {_plain(params[n])}" for n in names)


def _plain(value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{value:,.10g}" if is_number else str(redact_config(value))


def with_settings(points: pd.DataFrame) -> pd.DataFrame:
    """`points` with a column `setting`: the parameters that differ among the settings of the method on the data set."""
    text = pd.Series("", index=points.index)
    for _, of in points.groupby(["dataset", "n_clusters", "method"], sort=False):
        params = [_params(p) for p in of.params]
        keys = sorted({key for p in params for key in p})
        varied = [key for key in keys if len({json.dumps(p.get(key), sort_keys=True) for p in params}) > 1]
        if any("lam" in p for p in params) and "lam" not in varied:
            varied.append("lam")
        text.loc[of.index] = [setting_text(p, varied) for p in params]
    return points.assign(setting=text)


def _params(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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


def _domain(
    cost: np.ndarray, fair: np.ndarray, metric: str, on: np.ndarray, several: np.ndarray
) -> tuple[float, float, float, float]:
    """The ranges of both axes: the front of the methods with several settings, and a margin.

    If the ranges included every point, one distant reference method or an unbounded error would squeeze all others.
    """
    reach = on & several if (on & several).any() else on
    low, high = cost.min(), cost[reach].max()
    x1 = min(cost.max(), max(low + 1.6 * (high - low), 1.1 * low))
    shown = fair[cost <= x1]
    y0, y1 = shown.min(), shown.max()
    if math.isinf(METRICS[metric].range[1]):
        y1 = min(y1, max(1.15 * fair[on].max(), y0 + 1e-3))
    x_pad = 0.05 * (x1 - low) or 0.05 * abs(low) or 1
    y_pad = 0.06 * (y1 - y0) or 0.05
    return low - x_pad, x1 + x_pad, y0 - y_pad, y1 + y_pad


def front_chart(points: pd.DataFrame, methods: Sequence[str], names: Names, title: str) -> dict[str, Any]:
    """The front of one data set and K: the first cost that has values there, against the first fairness metric.

    Returns title, svg (None if there is nothing to show), front (rows of a table), head (headings of the table's last
    two columns), note (which points are not shown, or why there are none), and keys (methods on the front, as
    positions in `methods`, by which the page's script identifies them).
    """
    cost_name = next((name for name in COSTS if np.isfinite(points[name]).any()), COSTS[0])
    fair_name = FAIRNESS[0]
    number = {name: i for i, name in enumerate(methods)}
    labels = {name: names.method(name) for name in methods}
    looks = {name: look(names.look(name)) for name in methods}
    # Rounded to the digits that the page holds, so that the browser computes the same fronts.
    points = points.assign(**{name: [float(f"{v:.7g}") for v in points[name]] for name in SHOWN})
    points = points.sort_values([cost_name, "method", "params"], ignore_index=True)
    cost, fair = points[cost_name].to_numpy(float), points[fair_name].to_numpy(float)
    finite = np.isfinite(cost) & np.isfinite(fair)
    if not finite.any():
        return {"title": title, "svg": None, "front": [], "note": "no cell ended well", "keys": []}
    higher = METRICS[fair_name].direction == "higher"
    on = pareto(cost, fair, higher)
    of_method, rows = points.method.to_numpy(), points.to_dict("records")
    count = points.groupby("method").params.transform("nunique").to_numpy()
    x0, x1, y0, y1 = _domain(cost[finite], fair[finite], fair_name, on[finite], (count > 1)[finite])
    inside = finite & (cost <= x1) & (fair <= y1)

    def at(c: float, f: float) -> tuple[float, float]:
        return (
            round(LEFT + (c - x0) / (x1 - x0) * (RIGHT - LEFT), 1),
            round(BOTTOM - (f - y0) / (y1 - y0) * (BOTTOM - TOP), 1),
        )

    own = np.zeros(len(points), bool)
    for method in pd.unique(of_method):
        mine = of_method == method
        own[mine] = pareto(cost[mine], fair[mine], higher)
    axes = [_x_tick(at(v, y0)[0], v) for v in ticks(x0, x1)] + [
        _y_tick(at(x0, v)[1], v) for v in ticks(y0, y1)
    ]
    lines, uses = [], []
    for method in pd.unique(of_method):
        mine = np.flatnonzero(own & inside & (of_method == method))
        if len(mine) > 1:
            path = " ".join(f"{x:g},{y:g}" for x, y in (at(cost[i], fair[i]) for i in mine))
            lines.append(
                f'<polyline class="l c{looks[method][0]}" data-m="{number[method]}" points="{path}"/>'
            )
    # Faint marks first, so that the front lies on top.
    for i in sorted(range(len(points)), key=lambda i: (on[i], own[i])):
        m = number[of_method[i]]
        colour, shape = looks[of_method[i]]
        level = "on" if on[i] else "own" if own[i] else "off"
        x, y = at(cost[i], fair[i]) if inside[i] else (0, 0)
        values = ",".join(_short(rows[i][name]) for name in SHOWN)
        hidden = "" if inside[i] else ' display="none"'
        tip = f"{labels[of_method[i]]}: {describe(rows[i], cost_name, fair_name)}"
        uses.append(
            f'<use href="#m{shape}" class="p c{colour} {level}" transform="translate({x:g} {y:g})"{hidden} '
            f'data-m="{m}" data-s="{escape(rows[i]["setting"])}" data-r="{rows[i]["seed"]}" '
            f'data-v="{values}"><title>{escape(tip)}</title></use>'
        )
    stairs = _stairs([at(cost[i], fair[i]) for i in np.flatnonzero(on & inside)], higher)
    words = f"{METRICS[fair_name].label} ({'higher' if higher else 'lower'} is better)"
    svg = (
        f'<svg class="front" viewBox="0 0 {WIDTH} {HEIGHT}" role="group" tabindex="0" '
        f'aria-label="{escape(title)}: cost and fairness of {int(inside.sum())} settings" '
        f'data-plot="{LEFT},{RIGHT},{TOP},{BOTTOM}">'
        f'<path class="stairs" d="{stairs}"/><g class="axes">{"".join(axes)}</g>'
        f'<text class="xl" x="{(LEFT + RIGHT) / 2:g}" y="{HEIGHT - 8}">'
        f"{METRICS[cost_name].label} (lower is better)</text>"
        f'<text class="yl" transform="translate(11 {(TOP + BOTTOM) / 2:g}) rotate(-90)">{words}</text>'
        f'<g class="lines">{"".join(lines)}</g><g class="points">{"".join(uses)}</g></svg>'
    )
    front = [
        [
            labels[of_method[i]],
            rows[i]["setting"] or "–",
            str(rows[i]["seed"]),
            value_text(cost_name, cost[i]),
            value_text(fair_name, fair[i]),
        ]
        for i in np.flatnonzero(on)
    ]
    return {
        "title": title,
        "svg": Markup(svg),  # all texts in it were escaped above
        "front": front,
        "head": [METRICS[cost_name].label, METRICS[fair_name].label],
        "note": _left_out(of_method, inside, labels),
        "keys": [number[m] for m in pd.unique(of_method[on & inside])],
    }


def _short(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.7g}"


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


def _x_tick(x: float, value: float) -> str:
    line = f'<path d="M{x:g} {TOP}V{BOTTOM}"/>'
    return f'{line}<text x="{x:g}" y="{BOTTOM + 15}" class="x">{tick_text(value)}</text>'


def _y_tick(y: float, value: float) -> str:
    line = f'<path d="M{LEFT} {y:g}H{RIGHT}"/>'
    return f'{line}<text x="{LEFT - 6}" y="{y + 4:g}" class="y">{tick_text(value)}</text>'


def _stairs(front: list[tuple[float, float]], higher: bool) -> str:
    """The outline of the region that the front dominates, as an SVG path."""
    if not front:
        return ""
    base = BOTTOM if higher else TOP
    path = f"M{front[0][0]:g} {base}V{front[0][1]:g}"
    path += "".join(f"H{x:g}V{y:g}" for x, y in front[1:])
    return f"{path}H{RIGHT}V{base}Z"


def _left_out(of_method: np.ndarray, inside: np.ndarray, labels: Mapping[str, str]) -> str:
    gone = of_method[~inside]
    if not len(gone):
        return ""
    parts = [f"{labels[m]} ({int((gone == m).sum())})" for m in pd.unique(gone)]
    return f"Beyond the edges, or without a finite value: {', '.join(parts)}."
