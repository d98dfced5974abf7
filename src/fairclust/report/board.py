"""The board: it compares the clusterings of a run with submitted ones by cost and by each notion of fairness.

The leaderboard of a run gives every method the same number of starts. A submission is a single clustering, so the board
compares single clusterings instead: it shows the clusterings on the Pareto front first, and then the ranks of methods.
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
from fairclust.outputs import atomic_write
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
# Values are rounded to this many digits, so that points that differ only by rounding errors are equal.
_DIGITS = 9
_MOTIVE = (
    f"A row is a clustering. *{VERIFIED}* means that this project ran the method; the row shows, for one setting, the "
    f"start with the lowest objective. *{FROM_LABELS}* means that others ran the method and submitted the labels, "
    "which this project scored.",
    "The front of a data set and K holds every clustering that no other one beats. One clustering beats another if it "
    "is better in cost or in fairness and no worse in the other. Clusterings on the front have rank 1. Without them "
    "the remaining clusterings have a front of their own, whose clusterings have rank 2, and so on.",
    f"A clustering that costs more than {MOST_COST:g} times as much as the cheapest one on its data set has no rank.",
    "A method's mean rank is the mean of its best ranks, one for each data set and K. The mean ranks of methods on "
    "different data sets are not directly comparable, so the table also shows the number of data sets.",
)
_OWN = ["dataset", "n_clusters", "method", "setting", "status", "cost", "cost_metric"]
_LAST = ["paper", "hardware", "seconds", "submitted", "data_hash"]


def verified_points(scores: pd.DataFrame, names: Names) -> pd.DataFrame:
    """The clusterings of a run, as `make_board` takes them: for every setting, the start with the lowest objective."""
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
    """Rank the clusterings of each data set and K, the rows of `verified_points` and `submitted_points`.

    For each notion of fairness the columns are its value, ``<notion>_front`` and ``<notion>_rank``. Sorted by data
    set, K and cost. SubmissionError if a submission was scored on data that differ from those of the run.
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
    """Methods by their mean rank for one notion of fairness, a key of `NOTIONS`, on the board.

    ``data_sets`` counts the pairs of a data set and a K, and ``on_front`` those where the method is on the front. Of
    equal ranks, the method with more data sets is first.
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
    """Write the board as board.csv, board.parquet and board.md, and return the files.

    `origin` is the provenance of the run, empty without one, and `version` the release that the board belongs to.
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
    lines = ["# The board", "", f"This board belongs to fairclust {escape_markdown(version)}."]
    if origin:
        made = redact_text(
            f"The rows with the status '{VERIFIED}' come from the run of {origin['finished']}, with commit "
            f"{origin['git_commit'][:10]}, on {origin['cpu_count']} processors ({origin['platform']})."
        )
        lines.append(escape_markdown(made))
    dates = board.submitted.dropna()
    if len(dates):
        count = f"{len(dates)} rows are" if len(dates) > 1 else "1 row is"
        lines.append(f"{count} {FROM_LABELS}; the last submission is of {dates.max()}.")
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
    """Where and when the clusterings of a run were computed: git_commit, cpu_count, platform and finished, a date.

    `run` is the folder of results, or of published ones. SubmissionError if the provenance is missing or damaged.
    """
    try:
        stated = json.loads((run / "provenance.json").read_text(encoding="utf-8"))
        found = {name: stated[name] for name in ("git_commit", "cpu_count", "platform")}
    except (OSError, ValueError, KeyError) as error:
        raise SubmissionError(
            f"{run} holds no readable provenance.json ({error}). Fix: wait until the run has ended"
        ) from None
    finished = scores.finished.max()
    known = "unknown date" if pd.isna(finished) else f"{datetime.fromtimestamp(finished, UTC):%Y-%m-%d}"
    return {**found, "finished": known}
