"""The tables: each paper's own, reported beside reproduced, and an overview of any run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.report.catalogue import BY_LAM, PAPER_TABLES, Names, PaperTable
from fairclust.report.columns import COLUMNS, load_cells
from fairclust.report.render import lam, number, percent, write_table
from fairclust.report.selection import (
    NOT_RUN,
    OVERVIEW_LEVEL,
    Choice,
    choose,
    describe,
    reported_level,
    within,
)
from fairclust.reported import PAPERS, load_reported

# Of the starts of a setting, not of one cell.
_SECONDS = ("seconds", "seconds_std", "relative_seconds")
_OVERVIEW_METRICS = ["sse", "balance", "fairness_error", "delta", "fairness_ratio", "awd"]


def compare(spec: PaperTable, scores: pd.DataFrame) -> pd.DataFrame:
    """Reported against reproduced, one row per number of the paper's table.

    Parameters
    ----------
    spec : PaperTable
    scores : DataFrame
        From `columns.load_cells`.

    Returns
    -------
    DataFrame
        The reported columns and: level, reproduced, difference (relative; NaN against a reported zero),
        chosen_lam, setting, seed, n_ok, n_all, remark.

    Notes
    -----
    Seconds are the mean over the starts of the chosen setting, and their standard deviation.
    """
    reported = _with_our_rows(spec, load_reported(spec.paper).query("table == @spec.table"))
    originals = {own: original for original, listed in spec.stand_ins.items() for own in listed}
    rows = []
    for key, group in reported.groupby(["dataset", "method", "lam"], sort=False, dropna=False):
        dataset, method, printed_lam = key
        cells = _cells_of(group, scores)
        level = reported_level(spec, originals.get(str(dataset), str(dataset)), str(method))
        if spec.at_lam and pd.notna(printed_lam):
            cells, level = cells[cells.lam == printed_lam], None
        choice = choose(cells, level, spec.rule)
        seconds = _seconds(cells, choice)
        for item in group.itertuples():
            if item.metric in _SECONDS:
                value = seconds.get(str(item.metric), np.nan)
            else:
                value = np.nan if choice.cell is None else float(choice.cell[str(item.metric)])
            reference = float(item.value)
            rows.append(
                {
                    **{name: getattr(item, name) for name in reported.columns},
                    "level": np.nan if level is None else level,
                    "reproduced": value,
                    "difference": value / reference - 1 if reference else np.nan,
                    "chosen_lam": np.nan if choice.cell is None else choice.cell.lam,
                    "setting": choice.setting,
                    "seed": None if choice.cell is None else choice.cell.seed,
                    "n_ok": choice.n_ok,
                    "n_all": choice.n_all,
                    "remark": choice.note,
                    "_seconds": seconds.get("seconds", np.nan),
                }
            )
    return _with_relative_seconds(spec, pd.DataFrame(rows))


def _cells_of(group: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """The cells of the method, data set and K of reported numbers."""
    first = group.iloc[0]
    same = (scores.dataset == first.dataset) & (scores.method == first.method)
    return scores[same & (scores.n_clusters == int(first.n_clusters))]


def _seconds(cells: pd.DataFrame, choice: Choice) -> dict[str, float]:
    """Mean and standard deviation of the seconds over the starts of the chosen setting."""
    if choice.cell is None:
        return {}
    starts = cells[(cells.status == "ok") & (cells.params == choice.cell.params)].seconds
    return {"seconds": float(starts.mean()), "seconds_std": float(starts.std())}


def _with_relative_seconds(spec: PaperTable, long: pd.DataFrame) -> pd.DataFrame:
    """Seconds in units of those of the paper's own method on the same data set."""
    unit = long[long.method == spec.own].groupby("dataset")._seconds.first()
    relative = long._seconds / long.dataset.map(unit)
    is_relative = long.metric == "relative_seconds"
    long.loc[is_relative, "reproduced"] = relative
    long.loc[is_relative, "difference"] = relative / long.value - 1
    return long.drop(columns="_seconds")


def _with_our_rows(spec: PaperTable, reported: pd.DataFrame) -> pd.DataFrame:
    """The reported numbers and, without any, further columns, methods, and stand-ins of data sets."""
    blank = {"value": np.nan, "note": "not in the paper"}
    first = reported.drop_duplicates(["dataset", "method", "lam"])
    found = pd.concat([reported, *(first.assign(metric=name, **blank) for name in spec.beside)])
    blank |= {"lam": np.nan}
    own = found[found.method == spec.own].drop_duplicates(["dataset", "metric"])
    found = pd.concat([found, *(own.assign(method=method, **blank) for method in spec.beyond)])
    for original, stand_ins in spec.stand_ins.items():
        rows = found[found.dataset == original].drop_duplicates(["method", "metric"])
        blank |= {"n_rows": np.nan}
        found = pd.concat([found, *(rows.assign(dataset=stand_in, **blank) for stand_in in stand_ins)])
    return found.reset_index(drop=True)


