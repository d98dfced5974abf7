"""Choice of the setting that represents a method in a table. The table then shows all starts of this setting."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairclust.messages import brief
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.grids import canonical_json
from fairclust.pipeline.papers import MatchSpec
from fairclust.report.render import joined, plain

NOT_RUN = "not in this run"
INSTANCE = ["dataset", "n_clusters"]
"""An instance is a data set with a K."""
SETTING = [*INSTANCE, "method", "params"]
"""The columns that together name one setting."""
HAIR = 1 + 1e-9
"""Factor by which tolerances are widened against rounding errors: .025 - .02 is not .005 in floating point."""
LEVEL_SHARE = 0.02
"""A clustering is as fair as a paper's if its fairness is worse by no more than this share of the reported one."""


class Spread(NamedTuple):
    """A metric over the starts (seeds) of one setting."""

    mean: float = math.nan
    sd: float = math.nan  # with n - 1, so NaN for a single start
    low: float = math.nan
    high: float = math.nan
    n: int = 0  # number of starts that have a value


def spread(values: pd.Series) -> Spread:
    """Mean, standard deviation and range of a series of floats, without the missing values."""
    known = values.astype(float).dropna().to_numpy()
    if not len(known):
        return Spread()
    sd = float(np.std(known, ddof=1)) if len(known) > 1 and np.isfinite(known).all() else math.nan
    return Spread(float(known.mean()), sd, float(known.min()), float(known.max()), len(known))


class Choice(NamedTuple):
    """A chosen setting, and how it was chosen."""

    # The starts of the setting with status 'ok'; empty if there is nothing to choose from.
    cells: pd.DataFrame
    note: str = ""  # why there is no cell, or what the reader must know about the chosen setting
    n_all: int = 0  # number of starts of the setting, or of the method's cells if no setting was chosen
    setting: str = ""  # the parameters that differ within the grid, with their chosen values
    reached: bool = True  # whether the setting is as fair as required
    loosened: bool = False  # whether the tolerance of the level was used to find the setting

    def spread(self, metric: str) -> Spread:
        """A metric over the starts."""
        return spread(self.cells[metric]) if metric in self.cells else Spread()


