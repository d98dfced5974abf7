"""The columns that tables and axes can show of a cell: metrics of its labels, and a few other numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from fairclust.metrics.registry import Direction
from fairclust.metrics.table import METRICS, Scored, score_labels


class Column(NamedTuple):
    """How a number is shown. For costs, the relative difference from a reported value is meaningful."""

    label: str
    decimals: int
    direction: Direction
    is_cost: bool = False


STATED = {"nll": "nll_", "soft_delta": "soft_delta_", "min_distance": "min_distance_"}
"""Numbers that are read from the fitted estimator: column to attribute. They describe the model, so they cannot be
computed from the labels."""

TIMES = ("seconds", "seconds_std", "relative_seconds", "cpu_seconds")
"""Columns with run times of fits. They can be compared within one machine only."""

COLUMNS: Mapping[str, Column] = {
    **{
        name: Column(
            one.label, one.decimals, one.direction, one.needs != "table" and one.direction == "lower"
        )
        for name, one in METRICS.items()
    },
    "nll": Column("NLL", 3, "lower", is_cost=True),
    "soft_delta": Column("Delta of responsibilities", 4, "lower"),
    "min_distance": Column("Smallest distance of means", 4, "none"),
    "accuracy": Column("Accuracy", 4, "higher"),
    "objective": Column("Objective of the method", 4, "lower"),
    "seconds": Column("Seconds", 1, "lower"),
    "seconds_std": Column("Seconds, standard deviation", 1, "lower"),
    "relative_seconds": Column("Relative time", 3, "lower"),
    "cpu_seconds": Column("CPU seconds of a fit", 3, "lower"),
}
"""Every column by name. A single cell has no `seconds_std` and no `relative_seconds`; the tables compute them."""

BY_COLUMN = ("balance", "fairness_ratio", "fairness_error", "delta")
"""Metrics that are stored for each sensitive column, if there are several."""

OF_NUMBERS = "mean_deviation"
"""The metric that is stored for each sensitive column of numbers besides."""

_TERMS = {"clustering": "Clustering term", "fairness": "Fairness term"}


def column_of(name: str) -> Column:
    """A column, or how the name of something else is shown: a term of an objective, or a count of a data set."""
    return COLUMNS.get(name) or Column(_TERMS.get(name, name.replace("_", " ")), 0, "none")


def record_of(scored: Scored, metrics: Iterable[str], groups: Iterable[str]) -> dict[str, Any]:
    """What a record states of a clustering: metrics by name, and the rows of the `groups` in each cluster.

    If there are several sensitive columns, it has the metrics in `BY_COLUMN` for each of them, and `mean_deviation` for
    columns of numbers that are cut into ranges. Metrics that are undefined are None.
    """
    by_column = {}
    for name, table in scored.tables.items() if scored.columns else ():
        values = {metric: float(METRICS[metric].function(table)) for metric in BY_COLUMN}
        if name in scored.numbers:
            numbers = scored.numbers[name]
            values[OF_NUMBERS] = METRICS[OF_NUMBERS].function(scored.labels, sensitive_features=numbers)
        by_column[name] = _plain(values)
    counts = dict(zip(groups, scored.table.tolist(), strict=True))
    return {"metrics": _plain(score_labels(scored, metrics)), "by_column": by_column, "counts": counts}


def _plain(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}
