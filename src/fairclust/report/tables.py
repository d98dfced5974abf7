"""The tables: each paper's own, reported beside reproduced, and an overview of any run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.report.catalogue import PAPER_TABLES, Names, PaperTable
from fairclust.report.render import lam, number, percent, write_table
from fairclust.report.selection import NOT_RUN, RULE, choose
from fairclust.reported import PAPERS, load_reported

OVERVIEW_LEVEL = 0.05
_OVERVIEW_METRICS = ["sse", "balance", "fairness_error", "delta", "fairness_ratio", "awd"]


def compare(spec: PaperTable, scores: pd.DataFrame) -> pd.DataFrame:
    """Reported against reproduced, one row per number of the paper's table.

    Parameters
    ----------
    spec : PaperTable
    scores : DataFrame
        The tidy scores.

    Returns
    -------
    DataFrame
        The reported columns and: level, reproduced, difference (relative; NaN against a reported zero),
        chosen_lam, seed, n_ok, n_all, remark.
    """
    reported = _with_our_rows(spec, load_reported(spec.paper).query("table == @spec.table"))
    rows = []
    for (dataset, method), group in reported.groupby(["dataset", "method"], sort=False):
        k = int(group.n_clusters.iloc[0])
        cells = scores[(scores.dataset == dataset) & (scores.method == method) & (scores.n_clusters == k)]
        level = _level(reported, str(dataset), str(method)) or _level(reported, str(dataset), spec.own)
        choice = choose(cells, level)
        for item in group.itertuples():
            value = np.nan if choice.cell is None else float(choice.cell[str(item.metric)])
            reference = float(item.value)
            rows.append(
                {
                    **{name: getattr(item, name) for name in reported.columns},
                    "level": np.nan if level is None else level,
                    "reproduced": value,
                    "difference": value / reference - 1 if reference else np.nan,
                    "chosen_lam": np.nan if choice.cell is None else choice.cell.lam,
                    "seed": None if choice.cell is None else choice.cell.seed,
                    "n_ok": choice.n_ok,
                    "n_all": choice.n_all,
                    "remark": choice.note,
                }
            )
    return pd.DataFrame(rows)


def _with_our_rows(spec: PaperTable, reported: pd.DataFrame) -> pd.DataFrame:
    """The reported numbers and, without any, the methods beyond the paper and the stand-ins of data sets."""
    own = reported[reported.method == spec.own]
    blank = {"value": np.nan, "lam": np.nan, "note": "not in the paper"}
    parts = [reported, *(own.assign(method=method, **blank) for method in spec.beyond)]
    found = pd.concat(parts, ignore_index=True)
    for original, stand_in in spec.stand_ins.items():
        rows = found[found.dataset == original]
        found = pd.concat([found, rows.assign(dataset=stand_in, n_rows=np.nan, **blank)], ignore_index=True)
    return found


def _level(reported: pd.DataFrame, dataset: str, method: str) -> float | None:
    """The reported fairness error, within its printed digits: 0.00 stands for anything below 0.005."""
    of = reported[(reported.dataset == dataset) & (reported.method == method)]
    error = of[of.metric == "fairness_error"]
    if error.value.isna().all():
        return None
    return float(error.value.iloc[0] + 0.5 * 10.0 ** -error.decimals.iloc[0])


def _paper_table(spec: PaperTable, scores: pd.DataFrame, names: Names, stem: Path) -> None:
    long = compare(spec, scores)
    data, shown = [], []
    notes = [
        "Every cell: reproduced (reported; relative difference of costs).",
        f"{RULE} The level is the error that the paper reports for the method, within its printed digits "
        "(0.05 admits 0.055).",
    ]
    for dataset, of_dataset in long.groupby("dataset", sort=False):
        first = of_dataset.iloc[0]
        row: dict[str, object] = {"dataset": dataset, "n_rows": first.n_rows, "n_clusters": first.n_clusters}
        text = {"data set": names.dataset(str(dataset))}
        for method, of_method in of_dataset.groupby("method", sort=False):
            label, last = names.method(str(method)), of_method.iloc[0]
            for item in of_method.itertuples():
                column = f"{method} {item.metric}"
                row |= {
                    f"{column} reported": item.value,
                    f"{column} reproduced": item.reproduced,
                    f"{column} difference": item.difference,
                }
                text[f"{label}: {METRICS[str(item.metric)].label}"] = _beside(item)
            row |= {
                f"{method} lam reported": last.lam,
                f"{method} lam": last.chosen_lam,
                f"{method} seed": last.seed,
                f"{method} cells ok": last.n_ok,
                f"{method} cells": last.n_all,
                f"{method} remark": last.remark,
            }
            if of_method.lam.notna().any():
                text[f"{label}: lambda"] = f"{lam(last.chosen_lam)} ({lam(last.lam)})"
            if long[long.method == method].n_all.any():
                text[f"{label}: cells"] = f"{last.n_ok}/{last.n_all}"
            notes += _unlucky_seeds(scores, of_method, names)
            if last.remark and last.remark != NOT_RUN:
                notes.append(f"{names.dataset(str(dataset))}, {label}: {last.remark}.")
        data.append(row)
        shown.append(text)
    title = f"{PAPERS[spec.paper].short_name}, Table {spec.table}: {spec.title}, reported and reproduced"
    write_table(stem, pd.DataFrame(data), pd.DataFrame(shown).fillna("–"), title=title, notes=notes)


def _unlucky_seeds(scores: pd.DataFrame, of_method: pd.DataFrame, names: Names) -> list[str]:
    """The seeds that miss the level at the lambda that the paper reports, if any do."""
    cell = of_method.iloc[0]
    at = scores[(scores.dataset == cell.dataset) & (scores.method == cell.method) & (scores.lam == cell.lam)]
    missed = at[(at.status == "ok") & (at.n_clusters == cell.n_clusters) & (at.fairness_error > cell.level)]
    if missed.empty:
        return []
    seeds = ", ".join(map(str, sorted(missed.seed)))
    return [
        f"{names.dataset(cell.dataset)}, {names.method(cell.method)}: at the reported lambda {lam(cell.lam)} "
        f"the starts of these seeds miss the level and need a larger one: {seeds}."
    ]


def _beside(item: Any) -> str:
    """Reproduced (reported; difference), or the reason in a word."""
    decimals = int(item.decimals) if pd.notna(item.decimals) else 2
    reported = number(item.value, decimals)
    if METRICS[str(item.metric)].needs != "table" and not np.isnan(item.difference):
        reported += f"; {percent(item.difference)}"
    ours = (
        item.remark.partition(":")[0]
        if pd.isna(item.reproduced)
        else number(item.reproduced, max(decimals, 2))
    )
    return f"{ours} ({reported})"


def _overview(scores: pd.DataFrame, names: Names, stem: Path) -> None:
    data, shown, notes = [], [], [RULE + f" The level is {OVERVIEW_LEVEL:g}."]
    for (dataset, k, method), cells in scores.groupby(["dataset", "n_clusters", "method"], sort=False):
        choice = choose(cells, OVERVIEW_LEVEL)
        values = {m: np.nan if choice.cell is None else float(choice.cell[m]) for m in _OVERVIEW_METRICS}
        chosen = np.nan if choice.cell is None else choice.cell.lam
        data.append(
            {
                **{"dataset": dataset, "n_clusters": k, "method": method, "lam": chosen},
                **values,
                **{"cells_ok": choice.n_ok, "cells": choice.n_all, "remark": choice.note},
            }
        )
        shown.append(
            {
                "data set": names.dataset(str(dataset)),
                "K": k,
                "method": names.method(str(method)),
                "lambda": lam(chosen),
                **{METRICS[m].label: number(v, METRICS[m].decimals) for m, v in values.items()},
                "cells": f"{choice.n_ok}/{choice.n_all}",
            }
        )
        if choice.note:
            notes.append(f"{names.dataset(str(dataset))}, {names.method(str(method))}: {choice.note}.")
    write_table(
        stem, pd.DataFrame(data), pd.DataFrame(shown), title="Every method on every data set", notes=notes
    )


def make_tables(names: Iterable[str], scores: Path, folder: Path, shown: Names) -> None:
    """Make tables of the catalogue from the tidy scores.

    Parameters
    ----------
    names : iterable of str
        Out of `catalogue.TABLES`.
    scores : Path
        The Parquet file of the scores.
    folder : Path
        Output.
    shown : Names
    """
    frame = pd.read_parquet(scores)
    for name in names:
        if name == "overview":
            _overview(frame, shown, folder / name)
        elif name == "reproduction":
            from fairclust.report.scoreboard import write_scoreboard  # it is built upon `compare`

            write_scoreboard(frame, shown, folder / name)
        else:
            _paper_table(PAPER_TABLES[name], frame, shown, folder / name)
