"""The board: clusterings of a run and of submissions side by side, by what they cost and what they are fair in.

It differs from the leaderboard of a run, which gives every method the same starts. A submission is a single
clustering, so single clusterings are compared: the board shows those on the front first, and then the ranks of methods.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.cell_store import atomic_write
from fairclust.pipeline.submissions import COSTS, NOTIONS, Submission, SubmissionError
from fairclust.report.leaderboard import INSTANCE, best_of_starts, pareto
from fairclust.report.names import Names, metric_in_text, metric_label
from fairclust.report.redaction import redact_text
from fairclust.report.render import MISSING, escape_markdown, number
from fairclust.report.selection import varied

VERIFIED, FROM_LABELS = "verified", "scored from labels"
MOST_COST = 2.0
"""A clustering that costs more than this many times the cheapest one gets no rank. Random labels are fair as well, and
would rank high without this limit."""
# Points that differ by rounding alone are equal.
_DIGITS = 9
_MOTIVE = (
    f"A row is a clustering. *{VERIFIED}*: this project ran the method, and the row is the start with the lowest "
    f"objective of a setting. *{FROM_LABELS}*: others ran it and handed in the labels, which this project scored.",
    "A clustering is on the front of a data set with a K if no other one is better in cost or fairness and no worse "
    "in the other. Its rank is 1 on the front, 2 on the front of what is left without it, and so on.",
    f"A clustering that costs more than {MOST_COST:g} times the cheapest one on its data set has no rank.",
    "A method's mean rank is that of its best rank on each of its data sets. Methods with other data sets are not "
    "directly comparable, so the number of data sets stands beside it.",
)
_OWN = ["dataset", "n_clusters", "method", "setting", "status", "cost", "cost_metric"]
_LAST = ["paper", "hardware", "seconds", "submitted", "data_hash"]


def verified_points(scores: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The clusterings of a run: of every setting the start with the lowest objective.

    Parameters
    ----------
    scores : DataFrame
        From `pipeline.scores.load_scores`.
    names : Names

    Returns
    -------
    DataFrame
        A row for each, with the columns that `make_board` expects.
    """
    best = best_of_starts(scores)
    # Older scores do not have every metric.
    best = best.reindex(columns=[*best.columns, *({*COSTS, *NOTIONS.values()} - {*best.columns})])
    by = best.groupby([*INSTANCE, "method"])
    settings = by.params.transform(lambda texts: texts.map(lambda text: varied(text, texts)))
    return pd.DataFrame(
        {
            **{name: best[name] for name in INSTANCE},
            "method": [names.method(str(method)) for method in best.method],
            "setting": settings,
            "status": VERIFIED,
            **{name: best[name] for name in (*COSTS, *NOTIONS.values(), "seconds")},
            # A method on a graph adds the graph's hash to that of the data.
            "data_hash": best.data_hash.str.partition("+")[0],
        }
    )


def submitted_points(submissions: Iterable[Submission]) -> pd.DataFrame:
    """The clusterings of submissions, with the columns that `make_board` expects."""
    shown = (*COSTS, *NOTIONS.values())
    rows = [
        {
            **one.model_dump(
                include={*INSTANCE, "method", "setting", "paper", "hardware", "seconds", "data_hash"}
            ),
            "submitted": one.submitted.isoformat(),
            "status": FROM_LABELS,
            **{name: one.metrics.get(name, np.nan) for name in shown},
        }
        for one in submissions
    ]
    return pd.DataFrame(rows)


