"""The settings of a run, and the leaderboard, which compares methods on equal terms by the areas that fronts dominate.

Three rules make the comparison fair. Every method with random starts gets the same number of them on an instance. The
score of a method is the mean over single starts; its standard deviation and the score of the best starts are shown
too. Two methods are compared only on instances where both were run.

The job `board` writes both frames. The fronts, the answers and the tables of the page are views of the settings.
"""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.names import Names
from fairclust.report.render import plain
from fairclust.report.selection import INSTANCE, SETTING, best_starts, settings_table, varied_params

COSTS = ("sse", "kmedians_cost", "ncut")
FAIRNESS = ("balance", "fairness_error", "delta", "fairness_ratio", "awd", "average_balance")
SHOWN = (*COSTS, *FAIRNESS)
_CERTIFIED = ("sse", "kmedians_cost")
"""Costs that some fits bound from below."""
# A method counts as fully fair if its fairness covers this share of the range from the fairness of the cheapest
# clustering to the best fairness.
FAIR_ENOUGH = 0.95
# Cells with this status were not fitted, so they do not count as runs of the method.
NOT_RUN = "skipped"
# A method on fewer instances than this share of a board's has no rank: a single instance says little about it.
RANKED_FROM = 0.2
_TEXTS = ("cost", "fairness", "dataset", "method", "label", "starts")
COLUMNS = [
    *("cost", "fairness", "dataset", "n_clusters", "method", "label", "ours", "rank", "wins", "score", "sd"),
    *("best", "starts", "settings", "failed", "instances", "seconds"),
]
LEADERBOARD_RULE = (
    "An instance is a data set with a K. Every method that has starts (seeds) gets the same number of "
    "them on an instance: the smallest number that any of these methods was given. A method that is "
    "deterministic has one start.",
    "One start of a method gives a front: its settings that no other setting of this start beats in both "
    "cost and fairness. The start's score is the area (hypervolume) that the front dominates in a box. "
    "The box begins at the cost and fairness of the cheapest clustering of any method. It ends at the "
    "best fairness of any method, and at twice the least extra cost for which any method comes 95% of the "
    "way there. The score 0 is that of plain clustering, and 100 would be full fairness at no extra cost.",
    "The score of a method on an instance is the mean over its starts, shown with the standard deviation. "
    "A further column shows the score of its best starts: for each setting, the start with the lowest objective.",
    "Two methods are compared on the instances where both were run. The method with the higher score wins "
    "the instance; equal scores are half a win for each. The list is sorted by the share of wins, "
    "averaged over all rivals. A method whose fits all failed on an instance has the score 0 there. A "
    "method that was not run on an instance is not compared there. A method that was run on less than a fifth of the "
    "instances has no rank and is nobody's rival: it stands at the end of the list.",
    "Instances where fairness costs nothing, or with fewer than two methods, do not count.",
)


def dominated_areas(x: np.ndarray, y: np.ndarray, of: np.ndarray, n_sets: int) -> np.ndarray:
    """The areas of the unit square, shape (n_sets,), that sets of points with cost x and gain y dominate.

    `of` is the set of each point. Points with x >= 1, y <= 0 or NaN dominate nothing.
    """
    inside = (x < 1) & (y > 0)
    x, y, of = np.clip(x[inside], 0, None), np.clip(y[inside], None, 1), of[inside]
    order = np.lexsort((x, of))
    x, y, of = x[order], y[order], of[order]
    # Adding 2 * of puts every set above the one before it, so that one running maximum serves all sets.
    reached = np.maximum.accumulate(y + 2 * of) - 2 * of
    first = np.diff(of, prepend=-1) > 0
    before = np.where(first, 0.0, np.concatenate([[0.0], reached[:-1]])) if len(x) else reached
    return np.bincount(of, (1 - x) * (reached - before), minlength=n_sets)


def on_equal_terms(scores: pd.DataFrame) -> pd.DataFrame:
    """The cells with the same number of seeds for each method of an instance, with a column `starts`.

    `starts` counts random starts: the seeds times the parameter `n_init`, if the method has it. A method with a
    single seed is taken as deterministic and does not lower the common number of seeds.
    """
    tried = scores[scores.status != NOT_RUN]
    if tried.empty:
        return tried.assign(starts=0)
    place = tried.groupby([*INSTANCE, "method"]).seed.rank(method="dense")
    seeds = place.groupby([tried[name] for name in (*INSTANCE, "method")]).transform("max")
    several = seeds.where(seeds > 1)
    common = several.groupby([tried[name] for name in INSTANCE]).transform("min").fillna(1)
    kept = tried[place <= common]
    given = {text: json.loads(text).get("n_init", 1) for text in kept.params.unique()}
    inner = kept.params.map(
        {text: max(1, int(n)) if isinstance(n, int | float) else 1 for text, n in given.items()}
    )
    most = inner.groupby([kept[name] for name in (*INSTANCE, "method")]).transform("max")
    return kept.assign(starts=(np.minimum(seeds, common)[kept.index] * most).astype(int))


