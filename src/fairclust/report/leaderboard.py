"""Pareto fronts and the leaderboard that is made of them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.selection import best_starts

COSTS = ("sse", "kmedians_cost", "ncut")
FAIRNESS = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "average_balance")
# Costs beyond this multiple of the cheapest one count for nothing.
COST_LIMIT = 2.0
LEADERBOARD_RULE = (
    "An instance is a data set with a K. On each instance a method's front is the set of its settings (best start of "
    "each) that no other setting of it beats in both cost and fairness. Its score is the area that the front "
    "dominates in the box from the cheapest clustering of any method to twice its cost, and from the fairness of "
    "that cheapest clustering to the best fairness that any method reaches within twice the cost: 0 for plain "
    "k-means, 100 for full fairness at no extra cost. The mean runs over all instances; a method without a result on one "
    "scores 0 there and gets the last rank. Ranks are among all methods of the run, ties share the mean rank, and the list is sorted "
    "by mean rank. Instances with fewer than two methods, or where fairness costs nothing, do not count."
)


def settings(scores: pd.DataFrame) -> pd.DataFrame:
    """Cells that ended well, the best start of every setting of every method, data set and K."""
    parts = [best_starts(cells) for _, cells in scores.groupby(["dataset", "n_clusters", "method"], sort=False)]
    return pd.concat(parts, ignore_index=True) if parts else scores[:0]


def pareto(cost: np.ndarray, fairness: np.ndarray, higher: bool) -> np.ndarray:
    """Which points no other point beats in both; of equal points the first.

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
    order = np.lexsort((-gain, cost))
    best, on = -np.inf, np.zeros(len(cost), bool)
    for i in order:
        if gain[i] > best:
            on[i], best = True, gain[i]
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
    cheapest = c.min()
    usable = c <= COST_LIMIT * cheapest
    finite = gain[usable & np.isfinite(gain)]
    if cheapest <= 0 or not len(finite):
        return None
    # Of equally cheap clusterings the fairest; an infinite error stands for the worst finite one.
    start = max(gain[c <= cheapest * (1 + 1e-9)].max(), finite.min())
    span = finite.max() - start
    if span <= 1e-12:
        return None
    x, y = (c / cheapest - 1) / (COST_LIMIT - 1), (gain - start) / span
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
