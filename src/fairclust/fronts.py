"""The model of a front: points of cost and fairness, which of them no other point beats, and axes in SVG."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd


def pareto(cost: np.ndarray, fairness: np.ndarray, higher: bool) -> np.ndarray:
    """Which points are on the front: no other point is better in one value and no worse in the other.

    Equal points are all on the front, or none of them is. Points that are not finite are never on it. `higher` says
    whether higher fairness values are better.
    """
    gain = np.where(np.isfinite(cost) & np.isfinite(fairness), fairness if higher else -fairness, -np.inf)
    best, cheapest, on = -np.inf, np.inf, np.zeros(len(cost), bool)
    for i in np.lexsort((-gain, cost)):
        if gain[i] > best or (gain[i] == best and cost[i] == cheapest and np.isfinite(best)):
            on[i], best, cheapest = True, gain[i], cost[i]
    return on


def front_of(
    points: pd.DataFrame, x: str, y: str, *, higher: bool, apart: Collection[str] = ()
) -> pd.DataFrame:
    """Add to points, of which each has a method, a cost `x` and a fairness `y`, what is drawn of them.

    These columns are the numbers x and y, whether both are ``finite``, whether the point is ``best``, on the front of
    all methods, or on that of its ``own`` method, and whether the method has ``several`` points. Points of methods that
    stand `apart` are never best.
    """
    cost, fair = points[x].to_numpy(float), points[y].to_numpy(float)
    own = np.zeros(len(points), bool)
    for rows in points.groupby("method", sort=False).indices.values():
        own[rows] = pareto(cost[rows], fair[rows], higher)
    return points.assign(
        x=cost,
        y=fair,
        own=own,
        best=pareto(np.where(points.method.isin(apart), np.inf, cost), fair, higher),
        finite=np.isfinite(cost) & np.isfinite(fair),
        several=points.groupby("method").method.transform("size") > 1,
    )


def window(front: pd.DataFrame, *, bounded: bool) -> tuple[float, float, float, float]:
    """The ranges of both axes (x0, x1, y0, y1): the front of the methods with several settings, and a margin.

    If the ranges included every point, one distant reference method or an error that is not `bounded` would squeeze
    all others.
    """
    points = front[front.finite]
    on = points.best
    reach = on & points.several if (on & points.several).any() else on
    low, high = points.x.min(), points.x[reach].max()
    x1 = min(points.x.max(), max(low + 1.6 * (high - low), 1.1 * low))
    shown = points.y[points.x <= x1]
    y0, y1 = shown.min(), shown.max()
    if not bounded:
        y1 = min(y1, max(1.15 * points.y[on].max(), y0 + 1e-3))
    x_pad = 0.05 * (x1 - low) or 0.05 * abs(low) or 1
    y_pad = 0.06 * (y1 - y0) or 0.05
    return low - x_pad, x1 + x_pad, y0 - y_pad, y1 + y_pad


def ticks(low: float, high: float) -> list[tuple[float, str]]:
    """About five round numbers between `low` and `high`, with their texts."""
    raw = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 2.5, 5) if m * power >= raw * 0.9999), 10 * power)
    first = math.ceil(low / step - 1e-9)
    numbers = [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]
    return [(value, tick_text(value)) for value in numbers]


def tick_text(value: float) -> str:
    """The short text of a tick's number."""
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.6g}M"
    if size >= 1e4:
        return f"{value / 1e3:.6g}k"
    return f"{value:.6g}" if size > 1e-12 else "0"


class Axes(NamedTuple):
    """The axes of a picture: the ranges of the values, and the edges (left and right, top and bottom)."""

    x: tuple[float, float]
    y: tuple[float, float]
    edges_x: tuple[float, float]
    edges_y: tuple[float, float]

    def across(self, x: Any) -> Any:
        """The place of values of x."""
        left, right = self.edges_x
        return np.round(left + (x - self.x[0]) / (self.x[1] - self.x[0]) * (right - left), 1)

    def up(self, y: Any) -> Any:
        """The place of values of y."""
        top, bottom = self.edges_y
        return np.round(bottom - (y - self.y[0]) / (self.y[1] - self.y[0]) * (bottom - top), 1)

    def frame(
        self,
        xs: Sequence[tuple[float, str]] | None = None,
        ys: Sequence[tuple[float, str]] | None = None,
    ) -> str:
        """A grid at some values of x and y, with their texts. By default, these are round numbers."""
        (left, right), (top, bottom) = self.edges_x, self.edges_y
        xs, ys = xs or ticks(*self.x), ys or ticks(*self.y)
        grid = [f"M{self.across(x):g} {top}V{bottom}" for x, _ in xs]
        grid += [f"M{left} {self.up(y):g}H{right}" for y, _ in ys]
        words = [f'<text x="{self.across(x):g}" y="{bottom + 15}" class="x">{text}</text>' for x, text in xs]
        words += [f'<text x="{left - 6}" y="{self.up(y) + 4:g}" class="y">{text}</text>' for y, text in ys]
        return f'<path class="axes" d="{"".join(grid)}"/>{"".join(words)}'
