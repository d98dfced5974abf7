"""Pareto fronts, and the leaderboard of methods on equal terms that is made of them.

The terms are equal in three ways. Every method that has starts gets the same number of them. A method's score
is the mean over single starts, with its spread, beside the score of the best of its starts. Two methods are
compared only on instances where both were run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.cell_store import atomic_write
from fairclust.report.names import Names

COSTS = ("sse", "kmedians_cost", "ncut")
FAIRNESS = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "average_balance")
# Full fairness counts as reached at this share of the way from the cheapest clustering's to the best fairness.
FAIR_ENOUGH = 0.95
INSTANCE = ["dataset", "n_clusters"]
# A cell with this status was not tried, so that the method does not count as run.
NOT_RUN = "skipped"
LEADERBOARD_RULE = (
    "An instance is a data set with a K. Every method that has starts (seeds) gets the same number of them on "
    "an instance: the smallest number that any of these methods was given. A method that is deterministic has "
    "one start.",
    "One start of a method gives a front: its settings that no other setting of this start beats in both cost "
    "and fairness. The start's score is the area (hypervolume) that the front dominates in a box. The box "
    "begins at the cost and fairness of the cheapest clustering of any method. It ends at the best fairness of "
    "any method, and at twice the least extra cost for which any method comes 95% of the way there. 0 is plain "
    "clustering, 100 would be full fairness at no extra cost.",
    "The score of a method on an instance is the mean over its starts, shown with the standard deviation. "
    "Beside it stands the score of its best starts: of each setting the start with the lowest objective.",
    "Two methods are compared on the instances where both were run. The method with the higher score wins the "
    "instance; equal scores are half a win for each. The list is sorted by the share of wins, averaged over all "
    "rivals. A method whose fits all failed on an instance has the score 0 there. A method that was not run on "
    "an instance is not compared there.",
    "Instances where fairness costs nothing, or with fewer than two methods, do not count.",
)


def best_of_starts(cells: pd.DataFrame) -> pd.DataFrame:
    """Of every setting of every method, data set and K the start with the lowest objective.

    Only cells that ended well are looked at. The lowest sum of squares counts where there is no objective.
    """
    ok = cells[cells.status == "ok"]
    by = ok.objective.where(ok.objective.notna(), ok.sse)
    ranked = ok.assign(_by=by).sort_values(["lam", "_by", "seed"], kind="stable")
    best = ranked.drop_duplicates([*INSTANCE, "method", "params"]).drop(columns="_by")
    return best.sort_values([*INSTANCE, "method", "lam"], kind="stable", ignore_index=True)


def pareto(cost: np.ndarray, fairness: np.ndarray, higher: bool) -> np.ndarray:
    """Which points no other beats, by being better in one and no worse in the other.

    Of equal points all are on the front.

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


def dominated_areas(x: pd.Series, y: pd.Series, by: Sequence[pd.Series]) -> pd.Series:
    """Areas of the unit square that groups of points dominate; x is a cost, y a gain, both scaled to the square."""
    inside = (x < 1) & (y > 0)
    keys = [key[inside] for key in by]
    points = pd.DataFrame({"x": x[inside].clip(lower=0), "y": y[inside].clip(upper=1)})
    points = points.sort_values("x", kind="stable")
    keys = [key[points.index] for key in keys]
    reached = points.y.groupby(keys).cummax()
    before = reached.groupby(keys).shift(fill_value=0.0)
    return ((1 - points.x) * (reached - before)).groupby(keys).sum()


def on_equal_terms(scores: pd.DataFrame) -> pd.DataFrame:
    """The cells of as many seeds for each method of an instance, with a column `starts`.

    `starts` counts random starts: seeds times `n_init`, where a method has that parameter. A method with one
    seed, where others have more, is deterministic.
    """
    tried = scores[scores.status != NOT_RUN]
    if tried.empty:
        return tried.assign(starts=0)
    place = tried.groupby([*INSTANCE, "method"]).seed.rank(method="dense")
    seeds = place.groupby([tried[name] for name in (*INSTANCE, "method")]).transform("max")
    several = seeds.where(seeds > 1)
    common = several.groupby([tried[name] for name in INSTANCE]).transform("min").fillna(1)
    kept = tried[place <= common]
    inner = kept.params.map({text: _n_init(text) for text in kept.params.unique()})
    most = inner.groupby([kept[name] for name in (*INSTANCE, "method")]).transform("max")
    return kept.assign(starts=(np.minimum(seeds, common)[kept.index] * most).astype(int))


