"""The scoreboard: every reported cell of every paper, our value, and a verdict."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import PAPER_TABLES, Names
from fairclust.report.columns import COLUMNS
from fairclust.report.render import number, percent, write_table
from fairclust.report.selection import NOT_RUN
from fairclust.report.tables import compare
from fairclust.reported import KEY, PAPERS, load_reported

TOLERANCE = 0.05
VERDICTS = {
    "reproduced": f"within {TOLERANCE:.0%} of the reported number, or equal to it in its printed digits",
    "better": f"better than reported by more than {TOLERANCE:.0%}",
    "worse": f"worse than reported by more than {TOLERANCE:.0%}",
    "less fair": "no setting reaches the reported fairness, so the cost cannot be compared",
    "not run": "there is no value of ours; the remark says why",
    "not published enough": "the paper prints no number here, or not what is needed to run it",
}
"""Verdict to meaning, in the order in which totals print them."""

COMPARED = ("reproduced", "better", "worse", "less fair")
RULE = (
    f"A number is reproduced if it is within {TOLERANCE:.0%} of the reported one, or equal to it in its "
    "printed digits; otherwise it is better or worse, by the direction of its metric. Where no setting "
    "reaches the reported fairness the fairest one stands, and its cost is not called reproduced or better."
)
# How `selection.choose` begins the remark of a cell that is less fair than reported.
_LEVEL_MISSED = "no setting of the grid meets the level"
_REASON_UNKNOWN = "reason not known"
# What a paper says of a data set, and the column of the scores that says it of ours.
_OF_DATA = {"n_nodes": "n_rows", "n_groups": "n_groups"}
_TIMES = {"seconds", "seconds_std", "relative_seconds"}
_ELSEWHERE = "measured on another machine"


def load_reasons() -> pd.DataFrame:
    """Known reasons: why cells deviate (kind 'deviation'), and what is not published ('unpublished').

    The other columns say for which cells: paper, table, dataset, method, metric; ``*`` stands for all.
    """
    with resources.files("fairclust.reported").joinpath("reasons.csv").open(encoding="utf-8") as stream:
        return pd.read_csv(stream, dtype=str, keep_default_na=False)


def scoreboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Judge every reported cell.

    Parameters
    ----------
    scores : DataFrame
        The tidy scores.

    Returns
    -------
    DataFrame
        A row per reported cell, in the papers' order: the reported columns and reproduced, difference
        (relative), chosen_lam, setting, seed, n_ok, n_all, verdict, remark.
    """
    reported = load_reported()
    compared = [compare(spec, scores) for spec in PAPER_TABLES.values()]
    ours = ["reproduced", "difference", "chosen_lam", "setting", "seed", "n_ok", "n_all", "remark"]
    # A stand-in or a method beyond the paper never has the key of a reported cell.
    found = pd.concat(compared, ignore_index=True)[[*KEY, *ours]].drop_duplicates(list(KEY))
    frame = reported.merge(found, how="left", on=list(KEY), validate="one_to_one")
    reasons = load_reasons().to_dict("records")
    laid_out = {(spec.paper, spec.table) for spec in PAPER_TABLES.values()}
    judged = [_judge(row, scores, reasons, laid_out) for row in frame.to_dict("records")]
    columns = ["reproduced", "difference", "verdict", "remark"]
    verdicts = pd.DataFrame(judged, columns=columns, index=frame.index)
    return pd.concat([reported, frame[["chosen_lam", "setting", "seed", "n_ok", "n_all"]], verdicts], axis=1)


def _judge(
    row: dict, scores: pd.DataFrame, reasons: list[dict], laid_out: set[tuple[str, str]]
) -> tuple[float, float, str, str]:
    """Reproduced, difference, verdict, remark."""
    reported, value = float(row["value"]), row["reproduced"]
    if row["method"] == "data":
        value = _of_data(row, scores)
    value = math.nan if pd.isna(value) else float(value)
    difference = value / reported - 1 if reported else math.nan
    note = "" if pd.isna(row["remark"]) else str(row["remark"])
    if math.isnan(reported):
        return value, math.nan, "not published enough", str(row["note"])
    unpublished = _reason(row, reasons, "unpublished")
    if unpublished:
        return value, difference, "not published enough", unpublished
    if math.isnan(value):
        return value, difference, "not run", _why_not(row, note, scores, laid_out)
    verdict = judge(row["metric"], reported, value, int(row["decimals"]))
    missed = note.startswith(_LEVEL_MISSED)
    if missed and verdict in ("reproduced", "better") and _is_cost(row["metric"]):
        verdict = "less fair"
    if verdict == "reproduced":
        return value, difference, verdict, note
    elsewhere = _ELSEWHERE if row["metric"] in _TIMES else ""
    remark = "; ".join(filter(None, [note, elsewhere, _reason(row, reasons, "deviation")]))
    return value, difference, verdict, remark or (_REASON_UNKNOWN if verdict == "worse" else "")


