"""One picture of all values that are compared with papers: the reported value against ours, on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from fairclust.fronts import Axes, tick_text
from fairclust.pipeline.names import Names
from fairclust.report.render import method_text, metric_label, number, table_name
from fairclust.report.verdicts import AGREES, AS_PROGRAM, DIFFERS

LOOKS = {AGREES: (2, 0), AS_PROGRAM: (0, 1), DIFFERS: (1, 2)}
"""Colour and mark of each verdict, as positions in `fairclust.looks`."""
FLOOR = 1e-4
"""Smaller values, zeros among them, are drawn here."""
SIZE = 430
"""The width and height of the picture of the page."""


def compared(board: pd.DataFrame, titles: Mapping[str, str], names: Names) -> pd.DataFrame:
    """The compared values, from lines of evidence: ``reported``, ``ours``, ``verdict`` and ``text``, which names them.

    Where ours agrees with the published program, its value stands instead of the reported one. `titles` maps papers to
    their short names.
    """
    shown = board[(board.role == "paper") & board.value_verdict.isin(list(LOOKS)) & board["mean"].notna()]
    rows = []
    for line in shown.itertuples():
        by_program = line.value_verdict == AS_PROGRAM
        value, what = (line.program_mean, "program") if by_program else (line.reported, "reported")
        digits = max(int(line.decimals), 0)
        text = (
            f"{titles.get(line.paper, line.paper)}, {table_name(line.table)}: {names.dataset(line.dataset)}, "
            f"{method_text(names, line.method, line.lam)}: {metric_label(line.metric)} {number(line.mean, digits)}, "
            f"{what} {number(value, digits)}: {line.value_verdict}"
        )
        rows.append((value, line.mean, line.value_verdict, text))
    points = pd.DataFrame(rows, columns=["reported", "ours", "verdict", "text"])
    # What agrees is drawn first, so that it covers nothing else.
    order = points.verdict.map({verdict: i for i, verdict in enumerate(LOOKS)})
    return points.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def decades(points: pd.DataFrame) -> range:
    """The powers of ten on both axes."""
    values = points[["reported", "ours"]].to_numpy(float).ravel()
    high = max([10.0, *values[pd.notna(values) & (values < math.inf)]])
    return range(round(math.log10(FLOOR)), math.ceil(math.log10(high)) + 1)


def picture(points: pd.DataFrame) -> dict[str, Any]:
    """The picture for the template of the page: its axes with the diagonal, dots with their texts, and the legend."""
    powers = decades(points)
    ends, places = (powers[0], powers[-1]), ((58, SIZE - 10), (10, SIZE - 44))
    axes = Axes(ends, ends, *places)
    ticks = [(d, f"≤ {FLOOR:g}" if d == powers[0] else tick_text(10.0**d)) for d in powers[::2]]
    (left, right), (top, bottom) = places
    diagonal = f'<path class="axes" d="M{left} {bottom}L{right} {top}"/>'
    logs = np.log10(points[["reported", "ours"]].clip(FLOOR, 10.0 ** powers[-1]))
    looks = points.verdict.map(LOOKS)
    dots = zip(axes.across(logs.reported), axes.up(logs.ours), looks, points.text, strict=True)
    counts = points.verdict.value_counts()
    return {
        "size": SIZE,
        "frame": Markup(axes.frame(ticks, ticks) + diagonal),
        "dots": [{"x": x, "y": y, "text": text, "colour": c, "shape": s} for x, y, (c, s), text in dots],
        "legend": [
            {"verdict": v, "colour": c, "shape": s, "n": int(counts.get(v, 0))} for v, (c, s) in LOOKS.items()
        ],
    }