def _n_init(params: str) -> int:
    try:
        found = json.loads(params).get("n_init", 1)
    except (ValueError, AttributeError):
        return 1
    return max(1, int(found)) if isinstance(found, int | float) else 1


def boxes(points: pd.DataFrame, cost: str, fairness: str) -> pd.DataFrame:
    """The box of every instance that counts: columns cheapest, extra, start, span.

    Parameters
    ----------
    points : DataFrame
        From `best_of_starts`.
    cost, fairness : str
        Names of metrics.
    """
    sign = 1 if METRICS[fairness].direction == "higher" else -1
    found = {}
    for at, of in points.groupby(INSTANCE, sort=False):
        c, gain = of[cost].to_numpy(float), sign * of[fairness].to_numpy(float)
        usable = np.isfinite(c) & ~np.isnan(gain)
        c, gain, methods = c[usable], gain[usable], of.method.to_numpy()[usable]
        finite = gain[np.isfinite(gain)]
        if len(set(methods)) < 2 or not len(finite):
            continue
        cheapest = c.min()
        # Of equally cheap clusterings the fairest; an infinite error stands for the worst finite one.
        start = max(gain[c <= cheapest * (1 + 1e-9)].max(), finite.min())
        span = finite.max() - start
        extra = c[gain >= start + FAIR_ENOUGH * span].min() - cheapest
        if span > 1e-12 and extra > 1e-9 * cheapest:
            found[at] = {"cheapest": cheapest, "extra": extra, "start": start, "span": span}
    index = pd.MultiIndex.from_tuples(list(found) or [], names=INSTANCE)
    return pd.DataFrame(list(found.values()), index=index, columns=["cheapest", "extra", "start", "span"])


def instance_scores(cells: pd.DataFrame, cost: str, fairness: str) -> pd.DataFrame:
    """Scores of every method on every instance that counts.

    Parameters
    ----------
    cells : DataFrame
        From `on_equal_terms`.
    cost, fairness : str
        Names of metrics.

    Returns
    -------
    DataFrame
        Columns dataset, n_clusters, method, score, sd, best, starts, settings, failed (cells without a result),
        seconds (of all fits of the method on the instance).
    """
    points = best_of_starts(cells)
    frame = boxes(points, cost, fairness)
    columns = [*INSTANCE, "method", "score", "sd", "best", "starts", "settings", "failed", "seconds"]
    if frame.empty:
        return pd.DataFrame(columns=columns)
    mine = cells[pd.MultiIndex.from_frame(cells[INSTANCE]).isin(frame.index)]
    # A method without this cost on an instance is no candidate there: it did not fail.
    has_cost = mine[cost].notna() | (mine.status != "ok")
    known = has_cost.groupby([mine[name] for name in (*INSTANCE, "method")]).transform("any")
    mine = mine[known]
    sign = 1 if METRICS[fairness].direction == "higher" else -1

    def areas(of: pd.DataFrame, by: list[str]) -> pd.Series:
        of = of[of.status == "ok"].join(frame, on=INSTANCE)
        x = (of[cost] - of.cheapest) / (2 * of.extra)
        y = (sign * of[fairness] - of.start) / of.span
        return dominated_areas(x, y, [of[name] for name in by])

    key = [*INSTANCE, "method"]
    single = areas(mine, [*key, "seed"]).reindex(
        pd.MultiIndex.from_frame(mine[[*key, "seed"]].drop_duplicates()), fill_value=0.0
    )
    best = areas(points[pd.MultiIndex.from_frame(points[INSTANCE]).isin(frame.index)], key)
    by_method, of_cells = single.groupby(level=key, sort=False), mine.groupby(key, sort=False)
    found = pd.DataFrame(
        {
            "score": by_method.mean(),
            "sd": by_method.std(ddof=1),
            "starts": of_cells.starts.first(),
            "settings": of_cells.params.nunique(),
            "failed": of_cells.status.agg(lambda status: int((status != "ok").sum())),
            "seconds": of_cells.seconds.sum(),
        }
    )
    found["best"] = best.reindex(found.index, fill_value=0.0)
    return found.reset_index()[columns]


