"""The tables of the page: on the run (leaderboards, missing fits, metrics), and on each of its papers."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from fairclust.fronts import tick_text
from fairclust.messages import count, counted, percent
from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import COLUMNS, column_of
from fairclust.pipeline.names import Names
from fairclust.pipeline.papers import PaperSpec
from fairclust.report.charts import ranks_picture
from fairclust.report.drawing import EMPTY
from fairclust.report.leaderboard import (
    CONTROL,
    LEVELS,
    SHOWN,
    compared,
    instances_of,
    kinds_of_data,
    mean_ranks,
    no_better,
)
from fairclust.report.printed import LEGEND
from fairclust.report.render import (
    MISSING,
    Table,
    bound_text,
    fixed,
    joined,
    labelled,
    metric_label,
    number,
    plain,
    seconds_text,
    signed_percent,
    spread_text,
    table_name,
)
from fairclust.report.selection import first_line
from fairclust.report.tables import printed_table, row_verdicts
from fairclust.report.verdicts import VERDICTS


def glossary() -> Table:
    """The meaning of each metric, from its docstring."""
    rows = []
    for metric in METRICS.values():
        low, high = (tick_text(bound) if np.isfinite(bound) else "∞" for bound in metric.range)
        better = f", {metric.direction} is better" if metric.direction != "none" else ""
        meaning = (inspect.getdoc(metric.function) or "").partition("\n\n")[0]
        rows.append((metric.label, meaning, f"{low} to {high}{better}", metric.source))
    nll, meaning = COLUMNS["nll"], "Mean negative log-likelihood of the rows under a mixture."
    rows.append((nll.label, meaning, f"{nll.direction} is better", ""))
    head = ("Metric", "Meaning", "Range", "Source")
    return Table("What the metrics mean", [dict(zip(head, row, strict=True)) for row in rows])


def leaderboards(board: pd.DataFrame, names: Names) -> list[dict[str, Any]]:
    """The views of a `make_leaderboard` for each cost, with its position in `SHOWN`."""
    return [
        {
            "cost": SHOWN.index(cost),
            "label": METRICS[cost].label,
            "kinds": _kinds_table(board, cost, names),
            "random": "; ".join(names.method(name) for name in sorted(_marked(board, cost, names))),
            "chance": any(names.family(name) == CONTROL for name in board.method[board.cost == cost]),
            "table": _distances_table(board, cost, names),
            "ranks": [of_level for level in LEVELS for of_level in _ranks(board, cost, level, names)],
            **_losses(board, cost, names),
        }
        for cost in dict.fromkeys(board.cost)
    ]


def _distance(excess: float) -> str:
    return signed_percent(excess).removeprefix("+")


def _losses(board: pd.DataFrame, cost: str, names: Names) -> dict[str, Any]:
    """Where another method is cheaper than all of ours: a sentence, with which the page begins, and one on two methods.

    Our best method is compared with the best of all others, of those that were run on at least half of the settings.
    """
    values = instances_of(board, cost)
    ours = [name for name in values if name in names.ours]
    values = values[values[ours].notna().any(axis=1)]
    n_lost, _, n_settings = compared(values.drop(columns=ours).min(axis=1), values[ours].min(axis=1))
    if not n_settings:
        return {"losses": "", "duel": ""}
    of = f"of {count(n_settings, 'setting')} (a data set, a K and a level of fairness), by more than 0.1 %."
    none_lost = f"No other method is cheaper than ours on any {of}"
    losses = f"Our methods lose on {n_lost} {of}" if n_lost else none_lost
    run = values.columns[2 * values.notna().sum() >= len(values)]
    order = [name for name in board[(board.cost == cost) & board.level.isna()].method if name in run]
    mine, others = ([name for name in order if (name in ours) == is_ours] for is_ours in (True, False))
    duel = ""
    if mine and others:
        cheaper, dearer, both = compared(values[mine[0]], values[others[0]])
        duel = (
            f"{labelled(names, mine[0])} is cheaper than {names.method(others[0])}, the best of all others, on "
            f"{cheaper} of {both} settings, and dearer on {dearer}."
        )
    return {"losses": losses, "duel": duel}


def _kinds_table(board: pd.DataFrame, cost: str, names: Names) -> Table:
    """Which method for what: of each kind of data and level, the cheapest method and the cheapest of the others."""
    records: dict[tuple[str, str], dict[str, str]] = {}
    for kind, level, methods in kinds_of_data(board, cost):
        if names.ours:
            second, others = "cheapest of others", methods[~methods.method.isin(names.ours)]
        else:
            second, others = "runner-up", methods[1:]
        for place, ranked in (("cheapest", methods), (second, others)):
            texts = [
                f"{labelled(names, one.method)}: {_distance(one.excess)}, {seconds_text(one.seconds)} s"
                for one in ranked.head(1).itertuples()
            ]
            record = records.setdefault((kind, place), {"Data": kind, "Place": place})
            record[f"Shares within {percent(level, 0)}"] = "".join(texts) or MISSING
    title = "The cheapest method by kind of data: how far its cost is above the best known, and its seconds"
    return Table(title, list(records.values()))


def _marked(board: pd.DataFrame, cost: str, names: Names) -> set[str]:
    """The methods that are no better than random labels, without the random labels themselves."""
    return {name for name in no_better(board, cost) if names.family(name) != CONTROL}


def _distances_table(board: pd.DataFrame, cost: str, names: Names) -> Table:
    rows = board[(board.cost == cost) & board.dataset.isna()]
    summaries = {(row["method"], row["level"]): row for row in rows.to_dict("records")}
    records, marked = [], _marked(board, cost, names)
    for row in rows[rows.level.isna()].to_dict("records"):
        label = labelled(names, row["method"])
        label += ", no better than random labels" if row["method"] in marked else ""
        record = {"Method": label, "Family": names.family(row["method"])}
        for level in LEVELS:
            text = MISSING
            if (summary := summaries.get((row["method"], level))) is not None:
                excess, low, high = (_distance(summary[name]) for name in ("excess", "low", "high"))
                # A distance that is infinite is shown without its interval.
                has_interval = np.isfinite(summary["excess"]) and not pd.isna(summary["low"])
                between = f" ({low.removesuffix(' %')}–{high})" if has_interval else ""
                text = f"{excess}{between}, {summary['reached']:.0f} of {summary['instances']:.0f}"
            record[f"Within {percent(level, 0)}"] = text
        bound = row["certified"]
        record |= {
            "Seconds of a fit": seconds_text(row["seconds"]),
            "Above its certified bound at most": MISSING if pd.isna(bound) else bound_text(bound),
            "Starts": "–".join(f"{n:.0f}" for n in sorted({row["fewest_starts"], row["starts"]})),
            "Fits failed": f"{row['failed']:.0f}",
        }
        records.append(record)
    return Table(f"{METRICS[cost].label}: distance to the best known", records, filters=("Family",))


def _ranks(board: pd.DataFrame, cost: str, level: float, names: Names) -> Iterator[dict[str, Any]]:
    """Title and picture of the mean ranks at a level, if there are enough methods and data sets."""
    ranks, differ, p = mean_ranks(board, cost, level)
    if len(ranks):
        title = f"Shares within {percent(level, 0)}: mean ranks over data sets (Friedman's p = {p:.2g})"
        yield {"title": title, "svg": ranks_picture(ranks, differ, names, no_better(board, cost))}


def missing_table(scores: pd.DataFrame, names: Names) -> Table | None:
    """Fits without a result, with a row for each status, data set and reason; None if there are none."""
    bad = scores[scores.status != "ok"]
    if bad.empty:
        return None
    bad = bad.assign(reason=[first_line(reason) for reason in bad.reason])
    records = [
        {
            "Status": status,
            "Data set": names.dataset(dataset),
            # Separated by semicolons, because labels may contain commas.
            "Methods": "; ".join(dict.fromkeys(names.method(str(method)) for method in fits.method)),
            "Fits": str(len(fits)),
            "Reason": reason,
        }
        for (status, dataset, reason), fits in bad.groupby(["status", "dataset", "reason"], sort=False)
    ]
    return Table("Fits without a result", records, filters=("Status", "Data set"))


def paper_section(
    name: str,
    paper: PaperSpec,
    board: pd.DataFrame,
    claims: pd.DataFrame | None,
    files: Mapping[str, Path],
    names: Names,
) -> dict[str, Any]:
    """The data that the template shows for one paper, from all evidence and the claims of the paper."""
    of_paper = board[board.paper == name]
    tables: list[dict[str, Any]] = []
    for spec in paper.tables.values():
        lines = of_paper[of_paper.table == spec.number]
        if lines.empty:
            continue
        made = printed_table(spec, lines, paper.short_name, names)
        tables.append({
            "key": f"{name}-{len(tables) + 1}",
            "title": f"{table_name(spec.number)}: {spec.title}",
            "printed": made,
            "notes": [note for note in made.notes if note != LEGEND],
            "counts": counted(row_verdicts(lines).verdict, VERDICTS),
            "evidence": _evidence(f"Evidence of {made.title}", lines, names),
        })  # fmt: skip
    shown = [
        {
            "Verdict": row.verdict,
            "Claim": row.text,
            "Where": row.where,
            "Data set": names.dataset(row.dataset) if row.dataset else "all together",
            "K": MISSING if pd.isna(row.n_clusters) else str(row.n_clusters),
            "Numbers": row.numbers,
        }
        for row in (() if claims is None else claims.itertuples())
    ]
    return {
        "key": name,
        "name": paper.short_name,
        "citation": paper.citation,
        "tables": tables,
        "claims": Table(f"Claims of {paper.short_name}", shown, filters=("Data set", "Verdict"))
        if shown
        else None,
        # Those that show something, as files beside the folder of the page.
        "figures": [
            {"file": f"../{file}", "title": spec.title, "size": size}
            for key, spec in paper.figures.items()
            if (file := f"figures/{name}/{key}.png") in files and (size := picture_size(files[file]))
        ],
    }


def picture_size(path: Path) -> tuple[int, int] | None:
    """Width and height of a figure, or None if none of its panels shows anything, as for data that are not there."""
    with Image.open(path) as picture:
        return None if picture.info.get("Comment") == EMPTY else picture.size


def _evidence(caption: str, lines: pd.DataFrame, names: Names) -> Table:
    """Every value of a table, with its starts, its program, its setting and why it has its verdict."""
    records = []
    for value in lines.itertuples():
        column, lacks = column_of(value.metric), pd.isna(value.decimals)
        decimals = column.decimals if lacks else max(int(value.decimals), 0)
        # Values of other metrics than costs may have chosen the setting.
        best = value.low if column.is_cost else math.nan
        setting = str(value.setting)
        if pd.notna(value.lam):
            setting = f"{setting} (printed: {plain(value.lam)})".strip()
        by_program = bool(value.program_runs)
        records.append({
            "Data set": names.dataset(value.dataset),
            "Method": names.method(value.method) + ("" if value.role == "paper" else f" ({value.role})"),
            "Metric": metric_label(value.metric),
            "Reported": fixed(value.reported, decimals),
            "Published program": number(value.program_mean, decimals) if by_program else MISSING,
            "Ours": spread_text(value.mean, value.sd, decimals, best),
            "Verdict": value.value_verdict,
            "K": MISSING if pd.isna(value.n_clusters) else str(value.n_clusters),
            "Starts and setting": joined(
                value.kind, f"{value.seeds} of {count(value.seeds_asked, 'start')}", setting
            ),
            "Why": joined(value.why, f"program: {value.program_setting}" * by_program, value.note),
        })  # fmt: skip
    return Table(caption, records, filters=("Data set", "Method", "Metric", "Verdict"))