Terms = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]
"""The cells that are compared, the best start of every setting, and the entries; see `make_terms`."""


def make_terms(scores: pd.DataFrame) -> Terms:
    """The cells that are compared, with numbers of instance, entry (a method on an instance) and start (its seed).

    An entry counts its settings and its cells with (ok) and without a result (failed), and sums their seconds.
    """
    cells = on_equal_terms(scores)
    instance = cells.groupby(INSTANCE, sort=False).ngroup()
    entry = cells.groupby([instance, cells.method], sort=False).ngroup()
    start = entry.groupby([entry, cells.seed], sort=False).ngroup()
    cells = cells.assign(instance=instance, entry=entry, start=start, bad=cells.status != "ok")
    by = cells.groupby("entry")
    entries = by[["dataset", "n_clusters", "method", "instance", "starts"]].first()
    entries = entries.assign(settings=by.params.nunique(), failed=by.bad.sum(), seconds=by.seconds.sum())
    return cells, best_starts(cells), entries.assign(ok=by.size() - entries.failed)


def _boxes(points: pd.DataFrame, n_instances: int, cost: np.ndarray, gain: np.ndarray) -> np.ndarray:
    """The box of every instance: rows cheapest, extra, start, span; NaN if the instance does not count."""
    instance, entry = points.instance.to_numpy(int), points.entry.to_numpy(int)
    found = np.full((4, n_instances), np.nan)
    usable = np.isfinite(cost) & ~np.isnan(gain)
    order = np.flatnonzero(usable)[np.argsort(instance[usable], kind="stable")]
    for rows in np.split(order, np.flatnonzero(np.diff(instance[order])) + 1):
        c, g = cost[rows], gain[rows]
        finite = g[np.isfinite(g)]
        if not len(finite) or len(set(entry[rows])) < 2:
            continue
        cheapest = c.min()
        # Among equally cheap clusterings, the fairest one counts. The worst finite error replaces an infinite one.
        start = max(g[c <= cheapest * (1 + 1e-9)].max(), finite.min())
        span = finite.max() - start
        extra = c[g >= start + FAIR_ENOUGH * span].min() - cheapest
        if span > 1e-12 and extra > 1e-9 * cheapest:
            found[:, instance[rows[0]]] = cheapest, extra, start, span
    return found


def instance_scores(terms: Terms, cost: str, fairness: str) -> pd.DataFrame:
    """Scores of every method on every instance that counts, for one cost and one fairness metric."""
    sign = 1 if METRICS[fairness].direction == "higher" else -1
    cells, points, entries = terms
    columns = [*INSTANCE, "method", "score", "sd", "best", "starts", "settings", "failed", "seconds"]
    if points.empty:
        return pd.DataFrame(columns=columns)
    costs, gains = points[cost].to_numpy(float), sign * points[fairness].to_numpy(float)
    box = _boxes(points, int(entries.instance.max()) + 1, costs, gains)

    def areas(frame: pd.DataFrame, of: str, n_sets: int) -> np.ndarray:
        cheapest, extra, start, span = box[:, frame.instance.to_numpy(int)]
        ok = (frame.status == "ok").to_numpy()
        with np.errstate(invalid="ignore"):
            x = np.where(ok, (frame[cost].to_numpy(float) - cheapest) / (2 * extra), np.nan)
            y = (sign * frame[fairness].to_numpy(float) - start) / span
        return dominated_areas(x, y, frame[of].to_numpy(int), n_sets)

    entry_of_start = cells.groupby("start").entry.first()
    single = pd.Series(areas(cells, "start", len(entry_of_start))).groupby(entry_of_start)
    best = areas(points, "entry", len(entries))
    found = entries.assign(score=single.mean(), sd=single.std(ddof=1), best=best)
    # A method whose results lack this cost is left out. A method without any result has failed and is kept.
    has_cost = cells[cost].notna().groupby(cells.entry).any()
    counts = np.isfinite(box[0])[entries.instance.to_numpy(int)]
    return found[counts & (has_cost | (found.ok == 0))].reset_index(drop=True)[columns]