def _paper_table(spec: PaperTable, scores: pd.DataFrame, names: Names, stem: Path) -> None:
    long = compare(spec, scores)
    run = {method for method, of_method in long.groupby("method") if of_method.n_all.any()}
    data: list[dict[str, object]] = []
    shown: list[dict[str, object]] = []
    notes = [
        "Every cell: reproduced (reported; relative difference of costs).",
        f"{describe(spec.rule)} The level is what the paper reports for the method, within its printed "
        "digits (an error of 0.05 admits 0.055).",
        *(["Where the table states a lambda the cells of this lambda count."] if spec.at_lam else []),
        *spec.remarks,
    ]
    for dataset, of_dataset in long.groupby("dataset", sort=False):
        first, title = of_dataset.iloc[0], names.dataset(str(dataset))
        row: dict[str, object] = {"dataset": dataset, "n_rows": first.n_rows, "n_clusters": first.n_clusters}
        text: dict[str, object] = {"data set": title}
        for (method, _), of_method in of_dataset.groupby(["method", "lam"], sort=False, dropna=False):
            label, remark = names.method(str(method)), of_method.iloc[0].remark
            numbers, words = _numbers(of_method), _words(of_method, spec, method in run)
            if spec.by_method:
                data.append({**row, "method": method, **numbers})
                shown.append({**text, "method": label, **words})
            else:
                row |= {f"{method} {name}": value for name, value in numbers.items()}
                text |= {f"{label}: {name}": value for name, value in words.items()}
            notes += _unlucky_seeds(scores, of_method, spec, names)
            if remark and remark != NOT_RUN:
                notes.append(f"{title}, {label}: {remark}.")
        if not spec.by_method:
            data.append(row)
            shown.append(text)
    title = f"{PAPERS[spec.paper].short_name}, Table {spec.table}: {spec.title}, reported and reproduced"
    write_table(stem, pd.DataFrame(data), pd.DataFrame(shown).fillna("–"), title=title, notes=notes)


def _numbers(of_method: pd.DataFrame) -> dict[str, object]:
    """What the CSV says of a method on a data set."""
    row: dict[str, object] = {}
    for item in of_method.itertuples():
        row |= {
            f"{item.metric} reported": item.value,
            f"{item.metric} reproduced": item.reproduced,
            f"{item.metric} difference": item.difference,
        }
    last = of_method.iloc[0]
    return row | {
        "lam reported": last.lam,
        "lam": last.chosen_lam,
        "setting": last.setting,
        "seed": last.seed,
        "cells ok": last.n_ok,
        "cells": last.n_all,
        "remark": last.remark,
    }


def _words(of_method: pd.DataFrame, spec: PaperTable, was_run: bool) -> dict[str, object]:
    """What readers see of a method on a data set."""
    last = of_method.iloc[0]
    text: dict[str, object] = {
        COLUMNS[str(item.metric)].label: _beside(item, alone=item.metric in spec.beside)
        for item in of_method.itertuples()
    }
    if of_method.lam.notna().any():
        text["lambda"] = f"{lam(last.chosen_lam)} ({lam(last.lam)})"
    elif spec.by_method:
        text["setting"] = last.setting or "–"
    if was_run:
        text["cells"] = f"{last.n_ok}/{last.n_all}"
    return text


def _unlucky_seeds(
    scores: pd.DataFrame, of_method: pd.DataFrame, spec: PaperTable, names: Names
) -> list[str]:
    """The seeds that miss the level at the lambda that the paper reports, if any do."""
    cell = of_method.iloc[0]
    at = scores[(scores.dataset == cell.dataset) & (scores.method == cell.method) & (scores.lam == cell.lam)]
    at = at[(at.status == "ok") & (at.n_clusters == cell.n_clusters)]
    missed = at[~within(at[spec.rule.fairness], cell.level, spec.rule.fairness)]
    if missed.empty or np.isnan(cell.level):
        return []
    seeds = ", ".join(map(str, sorted(missed.seed)))
    return [
        f"{names.dataset(cell.dataset)}, {names.method(cell.method)}: at the reported lambda {lam(cell.lam)} "
        f"the starts of these seeds miss the level and need a larger one: {seeds}."
    ]


def _beside(item: Any, *, alone: bool) -> str:
    """Reproduced (reported; difference), or the reason in a word; alone what no paper reports."""
    column = COLUMNS[str(item.metric)]
    if alone:
        return number(item.reproduced, column.decimals)
    decimals = int(item.decimals) if pd.notna(item.decimals) else 2
    reported = number(item.value, decimals)
    if column.is_cost and not np.isnan(item.difference):
        reported += f"; {percent(item.difference)}"
    ours = (
        item.remark.partition(":")[0] or "–"
        if pd.isna(item.reproduced)
        else number(item.reproduced, max(decimals, 2))
    )
    return f"{ours} ({reported})"


def _overview(scores: pd.DataFrame, names: Names, stem: Path) -> None:
    data, shown, notes = [], [], [f"{describe(BY_LAM)} The level is {OVERVIEW_LEVEL:g}."]
    for (dataset, k, method), cells in scores.groupby(["dataset", "n_clusters", "method"], sort=False):
        choice = choose(cells, OVERVIEW_LEVEL)
        values = {m: np.nan if choice.cell is None else float(choice.cell[m]) for m in _OVERVIEW_METRICS}
        chosen = np.nan if choice.cell is None else choice.cell.lam
        data.append(
            {
                **{"dataset": dataset, "n_clusters": k, "method": method, "lam": chosen},
                "setting": choice.setting,
                **values,
                **{"cells_ok": choice.n_ok, "cells": choice.n_all, "remark": choice.note},
            }
        )
        shown.append(
            {
                "data set": names.dataset(str(dataset)),
                "K": k,
                "method": names.method(str(method)),
                "setting": choice.setting or "–",
                **{COLUMNS[m].label: number(v, COLUMNS[m].decimals) for m, v in values.items()},
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
        The Parquet file of the scores; what the cells cost lies beside it.
    folder : Path
        Output.
    shown : Names
    """
    frame = load_cells(scores)
    for name in names:
        if name == "overview":
            _overview(frame, shown, folder / name)
        elif name == "reproduction":
            from fairclust.report.scoreboard import write_scoreboard  # it is built upon `compare`

            write_scoreboard(frame, shown, folder / name)
        else:
            _paper_table(PAPER_TABLES[name], frame, shown, folder / name)
