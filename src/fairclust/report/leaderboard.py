"""The settings of a run, and the leaderboard: how far methods are from the best known cost at levels of fairness."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.messages import count
from fairclust.pipeline.names import Names
from fairclust.report.selection import INSTANCE, best_starts, in_words, varied_params

COSTS = ("sse", "kmedians_cost", "ncut")
FAIRNESS = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "average_balance")
SHOWN = (*COSTS, *FAIRNESS)
LEVELS = (0.0, 0.1, 0.2, 0.5)
"""How far the share of a group in a cluster may be from its share in the data."""
_SLACK = 0.01
EQUAL = 1e-3
"""Costs that differ by less than this share are equal."""
_APART, _DEARER = 2.0, 1.1
"""The largest ratios of the deviations and of the costs of two settings between which a cost is read."""
_FEWEST = 5
"""With fewer data sets there is no interval, because the bootstrap would draw the same few again and again."""
_LEAST_GAIN = 0.05
"""Methods that gain less over random labels than this share of the largest gain are no better than chance."""
CONTROL = "control"
"""The family of methods that draw labels at random."""
COLUMNS = [
    *("cost", "level", "dataset", "n_clusters", "method", "label", "ours", "value", "excess"),
    *("low", "high", "reached", "instances", "worse", "certified", "starts", "fewest_starts", "failed"),
    *("seconds", "n_rows", "n_groups"),
]


def deviation(counts: Any) -> float:
    """How far the shares of the groups (rows) in the clusters (columns) are from those in the data.

    The largest of 1 - share / m and 1 - m / share, where m is the share in the data, and one row more or less does not
    count. Infinite if a cluster is empty.
    """
    counts = np.asarray(counts, float)
    if not counts.sum(axis=0).all():
        return math.inf
    expected = np.outer(counts.sum(axis=1) / counts.sum(), counts.sum(axis=0))
    fewer = np.divide(expected, counts - 1, out=np.full_like(expected, np.inf), where=counts > 1)
    return float(max(0.0, (1 - (counts + 1) / expected).max(), (1 - fewer).max()))


def deviations(cells: pd.DataFrame) -> np.ndarray:
    """The deviation of every clustering, which is infinite where the shares are not known.

    With several sensitive columns it is one minus the fairness ratio, which is that of the least fair column.
    """
    unfair = [
        1 - ratio
        if pd.isna(counts) or (isinstance(by_column, str) and by_column != "{}")
        else deviation(list(json.loads(counts).values()))
        for ratio, counts, by_column in zip(
            cells.fairness_ratio.astype(float), cells["counts"], cells.by_column, strict=True
        )
    ]
    empty = cells.n_nonempty.to_numpy(float) < cells.n_clusters.to_numpy(float)
    return np.where(np.isnan(np.array(unfair, float)) | empty, np.inf, unfair)


def cost_at(level: float, costs: np.ndarray, unfair: np.ndarray) -> tuple[float, float]:
    """The cost of a start at a level of fairness, and that of its cheapest setting within the level.

    They differ where the cost is read between neighbouring settings. Both are infinite if the level is not reached.
    """
    level += _SLACK
    costs, unfair = costs[np.isfinite(costs)], unfair[np.isfinite(costs)]
    fair = unfair <= level * (1 + 1e-9)
    if not fair.any():
        return math.inf, math.inf
    near = np.flatnonzero(fair)[costs[fair].argmin()]
    fitted = float(costs[near])
    cheaper = np.flatnonzero(~fair & (costs < fitted))
    if not len(cheaper):
        return fitted, fitted
    far = cheaper[unfair[cheaper].argmin()]
    if unfair[far] > _APART * unfair[near] or fitted > _DEARER * costs[far]:
        return fitted, fitted
    share = (level - unfair[far]) / (unfair[near] - unfair[far])
    return float(costs[far] + share * (fitted - costs[far])), fitted


def start_costs(scores: pd.DataFrame, cost: str) -> pd.DataFrame:
    """The cost of every start at every level: columns of `INSTANCE`, method, seed, level, value, fitted and best.

    ``fitted`` is the cost of the cheapest setting within the level, and ``best`` the lowest of all starts on the
    instance. ``value`` may be read between two settings, and is never lower than ``best``. A method has no row where
    it was not run (status 'skipped') or lacks this cost.
    """
    marks = pd.DataFrame(
        {"ran": scores.status != "skipped", "ok": scores.status == "ok", "has": scores[cost].notna()}
    )
    of_method = (scores.method, [scores[name] for name in (*INSTANCE, "method")])
    anywhere, here = (marks.groupby(by).transform("any") for by in of_method)
    # Where all fits of a method failed, it counts if it has this cost on another instance, or no result on any.
    scores = scores[here.has | (here.ran & ~here.ok & (anywhere.has | ~anywhere.ok))]
    ok = (scores.status == "ok").to_numpy()
    unfair = np.full(len(scores), np.inf)
    unfair[ok] = deviations(scores[ok])
    costs = scores[cost].to_numpy(float)
    starts = scores.groupby([*INSTANCE, "method", "seed"], sort=False).indices.items()
    rows = [
        (*start, level, *cost_at(level, costs[index], unfair[index]))
        for level in LEVELS
        for start, index in starts
    ]
    table = pd.DataFrame(rows, columns=[*INSTANCE, "method", "seed", "level", "value", "fitted"])
    table = table.astype({"level": float, "value": float, "fitted": float})
    best = table.groupby([*INSTANCE, "level"]).fitted.transform("min")
    return table.assign(best=best, value=np.maximum(table.value, best))


def interval(excess: pd.DataFrame) -> tuple[float, float]:
    """Bootstrap interval (95 %) of the median over instances of the median over starts; NaN for few data sets.

    `excess` has the columns dataset, n_clusters and excess, with a row for each start. The quantiles are those of all
    samples, not of some that are drawn.
    """
    if excess.dataset.nunique() < _FEWEST:
        return math.nan, math.nan
    # Imported here, because it is slow to import and other modules need only the names of the metrics.
    from scipy.special import bdtrc

    starts = [
        [one.to_numpy(float) for _, one in part.groupby("n_clusters").excess]
        for _, part in excess.groupby("dataset")
    ]
    values = np.unique(excess.excess.to_numpy(float))

    def at_most(value: float) -> float:
        """The probability that a sample's median is at most this value."""
        # How many medians of a drawn data set are at most the value, less how many are above it.
        most = max(map(len, starts))
        drawn = np.zeros(2 * most + 1)
        for part in starts:
            below = [bdtrc(len(of) // 2, len(of), (of <= value).mean()) for of in part]
            lead = reduce(np.convolve, [(1 - p, 0, p) for p in below], np.ones(1))
            drawn[most - len(part) : most + len(part) + 1] += lead / len(starts)
        total = reduce(np.convolve, [drawn] * len(starts))
        return float(total[len(total) // 2 + 1 :].sum())

    low, high = (values[bisect_left(values, share, key=at_most)] for share in (0.025, 0.975))
    return float(low), float(high)


def make_leaderboard(scores: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The leaderboard of every cost, as one frame.

    A row is a method on an instance at a level: ``value`` is its cost there, and ``excess`` its distance. Rows without
    data set summarise the instances of a method at a level, and rows without level those of all levels.
    """
    parts = [part for cost in COSTS if len(part := _board(scores, cost, names))]
    board = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    board["label"] = [names.method(str(name)) for name in board.method]
    board["ours"] = board.method.isin(names.ours)
    return board.reindex(columns=COLUMNS).astype({"n_clusters": "Int64"})


def _board(scores: pd.DataFrame, cost: str, names: Names) -> pd.DataFrame:
    starts, place = start_costs(scores, cost), [*INSTANCE, "level"]
    # Nothing can be compared at a level that no start reaches, or among the methods of one family.
    families = starts.method.map(lambda method: names.families.get(method, method))
    several = families.groupby([starts[name] for name in INSTANCE]).transform("nunique") > 1
    starts = starts[np.isfinite(starts.best) & several]
    # To a best known cost of 0 there is no distance, but any other cost is dearer.
    starts = starts.assign(excess=starts.value / starts.best.where(starts.best > 0) - 1)
    if starts.excess.isna().all():
        return starts.iloc[:0]
    of_method = starts.sort_values("value", kind="stable").groupby([*place, "method"], sort=False)
    middle = (of_method.cumcount() == of_method.seed.transform("size") // 2).sort_index()
    rows = starts[middle].drop(columns=["seed", "fitted"])
    control = [name for name in rows.method.unique() if names.family(name) == CONTROL]
    ok = scores[scores.status == "ok"]
    facts = scores.assign(bad=scores.status != "ok").groupby([*INSTANCE, "method"], sort=False).agg(
        starts=("seed", "nunique"), failed=("bad", "sum"), seconds=("seconds", "median"),
        n_rows=("n_rows", "max"), n_groups=("n_groups", "max"), cheapest=(cost, "min"),
    )  # fmt: skip
    random = ok[ok.method.isin(control)].groupby(INSTANCE)[cost].median().rename("random")
    lowest = ok.groupby(INSTANCE)[cost].min().rename("lowest")
    rows = rows.join(facts, on=[*INSTANCE, "method"]).join(random, on=INSTANCE).join(lowest, on=INSTANCE)
    reached = np.isfinite(rows.value)
    gain = rows.random - rows.value.where(reached, rows.cheapest)
    largest = rows.random - rows.best.where(reached, rows.lowest)
    is_worse = (gain <= _LEAST_GAIN * largest).astype(float)
    # Where even the best known cost is above that of random labels, there is nothing to judge.
    rows = rows.assign(worse=is_worse.where(gain.notna() & (largest >= 0)))
    certified = _excess(ok)[cost].groupby(ok.method).max()
    summaries, whole = [], []
    for (method, level), part in rows.groupby(["method", "level"], sort=False):
        mine = starts[(starts.method == method) & (starts.level == level)].dropna(subset="excess")
        if mine.empty:
            continue
        low, high = interval(mine)
        summaries.append(_summary(part) | {"method": method, "level": level, "low": low, "high": high})
    for method, part in rows.groupby("method", sort=False):
        if part.excess.isna().all():
            continue
        reached = part.worse[np.isfinite(part.value)].dropna()
        # Without random labels or results to compare, the mean is NaN, and the method is not worse.
        worse = float(method in control or (reached if len(reached) else part.worse).mean() > 0.5)
        whole.append(_summary(part) | {"method": method, "worse": worse, "certified": certified.get(method)})
    order = sorted(whole, key=lambda row: (row["worse"], row["excess"], -row["reached"] / row["instances"]))
    board = pd.concat([pd.DataFrame(order), pd.DataFrame(summaries), rows], ignore_index=True)
    return board.assign(cost=cost)


def _summary(rows: pd.DataFrame) -> dict[str, Any]:
    """A method on some instances and levels. Of two middle distances the larger counts: one may be infinite."""
    seconds, excess = rows.drop_duplicates(INSTANCE), rows.excess.dropna()
    return {
        "excess": float(excess.quantile(0.5, interpolation="higher")),
        "reached": int(np.isfinite(excess).sum()),
        "instances": len(excess),
        "starts": rows.starts.max(),
        "fewest_starts": rows.starts.min(),
        "failed": seconds.failed.sum(),
        "seconds": seconds.seconds.median(),
    }


def load_leaderboard(path: Path) -> pd.DataFrame:
    """Read the CSV of a `make_leaderboard`."""
    texts = dict.fromkeys(("cost", "dataset", "method", "label"), str)
    return pd.read_csv(path, dtype=texts | {"n_clusters": "Int64"})


def no_better(board: pd.DataFrame, cost: str) -> set[str]:
    """The methods of a leaderboard that are no better than random labels in a cost."""
    return set(board.method[(board.cost == cost) & board.dataset.isna() & (board.worse == 1)])


def instances_of(board: pd.DataFrame, cost: str, level: float | None = None) -> pd.DataFrame:
    """The costs of the methods (columns) on the instances (rows) at a level or at all levels, of a leaderboard."""
    rows = board[(board.cost == cost) & board.dataset.notna()]
    rows = rows if level is None else rows[rows.level == level]
    return rows.set_index([*INSTANCE, "level", "method"]).value.unstack("method", sort=False)


def compared(mine: pd.Series, other: pd.Series) -> tuple[int, int, int]:
    """On how many instances one cost is lower, is higher, and is known beside the other, with one of them finite."""
    known = mine.notna() & other.notna() & (np.isfinite(mine) | np.isfinite(other))
    mine, other = mine[known], other[known]
    cheaper, dearer = mine < other * (1 - EQUAL), other < mine * (1 - EQUAL)
    return int(cheaper.sum()), int(dearer.sum()), len(mine)


def place_labels(cells: pd.DataFrame, cost: str, value: float, unfair: float) -> pd.DataFrame:
    """Where labels with this cost and deviation lie among the methods of one instance: a row for each level.

    ``reached`` by the labels, the ``best`` known cost and its ``method``, the number of ``methods`` that reach the
    level, and how many of them are ``cheaper`` than the labels.
    """
    rows = []
    for level, starts in start_costs(cells, cost).groupby("level"):
        costs = starts.groupby("method").value.quantile(0.5, interpolation="higher")
        best = starts.loc[starts.fitted.idxmin()] if np.isfinite(starts.fitted).any() else None
        rows.append({
            "level": level,
            "reached": math.isfinite(cost_at(level, np.array([value]), np.array([unfair]))[0]),
            "best": math.nan if best is None else best.fitted,
            "method": "" if best is None else best.method,
            "methods": int(np.isfinite(costs).sum()),
            "cheaper": int((costs < value * (1 - EQUAL)).sum()),
        })  # fmt: skip
    return pd.DataFrame(rows)


def kinds_of_data(board: pd.DataFrame, cost: str) -> Iterator[tuple[str, float, pd.DataFrame]]:
    """Kinds of data by rows and groups, a level, and the methods on all data of this kind, the cheapest first.

    Instances with fewer than half as many methods as another one of their kind are left out: few compare there. So are
    methods that are no better than random labels. A kind ends in the number of its data sets. The frames have the
    columns method, excess (the median) and seconds (of one fit, the median).
    """
    rows = board[(board.cost == cost) & board.dataset.notna() & board.excess.notna()]
    rows = rows.assign(
        size=np.digitize(rows.n_rows.astype(float), [10_000]),
        groups=np.digitize(rows.n_groups.astype(float), [3, 10]),
        several=rows.groupby(INSTANCE).method.transform("nunique"),
    )
    marked, kinds = no_better(board, cost), ["size", "groups"]
    rows = rows[2 * rows.several >= rows.groupby(kinds).several.transform("max")]
    rows = rows.assign(n_datasets=rows.groupby(kinds).dataset.transform("nunique"))
    for (size, groups, level), group in rows.groupby([*kinds, "level"]):
        by = group.groupby("method")
        each = by.agg(seconds=("seconds", "median"), n=("excess", "size"))
        each = each.assign(excess=by.excess.quantile(0.5, interpolation="higher"))
        each = each[each.n == len(group[INSTANCE].drop_duplicates())]
        usable = each[np.isfinite(each.excess) & ~each.index.isin(marked)]
        words = ("below 10,000 rows", "10,000 rows or more")[size], ("two", "3 to 9", "ten or more")[groups]
        kind = f"{words[0]}, {words[1]} groups ({count(group.n_datasets.iloc[0], 'data set')})"
        yield kind, float(level), usable.sort_values(["excess", "seconds"]).reset_index()


def mean_ranks(board: pd.DataFrame, cost: str, level: float) -> tuple[pd.Series, float, float]:
    """Mean ranks of the methods that were run on all data sets, Nemenyi's critical difference, and Friedman's p.

    A block is a data set, because its K are not independent: methods are ranked by their mean rank over the K. The
    series is empty if there are fewer than three methods or data sets.
    """
    # Imported here, because it is slow to import and other modules need only the names of the metrics.
    from scipy import stats

    values = instances_of(board, cost, level).dropna(axis=1)
    costs = values.to_numpy()[:, None]
    cheaper = costs < costs.swapaxes(1, 2) * (1 - EQUAL)
    # On an instance: by how many methods one is beaten, less how many it beats.
    beaten = pd.DataFrame(cheaper.sum(axis=2) - cheaper.sum(axis=1), values.index, values.columns)
    ranks = beaten.groupby(level="dataset").mean().rank(axis=1)
    n, k = ranks.shape
    if n < 3 or k < 3:
        return pd.Series(dtype=float), math.nan, math.nan
    differ = math.sqrt(k * (k + 1) / (6 * n)) * stats.studentized_range.ppf(0.95, k, np.inf) / math.sqrt(2)
    p = float(stats.friedmanchisquare(*ranks.T.to_numpy()).pvalue)
    return ranks.mean().sort_values(), float(differ), p


def make_settings(scores: pd.DataFrame) -> pd.DataFrame:
    """The best start of every setting, in the columns of the scores, and these further columns.

    ``setting``: lambda and what differs among the settings of the method. ``excess_X``: by which share a cost exceeds
    at most that of the cheapest labels within the bounds, for the fitted centres, where the fit has certified it.
    """
    points = best_starts(scores)
    setting = pd.Series("", points.index)
    for _, grid in points.groupby([*INSTANCE, "method"], sort=False):
        differ = varied_params(grid.params)
        for index, text in grid.params.items():
            lam = {name: value for name, value in json.loads(text).items() if name == "lam"}
            setting[index] = in_words(lam | differ[text])
    return points.assign(setting=setting).join(_excess(points).add_prefix("excess_"))


def _excess(fits: pd.DataFrame) -> pd.DataFrame:
    """The `gap_` of fits that have certified a cost (a column); NaN without a certificate, and for other costs."""
    stated = [json.loads(text) if isinstance(text, str) else {} for text in fits.estimator]
    of = pd.DataFrame(stated, fits.index).reindex(columns=["cost_", "gap_", "lower_bound_"]).astype(float)
    # A fit states its cost to the centres that it had last, up to 4 % above that to the means of the clusters.
    apart = fits[[*COSTS]].sub(of.cost_, axis=0).div(of.cost_, axis=0).abs()
    certified = apart.eq(apart.min(axis=1), axis=0) & (apart <= 0.05)
    gap = of.gap_.where(np.isfinite(of.gap_) & of.lower_bound_.notna())
    return pd.DataFrame({cost: gap.where(certified[cost]) for cost in COSTS})
