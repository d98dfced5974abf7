"""Which cell stands for a method in a table."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

RULE = (
    "Of the starts (seeds) of one setting the one with the lowest value of the method's own objective "
    "counts; the smallest lambda whose fairness error is within the level is taken, for methods without "
    "lambda the cheapest setting."
)
NOT_RUN = "not yet run"


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
    """

    cell: pd.Series | None
    note: str
    n_ok: int
    n_all: int


def best_starts(cells: pd.DataFrame) -> pd.DataFrame:
    """One row per parameter setting: the start with the lowest objective (the lowest cost if there is none).

    Parameters
    ----------
    cells : DataFrame
        Scores of one method on one data set and K; only cells that ended well are looked at.

    Returns
    -------
    DataFrame
        Sorted by lambda.
    """
    ok = cells[cells.status == "ok"]
    by = ok.objective.where(ok.objective.notna(), ok.sse)
    ranked = ok.assign(_by=by).sort_values(["lam", "_by", "seed"])
    return ranked.drop_duplicates("params").drop(columns="_by")


def choose(cells: pd.DataFrame, level: float | None = None) -> Choice:
    """Choose by `RULE`.

    Parameters
    ----------
    cells : DataFrame
        As for `best_starts`.
    level : float, optional
        Largest fairness error allowed; without it the lowest objective wins.

    Returns
    -------
    Choice
    """
    n_all, n_ok = len(cells), int((cells.status == "ok").sum())
    if n_all == 0:
        return Choice(None, NOT_RUN, 0, 0)
    if n_ok == 0:
        first = cells.iloc[0]
        reason = (
            str(first.reason).splitlines()[0].removesuffix(" Tried:") if first.reason else "no reason given"
        )
        return Choice(None, f"{first.status}: {reason.rstrip('.')}", 0, n_all)
    best = best_starts(cells)
    if best.lam.isna().all():
        # Cheapest first; a method with one setting has nothing to choose.
        best = best.assign(_by=best.objective.fillna(best.sse)).sort_values("_by").drop(columns="_by")
        if len(best) == 1:
            level = None
    if level is None:
        by = best.objective.fillna(best.sse)
        return Choice(best.loc[by.idxmin()], "", n_ok, n_all)
    within = best[best.fairness_error <= level]
    if len(within):
        return Choice(within.iloc[0], "", n_ok, n_all)
    nearest = best.loc[best.fairness_error.idxmin()]
    return Choice(
        nearest, f"no setting of the grid meets the level {level:.3g}: the fairest is shown", n_ok, n_all
    )