def _ranked(found: pd.DataFrame) -> pd.DataFrame:
    """The methods of one cost and fairness metric by their wins, those without a rank at the end.

    Scores are means over the instances of a method, and `starts` is one number, or the smallest and the largest.
    """
    values = found.set_index(["method", *INSTANCE]).score.unstack(INSTANCE, sort=False).round(9)
    n_ran = values.notna().sum(axis=1).to_numpy()
    ranked = n_ran >= RANKED_FROM * values.shape[1]
    if not ranked.any():
        ranked[:] = True
    scores = values.to_numpy()
    differences = scores[:, None, :] - scores[None, ranked, :]
    shared = np.isfinite(differences)
    points = np.where(shared, (np.sign(np.nan_to_num(differences)) + 1) / 2, 0.0).sum(axis=2)
    games = shared.sum(axis=2).astype(float)
    games[np.flatnonzero(ranked), np.arange(ranked.sum())] = 0  # a method is not its own rival
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = np.where(games > 0, points / games, np.nan)
    wins = np.nansum(shares, axis=1) / np.maximum((games > 0).sum(axis=1), 1)
    by = found.groupby("method", sort=False)
    least, most = by.starts.min().astype(int).astype(str), by.starts.max().astype(int).astype(str)
    starts = least.where(least == most, least + " to " + most)
    methods = pd.DataFrame({"wins": wins, "_ranked": ranked}, index=values.index).join(
        by[["score", "sd", "best"]].mean().join(starts.rename("starts"))
    )
    methods = methods.assign(instances=by.size(), failed=by.failed.sum(), seconds=by.seconds.sum())
    methods = methods.sort_values(["_ranked", "wins", "score"], ascending=False, kind="stable")
    place = methods.wins.round(9).where(methods.pop("_ranked")).rank(ascending=False, method="min")
    methods.insert(0, "rank", place.astype("Int64"))
    return methods


def make_leaderboard(scores: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The leaderboards of every cost and fairness metric for which an instance counts, as one frame.

    A row is a method on an instance. Rows without data set and K summarise all instances of the method.
    """
    terms, parts = make_terms(scores), []
    for cost in (name for name in COSTS if name in scores and terms[1][name].notna().any()):
        for fairness in (name for name in FAIRNESS if name in scores):
            each = instance_scores(terms, cost, fairness)
            if len(each):
                place = each.groupby(INSTANCE).score.rank(ascending=False, method="min").astype("Int64")
                whole = _ranked(each).reset_index(names="method")
                both = pd.concat([whole, each.assign(rank=place)], ignore_index=True)
                parts.append(both.assign(cost=cost, fairness=fairness))
    found = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    found["label"] = [names.method(str(name)) for name in found.method]
    found["ours"] = [names.is_ours(str(name)) for name in found.method]
    for count in ("n_clusters", "settings", "instances"):
        found[count] = found[count].astype("Int64") if count in found else pd.NA
    return found.reindex(columns=COLUMNS)


def load_leaderboard(path: Path) -> pd.DataFrame:
    """Read the CSV of a `make_leaderboard`."""
    counts = dict.fromkeys(("n_clusters", "rank", "settings", "instances"), "Int64")
    return pd.read_csv(path, dtype=dict.fromkeys(_TEXTS, str) | counts, na_values={"starts": []})


def make_settings(scores: pd.DataFrame) -> pd.DataFrame:
    """The best start of every setting, in the columns of the scores, and these further columns.

    ``setting``: lambda and what differs among the settings of the method. ``X mean`` and ``X sd`` of every cost and
    fairness metric: over the starts, whose number is ``starts``. ``all_seconds``: of all starts. ``excess_X``: by which
    share a cost exceeds that of the cheapest labels for the fitted centres at most, where the fit has certified it.
    """
    points = best_starts(scores)
    of = points.set_index(SETTING).index
    table = settings_table(scores, SHOWN, with_sd=True).reindex(of)
    more = {f"{name} mean": table[name].to_numpy(float) for name in SHOWN}
    more |= {f"{name} sd": table[f"{name} sd"].to_numpy(float) for name in SHOWN}
    for cost in _CERTIFIED:
        pairs = zip(points.estimator, points[cost], strict=True)
        more[f"excess_{cost}"] = np.array([_excess(text, value) for text, value in pairs], float)
    seconds = scores[scores.status == "ok"].groupby(SETTING).seconds.sum().reindex(of).to_numpy(float)
    setting = pd.Series("", index=points.index)
    for _, own in points.groupby(["dataset", "n_clusters", "method"], sort=False):
        varied = varied_params(own.params)
        for at, text in own.params.items():
            params, shown = json.loads(text), varied[text]
            lam = [f"λ = {plain(params['lam'])}"] if "lam" in params else []
            others = [f"{name} = {plain(shown[name])}" for name in sorted(set(shown) - {"lam"})]
            setting[at] = ", ".join([*lam, *others])
    return points.assign(setting=setting, starts=table.starts.to_numpy(), all_seconds=seconds, **more)


def _excess(estimator: object, value: float) -> float:
    """The share by which the cost of a fit exceeds its bound; NaN without a bound, or for another cost."""
    stated = json.loads(estimator) if isinstance(estimator, str) else {}
    cost, bound = stated.get("cost_"), stated.get("lower_bound_")
    # The scorer measures the cost to the means of the clusters, and a fit to the centres that it had last.
    if not cost or not bound or not abs(value - cost) <= 1e-3 * cost:
        return math.nan
    return max(0.0, cost / bound - 1)
