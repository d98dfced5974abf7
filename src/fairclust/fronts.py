"""The model of a front: points of cost and fairness, which of them no other point beats, and what a paper reports.

Matplotlib (`fairclust.plot`, the figures) and the pages draw this model. It also says how a method looks: one colour
and one mark everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

# Okabe and Ito's palette, whose colours can be told apart with all common kinds of colour vision. They are also in
# the style sheet of the report's page.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""The marks as matplotlib names them."""
SHAPES = (
    "M4.2 0A4.2 4.2 0 1 1-4.2 0A4.2 4.2 0 1 1 4.2 0Z",
    "M-3.8-3.8H3.8V3.8H-3.8Z",
    "M0-4.8L4.6 3.4H-4.6Z",
    "M0-5.2L5.2 0L0 5.2L-5.2 0Z",
    "M0 4.8L4.6-3.4H-4.6Z",
    "M-1.7-5H1.7V-1.7H5V1.7H1.7V5H-1.7V1.7H-5V-1.7H-1.7Z",
    "M-5-2.6L-2.6-5L0-2.4L2.6-5L5-2.6L2.4 0L5 2.6L2.6 5L0 2.4L-2.6 5L-5 2.6L-2.4 0Z",
    "M0-5.6L1.4-1.9L5.3-1.7L2.3.7L3.3 4.5L0 2.3L-3.3 4.5L-2.3.7L-5.3-1.7L-1.4-1.9Z",
)
"""The same marks as SVG paths, each about ten units wide around (0, 0)."""


def look(number: int) -> tuple[int, int]:
    """Colour and mark of the method at a position in the list of methods. The first 64 methods all differ."""
    return number % len(COLOURS), (number + number // len(COLOURS)) % len(MARKS)


def colour_and_mark(number: int) -> tuple[str, str]:
    """The same as matplotlib takes them."""
    colour, mark = look(number)
    return COLOURS[colour], MARKS[mark]


def pareto(cost: np.ndarray, fairness: np.ndarray, higher: bool) -> np.ndarray:
    """Which points are on the front: no other point is better in one value and no worse in the other.

    Equal points are all on the front, or none of them is. Points that are not finite are never on it. `higher` says
    whether higher fairness values are better.
    """
    gain = np.where(np.isfinite(cost) & np.isfinite(fairness), fairness if higher else -fairness, -np.inf)
    best, at, on = -np.inf, np.inf, np.zeros(len(cost), bool)
    for i in np.lexsort((-gain, cost)):
        if gain[i] > best or (gain[i] == best and cost[i] == at and np.isfinite(best)):
            on[i], best, at = True, gain[i], cost[i]
    return on


@dataclass(frozen=True)
class Front:
    """Settings of methods as points: the cost `x` and the fairness `y`; see `front_of`."""

    # Columns: method, x, y, best (on the front of all methods), own (on the front of its method), finite, several
    # (whether the method has several points), and what else the points had. Without a finite point it has rows only.
    points: pd.DataFrame
    higher: bool  # whether higher values of y are better
    reported: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["method", "x", "y"]))

    def window(self, bounded: bool) -> tuple[float, float, float, float]:
        """The ranges of both axes (x0, x1, y0, y1): the front of the methods with several settings, and a margin.

        If the ranges included every point, one distant reference method or an error that is not `bounded` would
        squeeze all others.
        """
        points = self.points[self.points.finite]
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


def front_of(
    points: pd.DataFrame, x: str, y: str, *, higher: bool, reported: pd.DataFrame | None = None
) -> Front:
    """The front of points, a frame with the column `method`, a cost `x` and a fairness `y`.

    `reported` holds a paper's points: columns method, x and y.
    """
    cost, fair = points[x].to_numpy(float), points[y].to_numpy(float)
    own = np.zeros(len(points), bool)
    for rows in points.groupby("method", sort=False).indices.values():
        own[rows] = pareto(cost[rows], fair[rows], higher)
    made = points.assign(
        x=cost,
        y=fair,
        own=own,
        best=pareto(cost, fair, higher),
        finite=np.isfinite(cost) & np.isfinite(fair),
        several=points.groupby("method").method.transform("size") > 1,
    )
    return Front(made, higher) if reported is None else Front(made, higher, reported)
