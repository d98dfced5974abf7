"""The question that readers come with: which method is cheapest at the fairness that I need?"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.report.leaderboard import COSTS, FAIR_ENOUGH, FAIRNESS
from fairclust.report.render import MISSING, number, percent
from fairclust.report.selection import INSTANCE, within
from fairclust.report.table import Table, filters, numbers, texts


def whole(points: pd.DataFrame) -> pd.DataFrame:
    """The clusterings without empty clusters: a single cluster would be perfectly fair."""
    # Where empty clusters were not counted, NaN is no evidence of any.
    return points[~(points.n_nonempty.to_numpy(float) < points.n_clusters.to_numpy(float))]


def full_fairness(points: pd.DataFrame, cost: str, fairness: str) -> float | None:
    """The level at which a clustering of an instance counts as fully fair, rounded to the looser side.

    It is 95 % of the way from the cheapest clustering to the best fairness. None if no clustering has both values.
    """
    points = whole(points)
    costs, values = points[cost].to_numpy(float), points[fairness].to_numpy(float)
    usable = np.isfinite(costs) & np.isfinite(values)
    if not usable.any():
        return None
    costs, values, higher = costs[usable], values[usable], METRICS[fairness].direction == "higher"
    start, best = values[costs.argmin()], values.max() if higher else values.min()
    level, scale = start + FAIR_ENOUGH * (best - start), 10.0 ** METRICS[fairness].decimals
    return (math.floor(level * scale + 1e-6) if higher else math.ceil(level * scale - 1e-6)) / scale


def cheapest(points: pd.DataFrame, cost: str, fairness: str, level: float) -> pd.DataFrame:
    """Of each method, the cheapest setting that is at least as fair as the level; the cheapest method first."""
    points = whole(points)
    fair = points[within(points[fairness], level, fairness) & np.isfinite(points[cost])]
    return fair.sort_values(cost, kind="stable").drop_duplicates("method")


def answers_table(settings: pd.DataFrame, names: Names) -> Table:
    """The cheapest method at almost full fairness on every data set and K, and the runner-up."""
    columns = [
        *filters("Data set"), *numbers("K", f"{METRICS[FAIRNESS[0]].label} at least"),
        *texts("Cheapest", "Setting"), *numbers("Cost", "Price of fairness"), *texts("Runner-up"),
        *numbers("Dearer by", "Above its certified bound"),
    ]  # fmt: skip
    return Table("The cheapest method at almost full fairness", columns, list(_rows(settings, names)))


def _rows(settings: pd.DataFrame, names: Names) -> Iterator[list[str]]:
    fairness = FAIRNESS[0]
    needed = [*INSTANCE, "method", "setting", "n_nonempty", *COSTS, fairness]
    needed += [name for name in settings if name.startswith("excess_")]
    instances = settings.reindex(columns=needed).groupby(INSTANCE, sort=False)
    for (dataset, k), points in sorted(instances, key=lambda one: -len(one[1])):
        cost = next((name for name in COSTS if np.isfinite(points[name]).any()), COSTS[0])
        level = full_fairness(points, cost, fairness)
        if level is None:
            continue
        first, *others = cheapest(points, cost, fairness, level).to_dict("records")
        excess = first.get(f"excess_{cost}", math.nan)
        yield [
            names.dataset(str(dataset)),
            str(k),
            number(level, METRICS[fairness].decimals),
            names.method(first["method"]),
            first["setting"] or MISSING,
            f"{METRICS[cost].label} {number(first[cost], METRICS[cost].decimals)}",
            percent(first[cost] / whole(points)[cost].min() - 1),
            names.method(others[0]["method"]) if others else MISSING,
            percent(others[0][cost] / first[cost] - 1) if others else MISSING,
            f"{100 * excess:.3f} %" if not math.isnan(excess) else MISSING,
        ]
