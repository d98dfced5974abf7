"""Pareto fronts and the leaderboard that is made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.selection import best_starts

COSTS = ("sse", "kmedians_cost", "ncut")
FAIRNESS = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "average_balance")
# What counts as full fairness: this share of the way from the cheapest clustering's to the best one seen.
FAIR_ENOUGH = 0.95
LEADERBOARD_RULE = (
    "An instance is a data set with a K. On each instance a method's front is the set of its settings (the "
    "best start of each) that no other setting of it beats in both cost and fairness.",
    "Its score is the area (hypervolume) that this front dominates in a box. The box begins at the cost and "
    "fairness of the cheapest clustering of any method. It ends at the best fairness of any method, and at "
    "twice the least extra cost for which any method comes 95% of the way there. 0 is plain clustering, 100 "
    "would be full fairness at no extra cost.",
    "The mean score runs over all instances; a method without a result on one scores 0 there and takes the "
    "last rank. Ranks are among all methods of the run, ties share the mean of their ranks, and the list is "
    "sorted by mean rank. Instances where fairness costs nothing, or with fewer than two methods, do not "
    "count.",
)


def settings(scores: pd.DataFrame) -> pd.DataFrame:
    """Cells that ended well, the best start of every setting of every method, data set and K."""
    parts = [
        best_starts(cells) for _, cells in scores.groupby(["dataset", "n_clusters", "method"], sort=False)
    ]
    return pd.concat(parts, ignore_index=True) if parts else scores[:0]


def pareto(cost: np.ndarray, fairness: np.ndarray, higher: bool) -> np.ndarray:
    """Which points no other beats, by being better in one and no worse in the other.

    Equal points stand together.

    Parameters
    ----------
    cost, fairness : array of shape (n,)
        Points that are not finite are never on the front.
    higher : bool
        Whether higher fairness values are better.

    Returns
    -------
    array of bool, shape (n,)
    """
    gain = np.where(np.isfinite(cost) & np.isfinite(fairness), fairness if higher else -fairness, -np.inf)
    best, at, on = -np.inf, np.inf, np.zeros(len(cost), bool)
    for i in np.lexsort((-gain, cost)):
        if gain[i] > best or (gain[i] == best and cost[i] == at and np.isfinite(best)):
            on[i], best, at = True, gain[i], cost[i]
    return on


def dominated_area(x: np.ndarray, y: np.ndarray) -> float:
    """Area of the unit square that points dominate; x is a cost, y a gain, both scaled to the square."""
    inside = (x < 1) & (y > 0)
    x, y = np.clip(x[inside], 0, None), np.clip(y[inside], None, 1)
    order = np.argsort(x)
    area = best = 0.0
    for left, height in zip(x[order], y[order], strict=True):
        if height > best:
            area += (1 - left) * (height - best)
            best = height
    return float(area)


def instance_scores(points: pd.DataFrame, cost: str, fairness: str) -> dict[str, float] | None:
    """Score of every method on one instance.

    Parameters
    ----------
    points : DataFrame
        `settings` of one data set and K.
    cost, fairness : str
        Names of metrics.

    Returns
    -------
    dict of method to score in [0, 1], or None
        None if the instance does not count.
    """
    higher = METRICS[fairness].direction == "higher"
    at = points[np.isfinite(points[cost]) & points[fairness].notna()]
    if at.method.nunique() < 2:
        return None
    gain = at[fairness].to_numpy(float) * (1 if higher else -1)
    c = at[cost].to_numpy(float)
    finite = gain[np.isfinite(gain)]
    if not len(finite):
        return None
    cheapest = c.min()
    # Of equally cheap clusterings the fairest; an infinite error stands for the worst finite one.
    start = max(gain[c <= cheapest * (1 + 1e-9)].max(), finite.min())
    span = finite.max() - start
    extra = c[gain >= start + FAIR_ENOUGH * span].min() - cheapest
    if span <= 1e-12 or extra <= 1e-9 * cheapest:
        return None
    x, y = (c - cheapest) / (2 * extra), (gain - start) / span
    methods = at.method.to_numpy()
    return {str(m): dominated_area(x[methods == m], y[methods == m]) for m in pd.unique(methods)}


def leaderboard(points: pd.DataFrame, methods: list[str], cost: str, fairness: str) -> pd.DataFrame:
    """Rank the methods of a run.

    Parameters
    ----------
    points : DataFrame
        From `settings`.
    methods : list of str
        All methods of the run, also those without any result.
    cost, fairness : str

    Returns
    -------
    DataFrame
        Indexed by method: mean_rank, mean_score, covered, instances; then one column per instance, named
        ``(dataset, K)``, with its score or NaN. Empty if no instance counts.
    """
    scored = {}
    for at, of in points.groupby(["dataset", "n_clusters"], sort=False):
        found = instance_scores(of, cost, fairness)
        if found:
            scored[at] = found
    if not scored:
        return pd.DataFrame()
    table = pd.DataFrame(scored).reindex(methods)
    table.columns = pd.Index(list(scored), tupleize_cols=False)
    # Among equals the mean rank; those without a result share the last place.
    ranks = table.fillna(-1.0).round(9).rank(ascending=False, method="average")
    ranks = ranks.mask(table.isna(), len(methods))
    summary = pd.DataFrame(
        {
            "mean_rank": ranks.mean(axis=1),
            "mean_score": table.fillna(0).mean(axis=1),
            "covered": table.notna().sum(axis=1),
            "instances": table.shape[1],
        }
    )
    board = pd.concat([summary, table], axis=1)
    return board.sort_values(["mean_rank", "mean_score"], ascending=[True, False], kind="stable")
