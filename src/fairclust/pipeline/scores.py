"""Tidy tables with a row for each fit: the files of fit jobs, the fits that a product shows, the scores of the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairclust.messages import UserError, brief
from fairclust.metrics.table import METRICS
from fairclust.outputs import atomic_write, write_text
from fairclust.pipeline.columns import STATED
from fairclust.pipeline.grids import Grid, canonical_json

RUN_COLUMNS = [
    *("wall_seconds", "cpu_seconds", "score_seconds", "threads"),
    *("git_commit", "versions", "finished"),
]
"""What a cell costs and where it was computed. These columns differ from run to run. They are kept in a separate
table, so that the same command gives the same file of scores."""

STEP_COLUMNS = ["key", "step", "objective", "clustering", "fairness"]
SCORE_COLUMNS = [
    *("dataset", "method", "n_clusters", "lam", "seed", "status", "reason"),
    *("n_rows", "n_features", "n_groups"),
    *METRICS,
    *("counts", "by_column", "objective", "n_iter", "converged", "estimator", "warnings", "params"),
    *("random_state", "data_hash", "fingerprint", "key"),
]
_IDENTITY = ["dataset", "method", "n_clusters", "lam", "seed", "status", "key"]
# The types of the columns that hold no texts. They do not depend on the values.
_NUMBERS = {*METRICS, *RUN_COLUMNS, "lam", "objective", "n_iter"} - {"git_commit", "versions"}
_COUNTS = ("n_rows", "n_features", "n_groups", "n_clusters", "seed", "random_state")
_TYPES = dict.fromkeys(_NUMBERS, pa.float64()) | dict.fromkeys(_COUNTS, pa.int64())
_TYPES |= {"converged": pa.bool_(), "lost": pa.bool_(), "labels": pa.large_binary()}
_NULLABLE = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def write_fits(path: Path, outcomes: Sequence[tuple[Mapping[str, Any], np.ndarray | None]]) -> None:
    """Write the fits of a job as Parquet: a row for each, with its scores, its history and its labels.

    Labels are bytes: integers of the smallest type that holds them, in the order of the rows of the data set.
    """
    rows = [
        {**_row(record), "labels": None if labels is None else np.ascontiguousarray(labels).tobytes()}
        for record, labels in outcomes
    ]
    schema = _schema([*SCORE_COLUMNS, *RUN_COLUMNS, "lost", "history", "labels"])
    write_arrow(path, pa.Table.from_pylist(rows, schema=schema))


def read_fits(path: Path, *more: str) -> pd.DataFrame:
    """The rows of a fit job: its scores and costs, `lost`, `sweep`, the file as `path`, and `more` columns of it."""
    frame = _frame(read_arrow(path, [*SCORE_COLUMNS, *RUN_COLUMNS, "lost", *more]))
    # The name of a method may have dots, too.
    sweep = path.stem.partition(f"{frame.method.iloc[0]}.")[2] if len(frame) else ""
    return frame.assign(sweep=sweep, path=str(path))


def load_cells(
    paths: Iterable[str | Path], asked: Sequence[Mapping[str, Any]]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The fits that a product of a paper asks for, in its order, and their outer steps.

    `paths` are the files of fit jobs, and `asked` is from `Plan.product`. The fits have the columns of `load_scores`,
    `sweep` and `path`. The steps have `STEP_COLUMNS` and further keys of the histories.
    """
    places: dict[tuple[Any, ...], int] = {}
    for place, fits in enumerate(asked):
        names = (fits["dataset"], fits["method"], fits["n_clusters"], fits["sweep"])
        for grid in fits["grids"]:
            for params, seed in product(Grid(**grid).settings(), grid["seeds"]):
                places.setdefault((*names, canonical_json(params), seed), place)
    frame = pd.concat([read_fits(Path(path), "history") for path in paths], ignore_index=True)
    keys = (frame[name] for name in ("dataset", "method", "n_clusters", "sweep", "params", "seed"))
    frame = frame.assign(place=[places.get(key) for key in zip(*keys, strict=True)]).dropna(subset="place")
    histories = frame.dropna(subset="history")
    steps = pd.DataFrame(
        {"key": key, **step}
        for key, history in zip(histories.key, histories.history, strict=True)
        for step in json.loads(history)
    )
    cells = frame.sort_values("place", kind="stable", ignore_index=True)
    cells = _with_more(cells.drop(columns=["history", "lost", "place"]))
    # Several sweeps may have the same fit, which is drawn once.
    columns = list(dict.fromkeys([*STEP_COLUMNS, *steps]))
    return cells, steps.reindex(columns=columns).drop_duplicates(["key", "step"], ignore_index=True)


def load_scores(scores: Path) -> pd.DataFrame:
    """All cells of a run, from ``scores.parquet`` and ``runs.parquet``.

    The columns are `SCORE_COLUMNS`, those of `RUN_COLUMNS` with `seconds` for wall_seconds, numbers that estimators
    state, and accuracy.
    """
    frame, runs = _frame(read_arrow(scores)), _frame(read_arrow(scores.with_name("runs.parquet")))
    return _with_more(pd.concat([frame, runs[RUN_COLUMNS]], axis=1))