@dataclass(frozen=True)
class Board:
    """A leaderboard for one cost and one fairness metric.

    Attributes
    ----------
    cost, fairness : str
    methods : DataFrame
        Indexed by method, the first one first: rank, wins, score, sd, best (means over the method's own
        instances), starts (text: one number, or the least to the most), instances, seconds.
    instances : DataFrame
        From `instance_scores`.
    """

    cost: str
    fairness: str
    methods: pd.DataFrame
    instances: pd.DataFrame

    def table(self, column: str = "score") -> pd.DataFrame:
        """A column of `instances`: a row for each method, a column for each instance, NaN where not run."""
        return self.instances.pivot_table(index="method", columns=INSTANCE, values=column, sort=False)

    def duels(self, method: str) -> pd.DataFrame:
        """The method against every rival on the instances that they share.

        Returns
        -------
        DataFrame
            Indexed by rival: shared (number of instances), won, lost, lead (mean difference of scores).
        """
        table = self.table()
        others = table.drop(index=method)
        differences = (table.loc[method] - others).round(9)
        shared = differences.notna().sum(axis=1)
        found = pd.DataFrame(
            {
                "shared": shared,
                "won": (differences > 0).sum(axis=1),
                "lost": (differences < 0).sum(axis=1),
                "lead": differences.mean(axis=1),
            }
        )
        return found[found.shared > 0].sort_values(["lead", "shared"], kind="stable")

    def behind(self, method: str) -> pd.DataFrame:
        """The instances where another method has a higher score, by how much, the largest first.

        Returns
        -------
        DataFrame
            Columns dataset, n_clusters, leader, lead.
        """
        table = self.table()
        ran = table.columns[table.loc[method].notna()]
        rows = []
        for at in ran:
            leader = table[at].idxmax()
            lead = round(float(table.loc[leader, at] - table.loc[method, at]), 9)
            if lead > 0:
                rows.append({"dataset": at[0], "n_clusters": at[1], "leader": leader, "lead": lead})
        found = pd.DataFrame(rows, columns=["dataset", "n_clusters", "leader", "lead"])
        return found.sort_values("lead", ascending=False, kind="stable", ignore_index=True)


