"""Which setting of a method's grid stands for it; all starts of the setting are then shown."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.models import canonical_json
from fairclust.pipeline.papers import MatchSpec
from fairclust.report.names import metric_in_text
from fairclust.report.redaction import redact_text

NOT_RUN = "not in this run"
HAIR = 1 + 1e-9
"""Tolerances are widened by it: .025 - .02 is not .005 in floating point."""


def match_on(fairness: str, order: str = "lam") -> MatchSpec:
    """A rule of choice that no paper's table states."""
    return MatchSpec(fairness=fairness, order=order, table="")


@dataclass(frozen=True)
class Spread:
    """A metric over the starts (seeds) of one setting.

    Attributes
    ----------
    mean, sd : float
        The standard deviation (of a sample) is NaN for a single start.
    best : float
        The best start in this metric; NaN where no direction is better.
    n : int
        Starts that have a value.
    """

    mean: float = math.nan
    sd: float = math.nan
    best: float = math.nan
    n: int = 0


def spread(values: pd.Series, direction: str) -> Spread:
    """Mean, standard deviation and best of the values that are there.

    Parameters
    ----------
    values : Series of float
    direction : {'lower', 'higher', 'none'}
        Which values are better.

    Returns
    -------
    Spread
    """
    found = values.astype(float).dropna().to_numpy()
    if not len(found):
        return Spread()
    sd = float(np.std(found, ddof=1)) if len(found) > 1 and np.isfinite(found).all() else math.nan
    best = {"lower": found.min(), "higher": found.max()}.get(direction, math.nan)
    return Spread(float(found.mean()), sd, float(best), len(found))


@dataclass(frozen=True)
class Choice:
    """A chosen setting and how it came about.

    Attributes
    ----------
    cells : DataFrame
        The starts of the setting that ended well; empty if there is nothing to choose from.
    note : str
        Why there is no cell, or what the reader must know of the setting chosen.
    n_all : int
        Starts of the setting, or of the method if no setting was chosen.
    setting : str
        The parameters that differ within the grid, with the values chosen.
    reached : bool
        Whether the setting is as fair as was asked.
    """

    cells: pd.DataFrame
    note: str = ""
    n_all: int = 0
    setting: str = ""
    reached: bool = True

    @property
    def n_ok(self) -> int:
        """Starts that ended well."""
        return len(self.cells)

    @property
    def lam(self) -> float:
        """The setting's lambda; NaN without one."""
        return float(self.cells.lam.iloc[0]) if len(self.cells) else math.nan

    @property
    def cell(self) -> pd.Series | None:
        """The start with the lowest objective, for what can show one clustering only."""
        starts = best_starts(self.cells)
        return starts.iloc[0] if len(starts) else None

    def spread(self, metric: str, direction: str = "") -> Spread:
        """A metric over the starts; its own direction decides which is best, unless another one is given."""
        if metric not in self.cells:
            return Spread()
        own = COLUMNS[metric].direction if metric in COLUMNS else "none"
        return spread(self.cells[metric], direction or own)


def cells_of(cells: pd.DataFrame, dataset: str, method: str, n_clusters: float | None = None) -> pd.DataFrame:
    """The cells of a method on a data set, with one K or (None, or a missing number) with all."""
    found = cells[(cells.dataset == dataset) & (cells.method == method)]
    if n_clusters is None or pd.isna(n_clusters):
        return found
    return found[found.n_clusters == int(n_clusters)]


