"""The tables of the page that are about the run: leaderboards, settings, groups, times and missing cells."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fairclust.metrics.table import METRICS
from fairclust.pipeline.columns import BY_COLUMN, COLUMNS, OF_NUMBERS
from fairclust.pipeline.names import Names
from fairclust.report.charts import tick_text
from fairclust.report.leaderboard import COSTS, FAIRNESS, INSTANCE, Board, sentences
from fairclust.report.redaction import redact_text
from fairclust.report.render import MISSING, number, spread_text

MAX_SETTINGS = 600
"""With more settings than this, the page has no table of settings; the charts and the files still show them."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, whether it holds numbers, and whether readers can filter by it."""

    title: str
    is_number: bool = False
    filters: bool = False


@dataclass(frozen=True)
class Table:
    """A table of the page. Each entry of `rows` is a text, or a `Verdict`."""

    caption: str
    columns: list[Column]
    rows: list[list[Any]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Verdict:
    """A verdict, which the page shows with a coloured sign."""

    text: str

    @property
    def key(self) -> str:
        """The verdict's class in the style sheet."""
        return self.text.replace(" ", "-")


def instance_title(names: Names, dataset: Any, k: Any) -> str:
    """A data set and its K, for readers."""
    return f"{names.dataset(str(dataset))}, K = {k}"


def glossary(audited: Iterable[str] = ()) -> Table:
    """The meaning of each metric, from its docstring. Metrics of the audit are listed only if they are in `audited`."""
    body = []
    for metric in METRICS.values():
        if metric.audit and metric.name not in audited:
            continue
        low, high = (tick_text(bound) if np.isfinite(bound) else "∞" for bound in metric.range)
        better = f", {metric.direction} is better" if metric.direction != "none" else ""
        meaning = (inspect.getdoc(metric.function) or "").partition("\n\n")[0]
        body.append([metric.label, meaning, f"{low} to {high}{better}", metric.source])
    nll = COLUMNS["nll"]
    body.append(
        [
            nll.label,
            "Mean negative log-likelihood of the rows under a mixture.",
            f"{nll.direction} is better",
            "",
        ]
    )
    columns = [Column("Metric"), Column("Meaning"), Column("Range"), Column("Source")]
    return Table("What the metrics mean", columns, body)


def leaderboards(boards: Iterable[Board], names: Names) -> list[dict[str, Any]]:
    """Every leaderboard as a table, with the sentences of `leaderboard.sentences`."""
    every, found = (*COSTS, *FAIRNESS), []
    for board in boards:
        scores, instances = board.table, list(board.table.columns)
        spreads = board.instances.set_index(["method", *INSTANCE]).sd.to_dict()
        rows = []
        for method, row in board.methods.iterrows():
            cells = []
            for at in instances:
                spread = spreads.get((method, *at), math.nan)
                cells.append(spread_text(100 * scores.at[method, at], 100 * spread, 1))
            rows.append(
                [
                    str(row["rank"]),
                    names.method(str(method)),
                    names.family(str(method)),
                    "yes" if names.is_ours(str(method)) else "",
                    number(100 * row["wins"], 1),
                    spread_text(100 * row["score"], 100 * row["sd"], 1),
                    number(100 * row["best"], 1),
                    str(row["starts"]),
                    f"{row['instances']} of {len(instances)}",
                    str(int(row["failed"])),
                    number(row["seconds"], 1),
                    *cells,
                ]
            )
        columns = [
            Column("Rank", is_number=True),
            Column("Method"),
            Column("Family", filters=True),
            Column("Ours", filters=True),
            Column("Wins, %", is_number=True),
            Column("Mean score", is_number=True),
            Column("Best starts", is_number=True),
            Column("Starts", is_number=True),
            Column("Instances", is_number=True),
            Column("Cells failed", is_number=True),
            Column("Seconds of all starts", is_number=True),
            *(Column(instance_title(names, *at), is_number=True) for at in instances),
        ]
        plural = "instance" if len(instances) == 1 else "instances"
        caption = (
            f"{METRICS[board.cost].label} against {METRICS[board.fairness].label}: {len(instances)} {plural}"
        )
        found.append(
            {
                "cost": every.index(board.cost),
                "fairness": every.index(board.fairness),
                "table": Table(caption, columns, rows),
                "sentences": sentences(board, names),
            }
        )
    return found


def settings_table(scores: pd.DataFrame, points: pd.DataFrame, names: Names) -> Table | None:
    """One row for each setting of each method: means over its starts, and the best start (`points`).

    None if no cell has the status 'ok', or if there are more than `MAX_SETTINGS` settings.
    """
    if points.empty or len(points) > MAX_SETTINGS:
        return None
    costs = [name for name in COSTS if np.isfinite(points[name].astype(float)).any()]
    shown = [*costs, *(name for name in FAIRNESS[:4] if points[name].notna().any())]
    key = [*INSTANCE, "method", "params"]
    ok = scores[scores.status == "ok"]
    means = ok.groupby(key)[shown].mean()
    spreads = ok.groupby(key)[shown].std(ddof=1)
    starts, seconds = ok.groupby(key).size(), ok.groupby(key).seconds.sum()
    body = []
    for point in points.to_dict("records"):
        at = tuple(point[name] for name in key)
        values = [
            spread_text(
                means.loc[at, name], spreads.loc[at, name], METRICS[name].decimals,
                point[name] if name in costs else math.nan,
            )
            for name in shown
        ]  # fmt: skip
        body.append(
            [
                names.dataset(str(point["dataset"])),
                str(point["n_clusters"]),
                names.method(str(point["method"])),
                point["setting"] or MISSING,
                str(starts[at]),
                *values,
                number(seconds[at], 2),
            ]
        )
    columns = [
        Column("Data set", filters=True),
        Column("K", is_number=True, filters=True),
        Column("Method", filters=True),
        Column("Setting"),
        Column("Starts", is_number=True),
        *(Column(METRICS[name].label, is_number=True) for name in shown),
        Column("Seconds of all starts", is_number=True),
    ]
    return Table("Every setting", columns, body)


def _fairest_settings(points: pd.DataFrame, column: str, names: Names) -> Iterator[tuple[Any, Any, str, Any]]:
    """Data set, K, method, and its setting with the highest balance among those that have a text in a column."""
    if column not in points:
        return
    known = points[column].map(lambda text: isinstance(text, str)).astype(bool)
    usable = points[known & points[FAIRNESS[0]].notna()]
    for (dataset, k), of in usable.groupby(INSTANCE, sort=False):
        for method in names.in_order(of.method.unique()):
            mine = of[of.method == method]
            yield dataset, k, method, mine.loc[mine[FAIRNESS[0]].idxmax()]


def groups_table(points: pd.DataFrame, names: Names) -> Table | None:
    """The cluster and group farthest from the group's share in the data, for the fairest setting of each method."""
    fairness, body = FAIRNESS[0], []
    for dataset, k, method, fairest in _fairest_settings(points, "counts", names):
        table = json.loads(fairest.counts)
        counts = np.array(list(table.values()), dtype=float)
        sizes = counts.sum(axis=0)
        whole = counts.sum(axis=1) / counts.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            away = np.where(sizes > 0, counts / sizes - whole[:, None], 0.0)
        # With two groups, both are equally far from their shares. Then the smaller group is named.
        order = np.argsort(whole, kind="stable")
        place, cluster = np.unravel_index(np.abs(away[order]).round(12).argmax(), away.shape)
        group = order[place]
        share = counts[group, cluster] / sizes[cluster] if sizes[cluster] else 0.0
        body.append(
            [
                names.dataset(str(dataset)), str(k), names.method(method), fairest.setting or MISSING,
                number(float(fairest[fairness]), METRICS[fairness].decimals),
                f"{sizes.min():,.0f} to {sizes.max():,.0f}", list(table)[group], str(cluster),
                f"{share:.1%}", f"{whole[group]:.1%}",
            ]
        )  # fmt: skip
    columns = [
        Column("Data set", filters=True),
        Column("K", is_number=True),
        Column("Method", filters=True),
        Column("Setting"),
        Column(METRICS[fairness].label, is_number=True),
        Column("Sizes of clusters", is_number=True),
        Column("Group"),
        Column("Cluster", is_number=True),
        Column("Share in it", is_number=True),
        Column("Share in the data", is_number=True),
    ]
    caption = "The group and cluster farthest from the data's shares, at the fairest setting of each method"
    return Table(caption, columns, body) if body else None


def columns_table(points: pd.DataFrame, names: Names) -> Table | None:
    """Fairness to each of several sensitive columns, for each method at its setting with the highest balance."""
    found = [
        (dataset, k, method, fairest.setting or MISSING, json.loads(fairest.by_column))
        for dataset, k, method, fairest in _fairest_settings(points, "by_column", names)
    ]
    some_numbers = any(OF_NUMBERS in of for *_, by_column in found for of in by_column.values())
    shown = [*BY_COLUMN, OF_NUMBERS] if some_numbers else list(BY_COLUMN)
    body = [
        [
            names.dataset(str(dataset)), str(k), names.method(method), setting, column,
            *(number(of.get(name), METRICS[name].decimals) for name in shown),
        ]
        for dataset, k, method, setting, by_column in found
        for column, of in by_column.items()
    ]  # fmt: skip
    columns = [
        Column("Data set", filters=True),
        Column("K", is_number=True),
        Column("Method", filters=True),
        Column("Setting"),
        Column("Sensitive column", filters=True),
        *(Column(METRICS[name].label, is_number=True) for name in shown),
    ]
    caption = "Fairness to each sensitive column, for each method at its setting with the highest balance"
    return Table(caption, columns, body) if body else None


def shares_tables(points: pd.DataFrame, names: Names) -> list[Table]:
    """The groups' shares in every cluster, for the fairest setting of each method."""
    found = []
    for dataset, k, method, fairest in _fairest_settings(points, "counts", names):
        table = json.loads(fairest.counts)
        counts = np.array(list(table.values()), dtype=float)
        columns = [
            Column("Cluster", is_number=True),
            Column("Rows", is_number=True),
            *(Column(group, is_number=True) for group in table),
        ]
        rows = [["all", f"{counts.sum():,.0f}", *(f"{s:.1%}" for s in counts.sum(axis=1) / counts.sum())]]
        for cluster, column in enumerate(counts.T):
            shares = [f"{s:.1%}" for s in column / column.sum()] if column.sum() else [MISSING] * len(column)
            rows.append([str(cluster), f"{column.sum():,.0f}", *shares])
        words = f", {fairest.setting}" if fairest.setting else ""
        title = f"{instance_title(names, dataset, k)}: {names.method(method)}{words}"
        found.append(Table(title, columns, rows))
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
    for (dataset, k), of in points[points[asked].notna().any(axis=1)].groupby(INSTANCE, sort=False):
        by_balance = of.sort_values(FAIRNESS[0], ascending=False, kind="stable").drop_duplicates("method")
        rows = by_balance.set_index("method").loc[names.in_order(by_balance.method)]
        body = [
            [
                names.method(method),
                row.setting or MISSING,
                *(number(float(row[name]), METRICS[name].decimals) for name in shown),
            ]
            for method, row in rows.iterrows()
        ]
        columns = [
            Column("Method", filters=True),
            Column("Setting"),
            *(Column(METRICS[name].label, is_number=True) for name in shown),
        ]
        caption = f"Audit of {instance_title(names, dataset, k)}"
        sentences = [_fairest(rows[name], names) for name in shown if rows[name].notna().any()]
        found.append({"table": Table(caption, columns, body), "sentences": sentences})
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

    def body(groups: Any, words: Any) -> list[list[str]]:
        return [
            [
                *words(at),
                f"{len(of):,}",
                number(of.seconds.median(), 3),
                number(of.seconds.max(), 3),
                number(of.seconds.sum(), 1),
                number(of.cpu_seconds.sum(), 1),
                number(of.peak_memory_mb.max(), 0),
            ]
            for at, of in groups
        ]

    numbers = [
        Column(title, is_number=True)
        for title in ("Fits", "Median s", "Slowest s", "All s", "All CPU s", "Peak memory MB")
    ]
    by_method = body(ok.groupby("method", sort=False), lambda m: [names.method(m)])
    both = body(
        ok.groupby([*INSTANCE, "method"], sort=False),
        lambda at: [names.dataset(at[0]), str(at[1]), names.method(at[2])],
    )
    columns = [
        Column("Data set", filters=True),
        Column("K", is_number=True),
        Column("Method", filters=True),
        *numbers,
    ]
    return {
        "methods": Table("Run times by method", [Column("Method"), *numbers], by_method),
        "all": Table("Run times by data set and method", columns, both),
    }


def missing_table(scores: pd.DataFrame, names: Names) -> Table | None:
    """Cells without a result, with a row for each status, data set and reason; None if there are no such cells."""
    bad = scores[scores.status != "ok"]
    if bad.empty:
        return None
    bad = bad.assign(reason=[brief(reason) for reason in bad.reason])
    body = [
        [status, names.dataset(dataset), list_methods(of.method, names), str(len(of)), reason]
        for (status, dataset, reason), of in bad.groupby(["status", "dataset", "reason"], sort=False)
    ]
    columns = [
        Column("Status", filters=True),
        Column("Data set", filters=True),
        Column("Methods"),
        Column("Cells", is_number=True),
        Column("Reason"),
    ]
    return Table("Cells without a result", columns, body)


def brief(reason: Any) -> str:
    """The first line of a reason, without paths of this machine. Later lines may list the places that were tried."""
    text = "" if pd.isna(reason) else str(reason)
    return redact_text(text.partition("\n")[0].removesuffix(" Tried:")) or "no reason given"


def list_methods(methods: Iterable[str], names: Names) -> str:
    """Labels of methods without duplicates, separated by semicolons, because labels may contain commas."""
    return "; ".join(dict.fromkeys(names.method(str(method)) for method in methods))


def datasets_table(scores: pd.DataFrame, names: Names) -> Table:
    """The data sets of the run and their sizes."""
    body = []
    for dataset, of in scores.groupby("dataset", sort=False):
        first = of.sort_values("n_rows", na_position="last").iloc[0]
        ks = ", ".join(str(k) for k in sorted(of.n_clusters.unique()))
        sizes = [
            MISSING if pd.isna(first[name]) else f"{int(first[name]):,}"
            for name in ("n_rows", "n_features", "n_groups")
        ]
        body.append(
            [names.dataset(str(dataset)), *sizes, ks, f"{(of.status == 'ok').sum():,} of {len(of):,}"]
        )
    columns = [
        Column("Data set"),
        *(Column(t, is_number=True) for t in ("Rows", "Features", "Groups")),
        Column("K"),
        Column("Cells ok"),
    ]
    return Table("Data sets of the run", columns, body)