def make_board(cells: pd.DataFrame, cost: str, fairness: str) -> Board | None:
    """Rank the methods by a cost and a fairness metric.

    Parameters
    ----------
    cells : DataFrame
        From `on_equal_terms`.
    cost, fairness : str

    Returns
    -------
    Board or None
        None if no instance counts.
    """
    found = instance_scores(cells, cost, fairness)
    if found.empty:
        return None
    table = found.pivot_table(index="method", columns=INSTANCE, values="score", sort=False)
    values = table.to_numpy().round(9)
    differences = values[:, None, :] - values[None, :, :]
    shared = np.isfinite(differences)
    points = np.where(shared, (np.sign(np.nan_to_num(differences)) + 1) / 2, 0.0).sum(axis=2)
    games = shared.sum(axis=2).astype(float)
    np.fill_diagonal(games, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(games > 0, points / games, np.nan)
    rivals = (games > 0).sum(axis=1)
    wins = np.nansum(shares, axis=1) / np.maximum(rivals, 1)
    by = found.groupby("method", sort=False)
    methods = pd.DataFrame(
        {
            "wins": pd.Series(wins, index=table.index),
            "score": by.score.mean(),
            "sd": by.sd.mean(),
            "best": by.best.mean(),
            "starts": by.starts.agg(_span),
            "instances": by.size(),
            "failed": by.failed.sum(),
            "seconds": by.seconds.sum(),
        }
    )
    methods = methods.sort_values(["wins", "score"], ascending=False, kind="stable")
    methods.insert(0, "rank", methods.wins.round(9).rank(ascending=False, method="min").astype(int))
    return Board(cost, fairness, methods, found)


def _span(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return str(low) if low == high else f"{low} to {high}"


def make_boards(scores: pd.DataFrame) -> list[Board]:
    """A leaderboard for every cost and fairness metric for which an instance counts."""
    cells = on_equal_terms(scores)
    found = []
    for cost in COSTS:
        if cells[cost].notna().any():
            boards = [make_board(cells, cost, fairness) for fairness in FAIRNESS]
            found += [board for board in boards if board is not None]
    return found


def sentences(board: Board, names: Names) -> list[str]:
    """Where the leading method does not lead, then by how much it leads; the same of our best method."""
    first = str(board.methods.index[0])
    found = []
    ours = [str(name) for name in board.methods.index if names.is_ours(str(name))]
    if ours and ours[0] != first:
        found += _trails(board, names, ours[0], first)
    found += _where_behind(board, names, first)
    for rival, row in board.duels(first).iterrows():
        found.append(
            f"{names.method(first)} leads {names.method(str(rival))} by {100 * row.lead:.1f} points on average "
            f"over {_count(row.shared)} that they share (it is ahead on {row.won:.0f}, behind on {row.lost:.0f})."
            if row.lead > 0
            else f"{names.method(first)} trails {names.method(str(rival))} by {-100 * row.lead:.1f} points on "
            f"average over {_count(row.shared)} that they share (ahead on {row.won:.0f}, behind on {row.lost:.0f})."
        )
        if len(found) > 4:
            break
    return found


def _trails(board: Board, names: Names, ours: str, first: str) -> list[str]:
    rank, duels = int(board.methods.loc[ours, "rank"]), board.duels(ours)
    text = f"This project's best method here, {names.method(ours)}, does not lead: it has rank {rank}"
    if first in duels.index:
        row = duels.loc[first]
        side = "behind" if row.lead < 0 else "ahead of"
        text += f", {abs(100 * row.lead):.1f} points {side} {names.method(first)} over {_count(row.shared)}"
    return [text + "."]


def _where_behind(board: Board, names: Names, first: str) -> list[str]:
    behind = board.behind(first)
    ran = int(board.methods.loc[first, "instances"])
    if behind.empty:
        return [f"{names.method(first)} has the highest score on all of its {_count(ran)}."]
    places = [
        f"{names.dataset(str(row.dataset))}, K = {row.n_clusters} ({names.method(str(row.leader))} is ahead by "
        f"{100 * row.lead:.1f} points)"
        for row in behind.itertuples()
    ]
    return [f"{names.method(first)} does not lead on {len(behind)} of its {_count(ran)}: {'; '.join(places)}."]


def _count(number: float) -> str:
    return f"{number:.0f} instance" + ("s" if number != 1 else "")


def make_leaderboard(scores: pd.DataFrame, names: Names, csv: Path) -> None:
    """Write the leaderboards of all costs and fairness metrics as one CSV.

    A row is a method on an instance; rows without data set and K are over all instances of the method.
    Columns: cost, fairness, dataset, n_clusters, method, label, ours, rank, wins, score, sd, best, starts,
    settings, failed, instances, seconds.

    Parameters
    ----------
    scores : DataFrame
        From `scores.load_scores`.
    names : Names
    csv : Path
        Output.
    """
    columns = [
        *("cost", "fairness", "dataset", "n_clusters", "method", "label", "ours", "rank", "wins", "score", "sd"),
        *("best", "starts", "settings", "failed", "instances", "seconds"),
    ]
    parts = []
    for board in make_boards(scores):
        whole = board.methods.reset_index(names="method")
        each = board.instances.assign(
            rank=board.instances.groupby(INSTANCE).score.rank(ascending=False, method="min").astype(int)
        )
        both = pd.concat([whole, each], ignore_index=True)
        parts.append(both.assign(cost=board.cost, fairness=board.fairness))
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
    found["label"] = [names.method(str(name)) for name in found.method]
    found["ours"] = [names.is_ours(str(name)) for name in found.method]
    for count in ("n_clusters", "settings", "instances"):
        found[count] = found[count].astype("Int64") if count in found else pd.NA
    with atomic_write(csv) as file:
        found.reindex(columns=columns).to_csv(file, index=False)