def best_starts(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per setting: the start with the lowest objective (the lowest SSE if there is none).

    Parameters
    ----------
    cells : DataFrame
        Of one method on one data set with one K; only cells that ended well count.

    Returns
    -------
    DataFrame
        Sorted by lambda, then by that objective.
    """
    ok = cells[cells.status == "ok"]
    by = ok.objective.where(ok.objective.notna(), ok.sse)
    ranked = ok.assign(_by=by).sort_values(["lam", "_by", "seed"], kind="stable")
    return ranked.drop_duplicates("params").drop(columns="_by")


def settings_means(cells: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """One row per setting: means over its starts.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    metrics : iterable of str
        Columns of the cells.

    Returns
    -------
    DataFrame
        Indexed by params, in the order of the cells; ``lam``, ``cost`` (the mean objective, or the mean SSE
        where a start has no objective) and ``starts`` (how many ended well) besides the metrics.
    """
    numbers = list(dict.fromkeys(["lam", "objective", "sse", *metrics]))
    ok = cells.loc[cells.status == "ok", ["params", *numbers]]
    groups = ok.astype(dict.fromkeys(numbers, float)).groupby("params", sort=False)
    found, starts = groups.mean(), groups.size()
    cost = found.objective.where(groups.objective.count() == starts, found.sse)
    return found.assign(cost=cost, starts=starts)


def within(values: pd.Series, level: float, fairness: str) -> pd.Series:
    """Which values of a fairness metric are at least as good as the level."""
    hair = (HAIR - 1) * abs(level)
    return values >= level - hair if COLUMNS[fairness].direction == "higher" else values <= level + hair


def choose(cells: pd.DataFrame, level: float | None = None, match: MatchSpec | None = None) -> Choice:
    """Choose the setting that stands for a method, by means over its starts.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    level : float, optional
        The worst value allowed of the fairness metric.
    match : MatchSpec, optional
        How to choose; without it, or without a level, the lowest mean objective wins.

    Returns
    -------
    Choice
        The first setting, in the order of `match`, whose mean fairness is within the level. Where none is,
        the fairest one, with ``reached`` False.
    """
    if cells.empty:
        return Choice(cells, NOT_RUN)
    metrics = [] if match is None else [match.fairness, *([] if match.order == "lam" else [match.order])]
    means = settings_means(cells, metrics)
    if means.empty:
        first = cells.iloc[0]
        return Choice(cells[:0], f"{first.status}: {_first_line(first.reason)}", len(cells))
    reached, note = True, ""
    if level is None or match is None:
        chosen = _first(means.cost, "lower")
    else:
        values = means[match.fairness]
        enough = means[within(values, level, match.fairness)]
        if len(enough):
            lowest = enough[enough.lam == enough.lam.min()] if enough.lam.notna().any() else enough
            if match.order == "lam":
                chosen = _first(lowest.cost, "lower")
            else:
                chosen = _first(enough[match.order], COLUMNS[match.order].direction)
        else:
            chosen, reached = _first(values, COLUMNS[match.fairness].direction), False
            note = f"no setting of the grid meets the level {level:.3g}: the fairest is shown"
    starts = cells[cells.params == chosen]
    ok = starts[starts.status == "ok"]
    if len(ok) < len(starts):
        lost = starts[starts.status != "ok"].status.iloc[0]
        words = f"{len(ok)} of {len(starts)} starts ended well, others: {lost}"
        note = "; ".join(filter(None, [note, words]))
    return Choice(ok, note, len(starts), varied(chosen, cells.params.unique()), reached)


def choose_best(cells: pd.DataFrame, metric: str) -> Choice:
    """The setting with the best mean of a metric.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    metric : str
        A name in `pipeline.columns.COLUMNS`; where no direction is better the highest counts.

    Returns
    -------
    Choice
    """
    means = settings_means(cells, [metric])
    if means.empty or means[metric].isna().all():
        return choose(cells)
    params = _first(means[metric], "lower" if COLUMNS[metric].direction == "lower" else "higher")
    return replace(choose(cells[cells.params == params]), setting=varied(params, cells.params.unique()))


def choose_printed(cells: pd.DataFrame, lam: float, params: Mapping[str, Any]) -> Choice:
    """The setting that a paper publishes.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    lam : float
        The printed lambda; NaN if the method has none.
    params : mapping
        Further parameters that the paper publishes.

    Returns
    -------
    Choice
        Without cells if the setting was not run. Where the paper leaves several settings open, the one with
        the lowest mean objective, with a note.
    """
    wanted = {name: canonical_json(value) for name, value in params.items()}
    texts = list(cells.params.unique())
    fitting = set()
    for text in texts:
        own = json.loads(text)
        if all(name in own and canonical_json(own[name]) == value for name, value in wanted.items()):
            fitting.add(text)
    found = cells[cells.params.isin(fitting)]
    asked = dict(params)
    if not math.isnan(lam):
        found, asked = found[found.lam == lam], {"lam": lam, **asked}
    words = ", ".join(f"{name}={_short(value)}" for name, value in asked.items())
    if found.empty and len(cells):
        return Choice(found, f"not run with the published setting {words}")
    choice = choose(found)
    n_settings = found.params.nunique()
    note = f"{n_settings} settings fit what is published: that with the lowest objective is shown"
    note = "; ".join(filter(None, [choice.note, note if n_settings > 1 and choice.n_ok else ""]))
    setting = choice.setting if n_settings > 1 and choice.setting else words
    return Choice(choice.cells, note, choice.n_all, setting, choice.reached)


def reported_level(
    match: MatchSpec,
    table: str,
    reported: pd.DataFrame,
    dataset: str,
    method: str,
    *,
    own: str = "",
    n_clusters: float | None = None,
    lam: float = math.nan,
) -> float | None:
    """The fairness that a paper reports for a method, or else for its own method, within its printed digits.

    An error of 0.00 stands for anything below 0.005, a balance of 0.50 for anything from 0.495 on.

    Parameters
    ----------
    match : MatchSpec
        Its ``table`` holds the values if it names one.
    table : str
        Otherwise this table does.
    reported : DataFrame
        The paper's reported values.
    dataset, method : str
        As the paper's CSV names them.
    own : str
        Whose value counts for a method that the paper does not have.
    n_clusters : int, optional
        Only values with this K.
    lam : float
        Only values with this lambda, if the paper reports several for the method.

    Returns
    -------
    float or None
        None if the paper reports none. Of several values the best.
    """
    at = reported[reported.table == (match.table or table)]
    at = at[(at.dataset == dataset) & (at.metric == match.fairness)].dropna(subset="value")
    if n_clusters is not None and not pd.isna(n_clusters):
        at = at[(at.n_clusters == int(n_clusters)).fillna(False)]
    lower = COLUMNS[match.fairness].direction == "lower"
    for name in (method, own):
        mine = at[at.method == name]
        if name == method and (mine.lam == lam).any():
            mine = mine[mine.lam == lam]
        if len(mine):
            first = mine.sort_values("value", ascending=lower).iloc[0]
            slack = half_unit(int(first.decimals)) * (1 if lower else -1)
            return float(first.value) + slack
    return None


def half_unit(decimals: int) -> float:
    """Half a unit of the last of so many printed decimals."""
    return 0.5 * 10.0**-decimals


def describe(match: MatchSpec | None) -> str:
    """In words, for readers of a table, how a setting that is not published is chosen."""
    if match is None:
        return "Where a setting is not published, the one with the lowest mean objective is shown."
    fairness = metric_in_text(match.fairness)
    if match.order == "lam":
        order = "the smallest lambda (and, of its settings, the lowest mean objective)"
    else:
        best = "highest" if COLUMNS[match.order].direction == "higher" else "lowest"
        order = f"the {best} mean {metric_in_text(match.order)}"
    return (
        f"Where a setting is not published, of the settings whose mean {fairness} is within the level, that "
        f"with {order} is shown. The level is the {fairness} that the paper reports, within its printed "
        "digits."
    )


def varied(params: str, others: Any) -> str:
    """The parameters of a setting that differ among settings, all as JSON texts."""
    mine, theirs = json.loads(params), [json.loads(text) for text in others]
    return ", ".join(
        f"{name}={_short(value)}"
        for name, value in mine.items()
        if any(other.get(name) != value for other in theirs)
    )


def _first(values: pd.Series, direction: str) -> Any:
    """Index of the best value; the first if none is known, as for a graph without an objective."""
    if values.isna().all():
        return values.index[0]
    return values.idxmax() if direction == "higher" else values.idxmin()


def _first_line(reason: object) -> str:
    """The first line of a cell's reason, without paths of the machine."""
    text = str(reason or "").partition("\n")[0].removesuffix(" Tried:")
    return redact_text(text).rstrip(".") or "no reason given"


def _short(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