def make_board(points: pd.DataFrame) -> pd.DataFrame:
    """Rank the clusterings of each data set and K.

    Parameters
    ----------
    points : DataFrame
        Rows of `verified_points` and `submitted_points`.

    Returns
    -------
    DataFrame
        Columns dataset, n_clusters, method, setting, status, cost, cost_metric; for each notion its value, and
        ``<notion>_front`` and ``<notion>_rank``; paper, hardware, seconds, submitted, data_hash. The order is that
        of data sets, then costs.

    Raises
    ------
    SubmissionError
        A submission was scored on other data than those of the run.
    """
    points = points.reindex(columns=[*dict.fromkeys([*_OWN, *COSTS, *NOTIONS.values(), *_LAST])])
    _check_data(points)
    on_points = points.groupby(INSTANCE).sse.transform("count") > 0
    board = points.assign(
        cost=points.sse.where(on_points, points.ncut), cost_metric=np.where(on_points, *COSTS)
    ).sort_values([*INSTANCE, "cost", "method", "setting"], kind="stable", ignore_index=True)
    found = board[_OWN].copy()
    for notion, metric in NOTIONS.items():
        found[notion] = board[metric].astype(float)
        ranks = pd.Series(pd.NA, index=board.index, dtype="Int64")
        for _, rows in board.groupby(INSTANCE).groups.items():
            ranks[rows] = _ranks(board.cost[rows].to_numpy(float), found[notion][rows].to_numpy(), metric)
        found[f"{notion}_front"] = (ranks == 1).fillna(False).astype(bool)
        found[f"{notion}_rank"] = ranks
    # Set the types, so that they do not depend on the rows.
    types = dict.fromkeys(["paper", "hardware", "submitted", "data_hash"], "string") | {"seconds": float}
    return found.join(board[_LAST].astype(types))


def _check_data(points: pd.DataFrame) -> None:
    for name, of in points.groupby("dataset"):
        theirs = of[of.status == FROM_LABELS]
        ours = set(of.data_hash[of.status == VERIFIED])
        wrong = theirs[~theirs.data_hash.isin(ours)] if ours else theirs.iloc[:0]
        if len(wrong):
            raise SubmissionError(
                f"the submission of {wrong.method.iloc[0]!r} on {name!r} was scored on other data than those of the "
                "run. Fix: run `fairclust check-submissions`. If it refuses the submission, submit labels of the data "
                "in the catalogue; if not, repeat the run with the data of the catalogue"
            )


def _ranks(cost: np.ndarray, fairness: np.ndarray, metric: str) -> Any:
    """Which front each point is on, counted from 1; missing for points that get no rank."""
    higher = METRICS[metric].direction == "higher"
    found = pd.array([pd.NA] * len(cost), dtype="Int64")
    with np.errstate(invalid="ignore"):
        left = (
            np.isfinite(cost) & np.isfinite(fairness) & (cost <= MOST_COST * np.nanmin(cost, initial=np.inf))
        )
    scale = np.nanmax(np.abs(cost[left]), initial=0.0) or 1.0
    cost, fairness = np.round(cost / scale, _DIGITS), np.round(fairness, _DIGITS)
    rank = 0
    while left.any():
        rank += 1
        at = np.flatnonzero(left)
        at = at[pareto(cost[at], fairness[at], higher)]
        found[at], left[at] = rank, False
    return found


def rank_methods(board: pd.DataFrame, notion: str) -> pd.DataFrame:
    """Methods by their mean rank for one notion of fairness.

    Parameters
    ----------
    board : DataFrame
        From `make_board`.
    notion : str
        A key of `NOTIONS`.

    Returns
    -------
    DataFrame
        Columns method, status, data_sets (pairs of a data set and a K), on_front (on how many of them), mean_rank;
        the lowest mean rank first, and of equal ones the method with more data sets.
    """
    ranked = board[board[f"{notion}_rank"].notna()]
    best = ranked.groupby(["method", "status", *INSTANCE])[f"{notion}_rank"].min().astype(float)
    by = best.groupby(["method", "status"])
    found = pd.DataFrame(
        {
            "data_sets": by.size(),
            "on_front": (best == 1).groupby(["method", "status"]).sum(),
            "mean_rank": by.mean(),
        }
    ).reset_index()
    order = ["mean_rank", "data_sets", "method"]
    return found.sort_values(order, ascending=[True, False, True], kind="stable", ignore_index=True)