def judge(metric: str, reported: float, value: float, decimals: int) -> str:
    """Reproduced, better or worse.

    Parameters
    ----------
    metric : str
        A key of `fairclust.reported.METRICS`.
    reported, value : float
    decimals : int
        Printed decimals of `reported`.

    Returns
    -------
    str
    """
    # A hair more than half a unit: 0.025 - 0.02 is not 0.005 in floating point.
    printed = 0.5 * 10.0**-decimals * (1 + 1e-9)
    if abs(value - reported) <= max(TOLERANCE * abs(reported), printed):
        return "reproduced"
    lower = metric in COLUMNS and COLUMNS[metric].direction == "lower"
    if metric in _OF_DATA:
        return "worse"
    return "better" if (value < reported) == lower else "worse"


def _is_cost(metric: str) -> bool:
    return metric not in METRICS or METRICS[metric].needs != "table"


def _of_data(row: dict, scores: pd.DataFrame) -> float:
    counts = scores[scores.dataset == row["dataset"]].get(_OF_DATA[row["metric"]], pd.Series(dtype=float))
    return math.nan if counts.dropna().empty else float(counts.dropna().iloc[0])


def _reason(row: dict, reasons: list[dict], kind: str) -> str:
    names = ("paper", "table", "dataset", "method", "metric")
    fitting = (r for r in reasons if r["kind"] == kind and all(r[n] in ("*", row[n]) for n in names))
    return next((str(reason["reason"]) for reason in fitting), "")


def _why_not(row: dict, note: str, scores: pd.DataFrame, laid_out: set[tuple[str, str]]) -> str:
    """Why there is no value: the most particular reason that the scores give."""
    if note and note != NOT_RUN:
        return note
    at = scores[scores.dataset == row["dataset"]]
    if at.empty:
        return "this data set is not in the run"
    if row["method"] == "data":
        return "no fit on this data set ended well"
    at = at[at.method == row["method"]]
    if at.empty:
        return "this method is not in the run"
    if (row["paper"], row["table"]) not in laid_out:
        return "no table of this project shows it yet"
    k = row["n_clusters"]
    if pd.notna(k) and not (at.n_clusters == k).any():
        return f"not run with K = {k}"
    return "the scorer has no value for this metric"


def totals(board: pd.DataFrame) -> pd.DataFrame:
    """Cells per paper and verdict, with a last row for all.

    Parameters
    ----------
    board : DataFrame
        From `scoreboard`.

    Returns
    -------
    DataFrame
        Columns paper (short name), cells, and one per verdict.
    """
    rows = []
    for key in [*PAPERS, None]:
        of = board if key is None else board[board.paper == key]
        counts = of.verdict.value_counts()
        name = "all" if key is None else PAPERS[key].short_name
        rows.append({"paper": name, "cells": len(of), **{v: int(counts.get(v, 0)) for v in VERDICTS}})
    return pd.DataFrame(rows)


def write_scoreboard(scores: pd.DataFrame, names: Names, stem: Path) -> None:
    """Write the scoreboard as CSV, Markdown and LaTeX.

    Parameters
    ----------
    scores : DataFrame
        The tidy scores.
    names : Names
    stem : Path
        Path without ending.
    """
    board = scoreboard(scores)
    shown = pd.DataFrame(
        {
            "paper": [PAPERS[key].short_name for key in board.paper],
            "table": board.table,
            "data set": [names.dataset(name) for name in board.dataset],
            "method": [names.method(name) for name in board.method],
            "metric": [metric_label(name) for name in board.metric],
            "reported": [reported_text(row) for row in board.itertuples()],
            "reproduced": [reproduced_text(row) for row in board.itertuples()],
            "difference": board.difference.map(difference_text),
            "verdict": board.verdict,
            "remark": board.remark,
        }
    )
    counts = [
        f"{row['paper']}: {row['cells']} cells; "
        + ", ".join(f"{row[verdict]} {verdict}" for verdict in VERDICTS if row[verdict])
        for row in totals(board).to_dict("records")
    ]
    notes = [RULE, *(f"{verdict}: {meaning}." for verdict, meaning in VERDICTS.items())]
    title = "Every number of the papers, and ours"
    write_table(stem, board, shown, title=title, notes=notes, lead=counts)


def metric_label(name: str) -> str:
    """Heading of a reported metric."""
    return COLUMNS[name].label if name in COLUMNS else name.replace("_", " ")


def reported_text(row: object) -> str:
    """The reported number with its printed digits."""
    decimals = row.decimals  # type: ignore[attr-defined]
    return number(row.value, int(decimals) if pd.notna(decimals) else 2)  # type: ignore[attr-defined]


def reproduced_text(row: object) -> str:
    """Our number with as many digits as the metric, or the paper, has."""
    metric, decimals = str(row.metric), row.decimals  # type: ignore[attr-defined]
    own = COLUMNS[metric].decimals if metric in COLUMNS else 2
    at_least = int(decimals) if pd.notna(decimals) else own
    return number(row.reproduced, max(min(own, 4), at_least))  # type: ignore[attr-defined]


def difference_text(value: float) -> str:
    """A relative difference; none at all has no sign."""
    return "∞" if np.isinf(value) else "0.0 %" if abs(value) < 0.0005 else percent(value)
