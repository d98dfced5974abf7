"""The tables of the page that are about the run: leaderboards, settings, groups, times and missing cells."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import BY_COLUMN, COLUMNS, OF_NUMBERS
from fairclust.pipeline.names import Names
from fairclust.report.charts import tick_text
from fairclust.report.leaderboard import COSTS, FAIRNESS
from fairclust.report.render import MISSING, number, spread_text
from fairclust.report.selection import INSTANCE, first_line
from fairclust.report.settings import SHOWN
from fairclust.report.table import Column, Table, filters, numbers, texts

MAX_SETTINGS = 600
"""With more settings than this, the page has no table of settings; the charts and the files still show them."""


def instance_title(names: Names, dataset: Any, k: Any) -> str:
    """A data set and its K, for readers."""
    return f"{names.dataset(str(dataset))}, K = {k}"


def glossary(audited: Iterable[str] = ()) -> Table:
    """The meaning of each metric, from its docstring. Metrics of the audit are listed only if they are in `audited`."""
    rows = []
    for metric in METRICS.values():
        if metric.audit and metric.name not in audited:
            continue
        low, high = (tick_text(bound) if np.isfinite(bound) else "∞" for bound in metric.range)
        better = f", {metric.direction} is better" if metric.direction != "none" else ""
        meaning = (inspect.getdoc(metric.function) or "").partition("\n\n")[0]
        rows.append([metric.label, meaning, f"{low} to {high}{better}", metric.source])
    nll = COLUMNS["nll"]
    meaning = "Mean negative log-likelihood of the rows under a mixture."
    rows.append([nll.label, meaning, f"{nll.direction} is better", ""])
    return Table("What the metrics mean", texts("Metric", "Meaning", "Range", "Source"), rows)


def leaderboards(leaderboard: pd.DataFrame, names: Names) -> list[dict[str, Any]]:
    """The `make_leaderboard` as a table for each cost and fairness metric, with their positions in `SHOWN`."""
    found = []
    for (cost, fairness), board in leaderboard.groupby(["cost", "fairness"], sort=False):
        on_instances = board[board.dataset.notna()]
        pairs = zip(100 * on_instances.score, 100 * on_instances.sd, strict=True)
        shown = on_instances.assign(text=[spread_text(score, sd, 1) for score, sd in pairs])
        instances = shown.set_index(["method", *INSTANCE]).text.unstack(
            INSTANCE, sort=False, fill_value=MISSING
        )
        rows = [
            [
                MISSING if pd.isna(row["rank"]) else str(row["rank"]),
                names.method(row["method"]),
                names.family(row["method"]),
                "yes" if names.is_ours(row["method"]) else "",
                number(100 * row["wins"], 1),
                spread_text(100 * row["score"], 100 * row["sd"], 1),
                number(100 * row["best"], 1),
                str(row["starts"]),
                f"{row['instances']} of {instances.shape[1]}",
                str(int(row["failed"])),
                number(row["seconds"], 1),
                *instances.loc[row["method"]],
            ]
            for row in board[board.dataset.isna()].to_dict("records")
        ]
        columns = [
            *numbers("Rank"),
            *texts("Method"),
            *filters("Family", "Ours"),
            *numbers("Wins, %", "Mean score", "Best starts", "Starts", "Instances", "Cells failed"),
            *numbers("Seconds of all starts", *(instance_title(names, *at) for at in instances)),
        ]
        plural = "instance" if instances.shape[1] == 1 else "instances"
        title = f"{METRICS[cost].label} against {METRICS[fairness].label}: {instances.shape[1]} {plural}"
        places = {"cost": SHOWN.index(cost), "fairness": SHOWN.index(fairness)}
        found.append({**places, "table": Table(title, columns, rows)})
    return found


def every_setting(settings: pd.DataFrame, names: Names) -> Table | None:
    """One row for each setting of each method: means over its starts, and the best start.

    None if no cell has the status 'ok', or if there are more than `MAX_SETTINGS` settings.
    """
    if settings.empty or len(settings) > MAX_SETTINGS:
        return None
    costs = [name for name in COSTS if np.isfinite(settings[name].astype(float)).any()]
    shown = [*costs, *(name for name in FAIRNESS[:4] if settings[name].notna().any())]
    rows = [
        [
            names.dataset(str(of["dataset"])),
            str(of["n_clusters"]),
            names.method(str(of["method"])),
            of["setting"] or MISSING,
            str(of["starts"]),
            *(
                spread_text(
                    of[f"{name} mean"], of[f"{name} sd"], METRICS[name].decimals,
                    of[name] if name in costs else math.nan,
                )
                for name in shown
            ),
            number(of["all_seconds"], 2),
        ]
        for of in settings.to_dict("records")
    ]  # fmt: skip
    columns = [
        *filters("Data set"),
        Column("K", is_number=True, filters=True),
        *filters("Method"),
        *texts("Setting"),
        *numbers("Starts", *(METRICS[name].label for name in shown), "Seconds of all starts"),
    ]
    return Table("Every setting", columns, rows)


def _fairest_settings(
    points: pd.DataFrame, names: Names, column: str | None = None
) -> Iterator[tuple[Any, Any, str, Any]]:
    """Data set, K, method, and its setting with the highest balance, among those that have a text in the column."""
    usable = points[points[FAIRNESS[0]].notna()]
    if column is not None:
        usable = usable[usable[column].map(lambda text: isinstance(text, str)).astype(bool)]
    for (dataset, k), of in usable.groupby(INSTANCE, sort=False):
        for method in names.in_order(of.method.unique()):
            mine = of[of.method == method]
            yield dataset, k, method, mine.loc[mine[FAIRNESS[0]].idxmax()]


def columns_table(points: pd.DataFrame, names: Names) -> Table | None:
    """Fairness to each of several sensitive columns, for each method at its setting with the highest balance."""
    found = [
        (dataset, k, method, fairest.setting or MISSING, json.loads(fairest.by_column))
        for dataset, k, method, fairest in _fairest_settings(points, names, "by_column")
    ]
    some_numbers = any(OF_NUMBERS in of for *_, by_column in found for of in by_column.values())
    shown = [*BY_COLUMN, OF_NUMBERS] if some_numbers else list(BY_COLUMN)
    rows = [
        [
            names.dataset(str(dataset)), str(k), names.method(method), setting, column,
            *(number(of.get(name), METRICS[name].decimals) for name in shown),
        ]
        for dataset, k, method, setting, by_column in found
        for column, of in by_column.items()
    ]  # fmt: skip
    columns = [
        *filters("Data set"),
        *numbers("K"),
        *filters("Method"),
        *texts("Setting"),
        *filters("Sensitive column"),
        *numbers(*(METRICS[name].label for name in shown)),
    ]
    title = "Fairness to each sensitive column, for each method at its setting with the highest balance"
    return Table(title, columns, rows) if rows else None


def shares_tables(points: pd.DataFrame, names: Names) -> list[Table]:
    """The groups' shares in every cluster, for the fairest setting of each method."""
    found = []
    for dataset, k, method, fairest in _fairest_settings(points, names, "counts"):
        table = json.loads(fairest.counts)
        counts = np.array(list(table.values()), dtype=float)
        rows = [["all", f"{counts.sum():,.0f}", *(f"{s:.1%}" for s in counts.sum(axis=1) / counts.sum())]]
        for cluster, column in enumerate(counts.T):
            shares = [f"{s:.1%}" for s in column / column.sum()] if column.sum() else [MISSING] * len(column)
            rows.append([str(cluster), f"{column.sum():,.0f}", *shares])
        words = f", {fairest.setting}" if fairest.setting else ""
        title = f"{instance_title(names, dataset, k)}: {names.method(method)}{words}"
        found.append(Table(title, numbers("Cluster", "Rows", *table), rows))
    return found