def write_board(
    board: pd.DataFrame, names: Names, origin: Mapping[str, Any], version: str, folder: Path
) -> list[Path]:
    """Write the board as board.csv, board.parquet and board.md.

    Parameters
    ----------
    board : DataFrame
        From `make_board`.
    names : Names
    origin : mapping
        The provenance of the run; empty without one.
    version : str
        Of fairclust: the release that the board belongs to.
    folder : Path

    Returns
    -------
    list of Path
    """
    paths = [folder / f"board.{ending}" for ending in ("csv", "parquet", "md")]
    with atomic_write(paths[0]) as file:
        board.to_csv(file, index=False)
    with atomic_write(paths[1]) as file:
        board.to_parquet(file, index=False)
    with atomic_write(paths[2]) as file:
        file.write("\n".join([*_head(board, origin, version), *_body(board, names)]).encode())
    return paths


def _head(board: pd.DataFrame, origin: Mapping[str, Any], version: str) -> list[str]:
    lines = ["# The board", "", f"Of fairclust {escape_markdown(version)}."]
    if origin:
        made = redact_text(
            f"Rows that are {VERIFIED} come from the run of {origin['finished']}, with commit "
            f"{origin['git_commit'][:10]}, on {origin['cpu_count']} processors ({origin['platform']})."
        )
        lines.append(escape_markdown(made))
    dates = board.submitted.dropna()
    if len(dates):
        count = f"{len(dates)} rows are" if len(dates) > 1 else "1 row is"
        lines.append(f"{count} {FROM_LABELS}, handed in until {dates.max()}.")
    return [*lines, "", *(f"- {line}" for line in _MOTIVE), ""]


def _body(board: pd.DataFrame, names: Names) -> list[str]:
    lines = []
    for notion, metric in NOTIONS.items():
        if not board[f"{notion}_front"].any():
            continue
        better = METRICS[metric].direction
        lines += [f"## {notion.capitalize()}: {metric_in_text(metric)} ({better} is better)", ""]
        for (dataset, k), of in board[board[f"{notion}_front"]].groupby(INSTANCE, sort=True):
            lines += [f"### {escape_markdown(names.dataset(str(dataset)))}, K = {k}", ""]
            cost = str(of.cost_metric.iloc[0])
            shown = [
                {
                    "method": row.method,
                    "setting": row.setting or MISSING,
                    metric_label(cost): number(row.cost, METRICS[cost].decimals),
                    metric_label(metric): number(getattr(row, notion), METRICS[metric].decimals),
                    "status": row.status,
                    "source": row.paper if isinstance(row.paper, str) else MISSING,
                }
                for row in of.itertuples()
            ]
            lines += [*_table(shown), ""]
        ranks = [
            {
                "method": row.method,
                "status": row.status,
                "data sets": row.data_sets,
                "on the front": row.on_front,
                "mean rank": number(row.mean_rank, 2),
            }
            for row in rank_methods(board, notion).itertuples()
        ]
        lines += [f"### Ranks by {metric_in_text(metric)}", "", *_table(ranks), ""]
    return lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    cells = [list(rows[0]), ["---"] * len(rows[0]), *(list(row.values()) for row in rows)]
    return [f"| {' | '.join(map(escape_markdown, row))} |" for row in cells]


def read_origin(run: Path, scores: pd.DataFrame) -> dict[str, Any]:
    """Where and when the clusterings of a run were computed.

    Parameters
    ----------
    run : Path
        The folder of its results, or of published ones.
    scores : DataFrame
        From `pipeline.scores.load_scores`.

    Returns
    -------
    dict
        git_commit, cpu_count, platform and finished, a date.

    Raises
    ------
    SubmissionError
        The provenance is missing or damaged.
    """
    try:
        stated = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
        found = {name: stated[name] for name in ("git_commit", "cpu_count", "platform")}
    except (OSError, ValueError, KeyError) as error:
        raise SubmissionError(
            f"{run} holds no readable provenance.json ({error}). Fix: let the run end first"
        ) from None
    finished = scores.finished.max()
    known = "unknown date" if pd.isna(finished) else f"{datetime.fromtimestamp(finished, UTC):%Y-%m-%d}"
    return {**found, "finished": known}