def where(rows: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """The rows with these values in these columns; NaN and None stand for a missing value."""
    for column, value in wanted.items():
        same = rows[column].isna() if pd.isna(value) else rows[column] == value
        rows = rows[same.fillna(False).astype(bool)]
    return rows


def cells_of(cells: pd.DataFrame, dataset: str, method: str, n_clusters: float | None = None) -> pd.DataFrame:
    """The cells of a method on a data set with one K, or with every K if it is None or NaN."""
    return where(cells, dataset=dataset, method=method, **of_k(n_clusters))


def of_k(n_clusters: float | None) -> dict[str, int]:
    """The column of K for `where`, which every K has if it is None or NaN."""
    return {} if n_clusters is None or pd.isna(n_clusters) else {"n_clusters": int(n_clusters)}


def whole_settings(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells that use all clusters, of the settings in which at least half of the starts do.

    A single cluster would be perfectly fair.
    """
    empty = cells.n_nonempty < cells.n_clusters
    share = empty.groupby([cells.method, cells.n_clusters, cells.params]).transform("mean")
    return cells[~empty & (share <= 0.5)]


def best_starts(cells: pd.DataFrame) -> pd.DataFrame:
    """The start with the lowest objective, for every setting of every method on every data set and K.

    Only cells with status 'ok' count. Cells without an objective are ordered by their sum of squares.
    """
    ok = cells[cells.status == "ok"]
    by = ok.objective.where(ok.objective.notna(), ok.sse)
    ranked = ok.assign(_by=by).sort_values(["lam", "_by", "seed"], kind="stable")
    best = ranked.drop_duplicates(SETTING).drop(columns="_by")
    return best.sort_values([*INSTANCE, "method", "lam"], kind="stable", ignore_index=True)


def settings_table(
    cells: pd.DataFrame, metrics: Iterable[str], by: Sequence[str] = SETTING, *, with_sd: bool = False
) -> pd.DataFrame:
    """The settings of methods: a row for each, in the order of the cells, indexed by the columns of `by`.

    Columns: the means of the metrics over the starts with status 'ok', ``lam``, ``cost`` (the mean objective, or the
    mean SSE if a start has no objective), ``starts``, and `with_sd` as ``X sd`` the standard deviations.
    """
    shown = list(dict.fromkeys(["lam", "objective", "sse", *metrics]))
    ok = cells.loc[cells.status == "ok", [*by, *shown]]
    groups = ok.astype(dict.fromkeys(shown, float)).groupby(list(by), sort=False)
    means, starts = groups[shown].mean(), groups.size()
    cost = means.objective.where(groups.objective.count() == starts, means.sse)
    table = means.assign(cost=cost, starts=starts)
    return table.join(groups[shown].std(ddof=1).add_suffix(" sd")) if with_sd else table


def within(values: Any, level: float, fairness: str) -> Any:
    """Whether values of a fairness metric, a single one or a series, are at least as good as the level."""
    hair = (HAIR - 1) * abs(level)
    return values >= level - hair if COLUMNS[fairness].direction == "higher" else values <= level + hair


def choose(cells: pd.DataFrame, metric: str = "") -> Choice:
    """The setting of a method with the best mean of a metric over its starts, or else with the lowest mean objective.

    If neither direction of the metric is better, the highest mean is chosen.
    """
    if cells.empty:
        return Choice(cells, NOT_RUN)
    means = settings_table(cells, [metric] if metric else [], ["params"])
    if means.empty:
        first = cells.iloc[0]
        return Choice(cells[:0], f"{first.status}: {first_line(first.reason).rstrip('.')}", len(cells))
    if metric and means[metric].notna().any():
        direction = "lower" if COLUMNS[metric].direction == "lower" else "higher"
        return _setting(cells, _first(means[metric], direction))
    return _setting(cells, _first(means.cost, "lower"))


def at_level(cells: pd.DataFrame, level: float, match: MatchSpec, cost: float = math.nan) -> Choice:
    """A method at a level of fairness: a point of its front, interpolated between the starts of two settings.

    The ends are the cheapest setting that is fair enough by its mean, and the fairest of the cheaper ones. If none is
    fair enough, the setting nearest to `level` and `cost` is shown. If the order of `match` is lambda, it is the
    setting with the smallest one that is fair enough. Interpolated cells have no params. Only `whole_settings` count,
    if there are any.
    """
    ok = cells[cells.status == "ok"]
    if len(whole := whole_settings(ok)):
        lost = cells.index.isin(ok.index.difference(whole.index))
        cells = cells.assign(status=cells.status.mask(lost, "empty clusters"))
    # Some methods have no lambda.
    is_by_lam = match.order == "lam"
    means = settings_table(cells, [match.fairness, match.order], ["params"])
    means = means[means[match.fairness].notna() & (means[match.order].notna() | is_by_lam)]
    if means.empty:
        return choose(cells)
    fair = within(means[match.fairness], level, match.fairness)
    if not fair.any():
        scale = abs(level) or 1.0
        apart = ((means[match.fairness] - level) / scale) ** 2
        if cost and not math.isnan(cost):
            apart += (means[match.order] / cost - 1) ** 2
        note = f"no setting of the grid reaches the level {level:.3g}; the one nearest to the reported values is shown"
        return _setting(cells, apart.idxmin())._replace(reached=False, note=note)
    if is_by_lam:
        lams = means.lam[fair]
        return _setting(cells, _first(means.cost[fair][lams.isna().all() | (lams == lams.min())], "lower"))
    costs = means[match.order] * (-1 if COLUMNS[match.order].direction == "higher" else 1)
    enough = costs[fair].idxmin()
    less = means[~fair & (costs < costs[enough]) & np.isfinite(means[match.fairness])]
    if less.empty:
        return _setting(cells, enough)
    beside = _first(less[match.fairness], COLUMNS[match.fairness].direction)
    near, far = (
        cells[(cells.params == params) & (cells.status == "ok")].drop_duplicates("seed").set_index("seed")
        for params in (enough, beside)
    )
    # A start is interpolated between its own two ends, so only seeds that both settings have count.
    seeds = near.index.intersection(far.index)
    near, far = near.loc[seeds], far.loc[seeds]
    ends = (far[match.fairness].astype(float).mean(), near[match.fairness].astype(float).mean())
    if seeds.empty or not np.isfinite(ends).all() or ends[0] == ends[1]:
        return _setting(cells, enough)
    share = min(1.0, max(0.0, (level - ends[0]) / (ends[1] - ends[0])))
    between = near.copy()
    sizes = ("n_clusters", "n_rows", "n_groups", "n_features")
    for name in between.select_dtypes("number").columns.difference(sizes, sort=False):
        low, high = far[name].astype(float), near[name].astype(float)
        between[name] = low + share * (high - low)
    texts = cells.params.unique()
    words = f"between {varied(beside, texts)} and {varied(enough, texts)}"
    between = between.assign(lam=math.nan, params="").reset_index()
    return Choice(between, "", len(seeds), words)


def _setting(cells: pd.DataFrame, params: str) -> Choice:
    """All starts of one setting, named by what differs within the grid, with a note on lost starts."""
    starts = cells[cells.params == params]
    ok, note = starts[starts.status == "ok"], ""
    if len(ok) < len(starts):
        lost = starts[starts.status != "ok"].status.iloc[0]
        note = f"{len(ok)} of {len(starts)} starts ended well, others: {lost}"
    return Choice(ok, note, len(starts), varied(params, cells.params.unique()))


def choose_printed(cells: pd.DataFrame, lam: float, params: Mapping[str, Any]) -> Choice:
    """The setting that a paper publishes: the printed lambda (NaN if there is none) and further parameters.

    The choice has no cells if the setting was not run. If several settings of the grid fit what the paper publishes,
    it is the one with the lowest mean objective, with a note.
    """
    wanted = {name: canonical_json(value) for name, value in params.items()}

    def fits(text: str) -> bool:
        stated = json.loads(text)
        return all(name in stated and canonical_json(stated[name]) == value for name, value in wanted.items())

    fitting = cells[cells.params.isin(list(filter(fits, cells.params.unique())))]
    asked = dict(params)
    if not math.isnan(lam):
        fitting, asked = fitting[fitting.lam == lam], {"lam": lam, **asked}
    words = in_words(asked)
    if fitting.empty and len(cells):
        return Choice(fitting, f"not run with the published setting {words}")
    choice = choose(fitting)
    n_settings = fitting.params.nunique()
    note = f"{n_settings} settings fit what is published, and the one with the lowest objective is shown"
    note = joined(choice.note, note if n_settings > 1 and len(choice.cells) else "")
    setting = choice.setting if n_settings > 1 and choice.setting else words
    return choice._replace(note=note, setting=setting)


def allowed(fairness: str, value: float, decimals: int) -> float:
    """The worst value of a fairness metric that is as fair as a value with so many printed decimals.

    It is looser by 2 %, or by half a unit of the last printed digit if that is more: 0.00 can be the rounded value of
    an error up to 0.005, and 0.50 that of a balance of 0.495.
    """
    slack = max(half_unit(decimals), LEVEL_SHARE * abs(value))
    return value + slack if COLUMNS[fairness].direction == "lower" else value - slack


def reported_level(
    match: MatchSpec,
    table: str,
    reported: pd.DataFrame,
    dataset: str,
    method: str,
    own: str = "",
    n_clusters: float | None = None,
    lam: float = math.nan,
) -> tuple[float, float] | None:
    """The best fairness that a paper reports for a method, or else for the method `own`, and what it allows.

    Values of the table that `match` names count, or else those of `table`, with this K, and with this lambda if the
    paper reports several for the method. None if the paper reports no value.
    """
    place = {"table": match.table or table, "dataset": dataset, "metric": match.fairness, **of_k(n_clusters)}
    printed = where(reported, **place).dropna(subset="value")
    lower = COLUMNS[match.fairness].direction == "lower"
    for name in (method, own):
        mine = where(printed, method=name)
        if name == method and (mine.lam == lam).any():
            mine = where(mine, lam=lam)
        if len(mine):
            first = mine.sort_values("value", ascending=lower).iloc[0]
            value = float(first.value)
            return value, allowed(match.fairness, value, int(first.decimals))
    return None


def half_unit(decimals: int) -> float:
    """Half a unit of the last digit of a number with this many printed decimals."""
    return 0.5 * 10.0**-decimals


def varied_params(settings: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Settings (JSON texts), each with its parameters that differ among them."""
    parsed = {text: json.loads(text) for text in settings}
    names = dict.fromkeys(name for params in parsed.values() for name in params)
    differ = [name for name in names if len({canonical_json(one.get(name)) for one in parsed.values()}) > 1]
    return {text: {n: value for n, value in one.items() if n in differ} for text, one in parsed.items()}


def varied(params: str, settings: Iterable[str]) -> str:
    """The parameters of one of the settings that differ among them, in words."""
    return in_words(varied_params(settings)[params])


def in_words(params: Mapping[str, Any]) -> str:
    """Parameters for readers, lambda first."""
    ordered = sorted(params.items(), key=lambda one: (one[0] != "lam", one[0]))
    return ", ".join(f"{'λ' if name == 'lam' else name} = {plain(value)}" for name, value in ordered)


def _first(values: pd.Series, direction: str) -> Any:
    """Index of the best value; the first index if all are missing, as for a graph without an objective."""
    if values.isna().all():
        return values.index[0]
    return values.idxmax() if direction == "higher" else values.idxmin()


def first_line(reason: object) -> str:
    """The first line of a cell's reason, to show to others."""
    return shareable(brief("" if pd.isna(reason) else str(reason)))


def shareable(text: str) -> str:
    """A text with the working folder as ".", the home of the user as "~", and addresses without passwords."""
    for folder, short in ((Path.cwd(), "."), (Path.home(), "~")):
        if len(folder.parts) > 1:
            # Neither the end of another path or of a tag, nor the beginning of a longer name.
            text = re.sub(rf"(?:(?<=://)|(?<![\w<./])){re.escape(str(folder))}(?!\w)", short, text)
    return re.sub(r"(?<=://)[^/?#\s'\"<>]+@", "", text)