def audited_metrics(points: pd.DataFrame) -> list[str]:
    """Names of the audit's metrics for which at least one fit has a value."""
    return [
        name
        for name, metric in METRICS.items()
        if metric.audit and name in points and points[name].notna().any()
    ]


def audit_cards(points: pd.DataFrame, names: Names) -> list[dict[str, Any]]:
    """For each data set and K, the fairness of every method at its setting with the highest balance.

    A card has a table, with a row for each method, and sentences, which name the best and the worst methods in each
    metric. There is no card if no fit has a value of any metric of the audit. `points` are the best starts of all
    settings.
    """
    asked, found = audited_metrics(points), []
    if not asked:
        return []
    shown = [FAIRNESS[0], *asked]
    audited = points[points[asked].notna().any(axis=1)]
    for (dataset, k), of in audited.groupby(INSTANCE, sort=False):
        chosen = {method: row for *_, method, row in _fairest_settings(of, names)}
        rows = [
            [
                names.method(method),
                row.setting or MISSING,
                *(number(float(row[name]), METRICS[name].decimals) for name in shown),
            ]
            for method, row in chosen.items()
        ]
        columns = [*filters("Method"), *texts("Setting"), *numbers(*(METRICS[name].label for name in shown))]
        values = pd.DataFrame(chosen).T
        sentences = [_fairest(values[name], names) for name in shown if values[name].notna().any()]
        table = Table(f"Audit of {instance_title(names, dataset, k)}", columns, rows)
        found.append({"table": table, "sentences": sentences})
    return found


