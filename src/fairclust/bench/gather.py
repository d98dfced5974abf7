"""The tidy tables: one row per cell, out of the blocks' indexes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairclust.bench.config import canonical_json
from fairclust.bench.runner import read_index
from fairclust.bench.store import atomic_write
from fairclust.metrics.table import METRICS

# What a cell costs and where it was computed differs from run to run and stands in a table of its own, so
# that the scores of the same command are the same file.
RUN_COLUMNS = ["wall_seconds", "cpu_seconds", "peak_memory_mb", "threads", "git_commit", "finished"]
STEP_COLUMNS = ["key", "step", "objective", "clustering", "fairness"]
SCORE_COLUMNS = [
    *("dataset", "method", "n_clusters", "lam", "seed", "status", "reason"),
    *("n_rows", "n_features", "n_groups"),
    *METRICS,
    *("counts", "objective", "n_iter", "converged", "estimator", "warnings", "params", "random_state"),
    *("data_hash", "fingerprint", "key"),
]


def gather_scores(indexes: Iterable[Path], scores: Path, runs: Path, steps: Path) -> pd.DataFrame:
    """Join all blocks into the tidy tables, scores and runs as Parquet and CSV.

    Parameters
    ----------
    indexes : iterable of Path
        Written by `runner.run_block`.
    scores, runs : Path
        Paths without ending: scores hold what is reproducible, runs what a cell cost.
    steps : Path
        Parquet of the outer steps of every cell: key, step, objective, clustering, fairness.

    Returns
    -------
    DataFrame
        The scores.
    """
    records = [record for index in indexes for record in read_index(index)]
    history = [{"key": record["key"], **step} for record in records for step in record.get("history", [])]
    with atomic_write(steps) as file:
        pd.DataFrame(history, columns=STEP_COLUMNS).to_parquet(file, index=False)
    rows = [_row(record) for record in records]
    frame = pd.DataFrame(rows, columns=[*SCORE_COLUMNS, *RUN_COLUMNS])
    numbers = ["lam", "objective", "n_iter", *METRICS, *(c for c in RUN_COLUMNS if c != "git_commit")]
    frame[numbers] = frame[numbers].astype(float)
    frame = frame.sort_values(["dataset", "method", "n_clusters", "lam", "params", "seed"], ignore_index=True)
    identity = ["dataset", "method", "n_clusters", "lam", "seed", "status", "key"]
    for stem, columns in ((scores, SCORE_COLUMNS), (runs, [*identity, *RUN_COLUMNS])):
        with atomic_write(stem.with_suffix(".parquet")) as file:
            frame[columns].to_parquet(file, index=False)
        with atomic_write(stem.with_suffix(".csv")) as file:
            frame[columns].to_csv(file, index=False)
    return frame[SCORE_COLUMNS]


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    estimator = record.get("estimator", {})
    history = record.get("history") or [{}]
    return {
        **{name: record.get(name) for name in [*SCORE_COLUMNS, *RUN_COLUMNS]},
        **record.get("metrics", {}),
        "lam": _number(record["params"].get("lam")),
        "counts": json.dumps(record["counts"]) if "counts" in record else None,
        "params": canonical_json(record["params"]),
        "estimator": json.dumps(estimator, sort_keys=True),
        "warnings": "; ".join(record.get("warnings", [])),
        "objective": _number(history[-1].get("objective")),
        "n_iter": _number(estimator.get("n_iter_")),
        "converged": estimator.get("converged_"),
    }


def _number(value: Any) -> float:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return float(value) if is_number else np.nan