def labels_of(path: str | Path, key: str) -> np.ndarray:
    """Labels of one fit with status 'ok' in the file of its job, shape (n_samples,)."""
    fits = read_arrow(Path(path), ["key", "labels", "n_rows"]).to_pandas().set_index("key")
    packed, n_rows = fits.loc[key]
    return unpacked_labels(packed, int(n_rows))


def unpacked_labels(packed: bytes, n_rows: int) -> np.ndarray:
    """The labels in a row of `write_fits`."""
    return np.frombuffer(packed, f"u{len(packed) // n_rows}")


def read_arrow(path: Path, columns: list[str] | None = None) -> pa.Table:
    """A table of the results, or some columns of it, written as Parquet; UserError if it is damaged or lacks one."""
    try:
        return pq.read_table(path, columns=columns, memory_map=False, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise UserError(
            f"{path} is damaged, or of another version ({brief(str(error))}). "
            "Fix: delete it and run again; finished fits are kept"
        ) from None


def write_arrow(path: Path, table: pa.Table, *, level: int | None = None) -> None:
    """Write a table as Parquet, in which damage is found. `level` is that of zstd's compression."""
    with atomic_write(path) as file:
        pq.write_table(table, file, write_page_checksum=True, compression="zstd", compression_level=level)


def gather_scores(paths: Iterable[str | Path], scores: Path, runs: Path) -> dict[str, Any]:
    """Join the files of all fits into tidy tables of scores and of costs, as Parquet and CSV.

    The fits of a data set, a method and a K stand together, where the first of them is. `scores` and `runs` are
    without ending. Returns the summary: cells, by_status, and missing, a dict for each reason.
    A fit is lost if its job ended without a result in every attempt.
    """
    frame = pd.concat([read_fits(Path(path)) for path in paths], ignore_index=True)
    # A fit that several sweeps ask for counts once, with the most metrics, and is lost only if all their jobs lost it.
    known = frame[[*METRICS]].notna().sum(axis=1) - frame.lost.astype(int)
    fits = [frame[name] for name in ("dataset", "method", "n_clusters", "params", "seed")]
    frame = frame.loc[known.groupby(fits, sort=False).idxmax()]
    places = frame.groupby(["dataset", "method", "n_clusters"], sort=False).ngroup()
    frame = frame.loc[places.sort_values(kind="stable").index].reset_index(drop=True)
    _write_table(scores, frame[SCORE_COLUMNS])
    _write_table(runs, frame[[*_IDENTITY, *RUN_COLUMNS]])
    of_reason = frame[frame.status != "ok"].groupby(
        ["dataset", "method", "sweep", "status", "reason", "lost"]
    )
    return {
        "cells": len(frame),
        "by_status": dict(sorted(Counter(frame.status).items())),
        "missing": of_reason.size().reset_index(name="cells").to_dict("records"),
    }


def _write_table(stem: Path, frame: pd.DataFrame) -> None:
    """Write a table as Parquet and as CSV."""
    table = pa.Table.from_pandas(frame, schema=_schema(frame), preserve_index=False)
    write_arrow(stem.with_suffix(".parquet"), table)
    write_text(stem.with_suffix(".csv"), frame.to_csv(index=False))


def _schema(names: Iterable[str]) -> pa.Schema:
    return pa.schema([(name, _TYPES.get(name, pa.string())) for name in names])


def _frame(table: pa.Table) -> pd.DataFrame:
    """A data frame in which counts stay whole numbers, also if some are missing."""
    return table.to_pandas(types_mapper=_NULLABLE.get)


def _with_more(frame: pd.DataFrame) -> pd.DataFrame:
    estimators = [json.loads(text) if isinstance(text, str) else {} for text in frame["estimator"]]
    stated = {
        name: pd.Series([numbers.get(attribute) for numbers in estimators], index=frame.index, dtype=float)
        for name, attribute in STATED.items()
    }
    frame = frame.assign(**stated, accuracy=1 - frame["clustering_error"])
    return frame.rename(columns={"wall_seconds": "seconds"})


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    estimator, history = record.get("estimator", {}), record.get("history") or []
    converged = estimator.get("converged_")
    return {
        **record,
        **record.get("metrics", {}),
        "lam": _number(record["params"].get("lam")),
        "counts": json.dumps(record["counts"]) if "counts" in record else None,
        "by_column": json.dumps(record.get("by_column", {})) if "counts" in record else None,
        "versions": ", ".join(map(" ".join, record["versions"].items())) if "versions" in record else None,
        "params": canonical_json(record["params"]),
        "estimator": json.dumps(estimator, sort_keys=True),
        "warnings": "; ".join(record.get("warnings", [])),
        "objective": _number(history[-1].get("objective")) if history else None,
        "n_iter": _number(estimator.get("n_iter_")),
        "converged": None if converged is None else bool(converged),
        "lost": bool(record.get("lost")),
        "history": json.dumps(history) if history else None,
    }


def _number(value: Any) -> float | None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return float(value) if is_number else None