def _fairest(values: pd.Series, names: Names) -> str:
    """A sentence that names the methods with the best and the worst value of a metric."""
    metric, values = METRICS[str(values.name)], values.dropna().astype(float)
    low, high = values.min(), values.max()
    best, worst = (high, low) if metric.direction == "higher" else (low, high)
    text = f"{metric.label}: best is {list_methods(values.index[values == best], names)}"
    text += f" ({number(best, metric.decimals)})"
    if best == worst:
        return f"{text}."
    return f"{text}, worst {list_methods(values.index[values == worst], names)} ({number(worst, metric.decimals)})."


def times_tables(scores: pd.DataFrame, names: Names) -> dict[str, Table]:
    """Seconds of the fits: by method, and by data set and method."""
    ok = scores[scores.status == "ok"]

    def rows(by: list[str], place: Any) -> list[list[str]]:
        return [
            [
                *place(*at),
                f"{len(of):,}",
                number(of.seconds.median(), 3),
                number(of.seconds.max(), 3),
                number(of.seconds.sum(), 1),
                number(of.cpu_seconds.sum(), 1),
                number(of.peak_memory_mb.max(), 0),
            ]
            for at, of in ok.groupby(by, sort=False)
        ]

    shown = numbers("Fits", "Median s", "Slowest s", "All s", "All CPU s", "Peak memory MB")
    by_method = rows(["method"], lambda method: [names.method(method)])
    both = rows(
        [*INSTANCE, "method"],
        lambda dataset, k, method: [names.dataset(dataset), str(k), names.method(method)],
    )
    columns = [*filters("Data set"), *numbers("K"), *filters("Method"), *shown]
    return {
        "methods": Table("Run times by method", [*texts("Method"), *shown], by_method),
        "all": Table("Run times by data set and method", columns, both),
    }


def missing_table(scores: pd.DataFrame, names: Names) -> Table | None:
    """Cells without a result, with a row for each status, data set and reason; None if there are no such cells."""
    bad = scores[scores.status != "ok"]
    if bad.empty:
        return None
    bad = bad.assign(reason=[first_line(reason) for reason in bad.reason])
    rows = [
        [status, names.dataset(dataset), list_methods(of.method, names), str(len(of)), reason]
        for (status, dataset, reason), of in bad.groupby(["status", "dataset", "reason"], sort=False)
    ]
    columns = [*filters("Status", "Data set"), *texts("Methods"), *numbers("Cells"), *texts("Reason")]
    return Table("Cells without a result", columns, rows)


def missing_lines(scores: pd.DataFrame, names: Names) -> Iterator[str]:
    """A sentence for each status and data set with cells without a result."""
    bad = scores[scores.status != "ok"]
    for (status, dataset), of in bad.groupby(["status", "dataset"], sort=False):
        cells = "1 cell" if len(of) == 1 else f"{len(of):,} cells"
        yield f"{names.dataset(str(dataset))}: {cells} {status}, {first_line(of.reason.iloc[0])}"


def list_methods(methods: Iterable[str], names: Names) -> str:
    """Labels of methods without duplicates, separated by semicolons, because labels may contain commas."""
    return "; ".join(dict.fromkeys(names.method(str(method)) for method in methods))


def datasets_table(scores: pd.DataFrame, names: Names) -> Table:
    """The data sets of the run and their sizes."""
    rows = []
    for dataset, of in scores.groupby("dataset", sort=False):
        first = of.sort_values("n_rows", na_position="last").iloc[0]
        ks = ", ".join(str(k) for k in sorted(of.n_clusters.unique()))
        sizes = [
            MISSING if pd.isna(first[name]) else f"{int(first[name]):,}"
            for name in ("n_rows", "n_features", "n_groups")
        ]
        n_ok = (of.status == "ok").sum()
        rows.append([names.dataset(str(dataset)), *sizes, ks, f"{n_ok:,} of {len(of):,}"])
    columns = [*texts("Data set"), *numbers("Rows", "Features", "Groups"), *texts("K", "Cells ok")]
    return Table("Data sets of the run", columns, rows)
