"""What tables and axes can show of a cell: metrics of its labels, and a few numbers that it has besides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd

from fairclust.bench.store import read_table
from fairclust.metrics.table import METRICS, Direction
from fairclust.report.redaction import redact_text


@dataclass(frozen=True)
class Column:
    """How a number is shown.

    Attributes
    ----------
    label : str
    decimals : int
    direction : {'lower', 'higher', 'none'}
        Which values are better.
    is_cost : bool
        Whether the relative difference from a reported number says something.
    """

    label: str
    decimals: int
    direction: Direction
    is_cost: bool = False


# Numbers that the fitted estimator states itself: column to the estimator's attribute. They are of the model,
# not of the labels, so that no scorer can know them.
_ESTIMATOR = {"nll": "nll_", "soft_delta": "soft_delta_", "min_distance": "min_distance_"}

COLUMNS: Mapping[str, Column] = MappingProxyType(
    {
        **{
            name: Column(
                metric.label,
                metric.decimals,
                metric.direction,
                metric.needs != "table" and metric.direction == "lower",
            )
            for name, metric in METRICS.items()
        },
        "nll": Column("NLL", 3, "lower", is_cost=True),
        "soft_delta": Column("Delta of responsibilities", 4, "lower"),
        "min_distance": Column("Smallest distance of means", 4, "none"),
        "accuracy": Column("Accuracy", 4, "higher"),
        "seconds": Column("Seconds", 1, "lower"),
        "seconds_std": Column("Seconds, standard deviation", 1, "lower"),
        "relative_seconds": Column("Relative time", 3, "lower"),
        "cpu_seconds": Column("CPU seconds of a fit", 1, "lower"),
    }
)
"""Every column by name. Those of seconds that are not a cell's own are made by the tables."""


def load_cells(scores: Path) -> pd.DataFrame:
    """Read the tidy scores, and add the columns that they do not have as such.

    Parameters
    ----------
    scores : Path
        The Parquet file of the scores. What the cells cost is read from the file beside it, if that is there.

    Returns
    -------
    DataFrame
        The scores with `nll`, `soft_delta`, `min_distance` and `accuracy`, and `seconds` (of the clock) and
        `cpu_seconds`; NaN where a cell has none. Reasons hold no paths of the machine.
    """
    runs = scores.with_name("runs.parquet")
    frame = with_columns(read_table(scores), read_table(runs) if runs.is_file() else None)
    return frame.assign(reason=[redact_text(text) if isinstance(text, str) else "" for text in frame.reason])


def with_columns(frame: pd.DataFrame, runs: pd.DataFrame | None = None) -> pd.DataFrame:
    """The scores with the columns that `load_cells` adds; `runs` are the costs of the cells."""
    stated = [json.loads(text) if isinstance(text, str) else {} for text in frame["estimator"]]
    found = {
        name: pd.Series([one.get(attribute) for one in stated], index=frame.index, dtype=float)
        for name, attribute in _ESTIMATOR.items()
    }
    frame = frame.assign(**found, accuracy=1 - frame["clustering_error"])
    if runs is None:
        return frame.assign(seconds=np.nan, cpu_seconds=np.nan)
    costs = runs[runs.key.notna()].drop_duplicates("key").rename(columns={"wall_seconds": "seconds"})
    return frame.merge(costs[["key", "seconds", "cpu_seconds"]], on="key", how="left")
