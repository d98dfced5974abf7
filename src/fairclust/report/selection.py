"""Which cell stands for a method in a table."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from fairclust.bench.summary import brief
from fairclust.report.catalogue import BY_LAM, PaperTable, Rule
from fairclust.report.columns import COLUMNS
from fairclust.reported import load_reported

NOT_RUN = "not yet run"
# For what no paper reports a level of.
OVERVIEW_LEVEL = 0.05


def describe(rule: Rule) -> str:
    """The rule in words, for readers of a table."""
    fairness = COLUMNS[rule.fairness].label
    # An abbreviation keeps its capitals.
    fairness = fairness if fairness.isupper() else fairness.lower()
    starts = "Of the starts (seeds) of one setting the one with the lowest objective of the method counts"
    if rule.order == "lam":
        return (
            f"{starts}; the smallest lambda whose {fairness} is within the level is taken, and where that "
            "leaves several settings, or for methods without lambda, the cheapest."
        )
    order = COLUMNS[rule.order].label
    return f"{starts}; of the settings whose {fairness} is within the level, that with the lowest {order}."


@dataclass(frozen=True)
class Choice:
    """A chosen cell and how it came about.

    Attributes
    ----------
    cell : Series or None
        A row of the scores; None if there is nothing to choose from.
    note : str
        Why there is no cell, or what the reader must know of the one chosen.
    n_ok, n_all : int
        Cells that ended well, out of all.
    setting : str
        The values that the cell has for the parameters of the grid.
    """

    cell: pd.Series | None
    note: str
    n_ok: int
    n_all: int
    setting: str = ""


def best_starts(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per parameter setting: the start with the lowest objective (the lowest cost if there is none).

    Parameters
    ----------
    cells : DataFrame
        Scores of one method on one data set and K; only cells that ended well are looked at.

    Returns
    -------
    DataFrame
        Sorted by lambda, then by that objective.
    """
    ok = cells[cells.status == "ok"]
    by = ok.objective.where(ok.objective.notna(), ok.sse)
    ranked = ok.assign(_by=by).sort_values(["lam", "_by", "seed"])
    return ranked.drop_duplicates("params").drop(columns="_by")


def within(values: pd.Series, level: float, fairness: str) -> pd.Series:
    """Which values of a fairness metric are at least as good as the level."""
    return values >= level if COLUMNS[fairness].direction == "higher" else values <= level


def choose(cells: pd.DataFrame, level: float | None = None, rule: Rule = BY_LAM) -> Choice:
    """Choose by a rule.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    level : float, optional
        The worst value of the rule's fairness metric allowed; without it the lowest objective wins.
    rule : Rule

    Returns
    -------
    Choice
    """
    n_all, n_ok = len(cells), int((cells.status == "ok").sum())
    if n_all == 0:
        return Choice(None, NOT_RUN, 0, 0)
    if n_ok == 0:
        first = cells.iloc[0]
        reason = brief(str(first.reason or ""))
        return Choice(None, f"{first.status}: {reason.rstrip('.')}", 0, n_all)
    best, note = best_starts(cells), ""
    cost = best.objective.fillna(best.sse)
    if level is None or len(best) == 1:
        # Nothing to choose, or nothing to choose by.
        chosen = best.loc[_lowest(cost)]
    else:
        values = best[rule.fairness]
        enough = best[within(values, level, rule.fairness)]
        if len(enough):
            order = cost if rule.order == "lam" else best[rule.order]
            by_lam = rule.order == "lam" and best.lam.notna().any()
            chosen = enough.iloc[0] if by_lam else enough.loc[_lowest(order[enough.index])]
        else:
            higher = COLUMNS[rule.fairness].direction == "higher"
            chosen = best.loc[values.idxmax() if higher else values.idxmin()]
            note = f"no setting of the grid meets the level {level:.3g}: the fairest is shown"
    return Choice(chosen, note, n_ok, n_all, _setting(chosen, cells))


def _lowest(values: pd.Series) -> Any:
    """Index of the lowest value; the first if none is known, as for a graph without an objective."""
    return values.fillna(np.inf).idxmin()


def _setting(cell: pd.Series, cells: pd.DataFrame) -> str:
    """The parameters of a cell that differ among the cells."""
    params, others = json.loads(cell.params), [json.loads(text) for text in cells.params.unique()]
    varied = [key for key in params if any(other.get(key) != params[key] for other in others)]
    return ", ".join(f"{key}={_short(params[key])}" for key in varied)


def _short(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def reported_level(spec: PaperTable, dataset: str, method: str) -> float | None:
    """The fairness that a paper reports for a method, or else its own best, within its printed digits.

    An error of 0.00 stands for anything below 0.005, a balance of 0.50 for anything from 0.495 on.

    Parameters
    ----------
    spec : PaperTable
    dataset, method : str

    Returns
    -------
    float or None
        None if the paper reports none.
    """
    fairness = spec.rule.fairness
    of = _reported_values(spec.paper).get((spec.level_table or spec.table, dataset, fairness))
    if of is None:
        return None
    lower = COLUMNS[fairness].direction == "lower"
    slack = 0.5 if lower else -0.5
    for name in (method, spec.own):
        mine = of[of.method == name].sort_values("value", ascending=lower)
        if len(mine):
            return float(mine.value.iloc[0] + slack * 10.0 ** -mine.decimals.iloc[0])
    return None


@cache
def _reported_values(paper: str) -> dict[Any, pd.DataFrame]:
    """The numbers that a paper prints, by table, data set and metric."""
    printed = load_reported(paper).dropna(subset="value")
    return dict(iter(printed.groupby(["table", "dataset", "metric"])))
