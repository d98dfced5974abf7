"""Tidy tables with one row per cell, from the files of cells."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from fairclust.metrics.table import METRICS
from fairclust.outputs import atomic_write, write_text
from fairclust.pipeline.blocks import At
from fairclust.pipeline.cell_store import DamagedFile, cell_path, read_labels, read_output, store_of
from fairclust.pipeline.columns import STATED
from fairclust.pipeline.job import Job
from fairclust.pipeline.papers import canonical_json
from fairclust.pipeline.provenance import provenance, version_text
from fairclust.pipeline.rule_inputs import inputs_of

RUN_COLUMNS = [
    *("wall_seconds", "cpu_seconds", "score_seconds", "peak_memory_mb", "threads"),
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
_KINDS = dict.fromkeys(_NUMBERS, "float64") | dict.fromkeys(_COUNTS, "Int64") | {"converged": "boolean"}
_ARROW = {"float64": pa.float64(), "Int64": pa.int64(), "boolean": pa.bool_()}


def load_cells(packs: Iterable[str | Path], needs: Collection[At]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells of some data sets, methods and K in the outputs of fit jobs, and their outer steps.

    The cells have the columns of `fits_frame` and `pack`, the output of the job. The steps have `STEP_COLUMNS` and
    further keys of the histories.
    """
    wanted, read = set(needs), ((record, str(pack)) for pack in packs for record in read_output(Path(pack)))
    # The histories of other cells would take too much memory.
    found = [pair for pair in read if tuple(map(pair[0].get, ("dataset", "method", "n_clusters"))) in wanted]
    cells = fits_frame(record for record, _ in found).assign(pack=[pack for _, pack in found])
    histories = ((record["key"], record.get("history", [])) for record, _ in found)
    steps = pd.DataFrame([{"key": key, **step} for key, history in histories for step in history])
    more = [name for name in steps if name not in STEP_COLUMNS]
    return cells, steps.reindex(columns=[*STEP_COLUMNS, *more])


def cells_at(cells: pd.DataFrame, needs: Iterable[At]) -> pd.DataFrame:
    """The cells of some data sets, methods and K, in this order, out of those of `load_cells`."""
    place = {at: i for i, at in enumerate(needs)}
    found = [place.get(at) for at in zip(cells.dataset, cells.method, cells.n_clusters, strict=True)]
    order = pd.Series(found, cells.index, dtype=float).dropna().sort_values(kind="stable")
    return cells.loc[order.index].reset_index(drop=True)


def fits_frame(records: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Records of cells as a data frame.

    The columns are `SCORE_COLUMNS`, those of `RUN_COLUMNS` with `seconds` for wall_seconds, numbers that estimators
    state, and accuracy.
    """
    return _with_more(_frame(_row(record) for record in records))


def load_scores(scores: Path) -> pd.DataFrame:
    """All cells of a run as `fits_frame` returns them, from ``scores.parquet`` and ``runs.parquet``."""
    frame, runs = read_table(scores), read_table(scores.with_name("runs.parquet"))
    if frame.key.fillna("").tolist() != runs.key.fillna("").tolist():
        raise DamagedFile(f"{scores} and runs.parquet are of two runs. Fix: delete both and run again")
    return _with_more(_typed(pd.concat([frame, runs[RUN_COLUMNS]], axis=1)))


def labels_of(pack: str | Path, key: str) -> np.ndarray | None:
    """Labels of one cell, shape (n_samples,); None if it has none. `pack` is the output of its job.

    If the cell is damaged, it is removed with this output, so that the next run fits it again; then DamagedFile is
    raised.
    """
    path = cell_path(store_of(Path(pack)), key)
    try:
        return read_labels(path)
    except DamagedFile as error:
        path.unlink(missing_ok=True)
        Path(pack).unlink(missing_ok=True)
        raise DamagedFile(
            f"{error}. Fix: run the same command again, which fits this cell anew; all others are kept"
        ) from None


def read_arrow(path: Path) -> pa.Table:
    """A table of the results, written as Parquet; DamagedFile if the file is damaged."""
    try:
        # Not by path: pyarrow would map the file, and replacing a file while it is mapped would crash.
        return pq.read_table(io.BytesIO(path.read_bytes()), page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise DamagedFile(
            f"{path} is damaged ({error}). Fix: delete it and run again; finished fits are kept"
        ) from None


def read_table(path: Path) -> pd.DataFrame:
    """As `read_arrow`, but a data frame."""
    return read_arrow(path).to_pandas()


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet, in which damage is found."""
    with atomic_write(path) as file:
        pq.write_table(table, file, write_page_checksum=True, compression="zstd")


def scores(job: Job) -> None:
    """What the rule `scores` does: it joins all cells, and writes the summary and the provenance."""
    inputs, outputs = inputs_of(job), list(map(Path, job.output))
    scores, _, runs, _, summary, origin = outputs
    order = dict.fromkeys(block.at for block in inputs.blocks)
    packs = list(map(Path, job.input[""]))
    found = gather_scores(packs, order, scores.with_suffix(""), runs.with_suffix(""))
    settings = {**inputs.settings(), "digest": inputs.configuration_digest()}
    write_text(summary, json.dumps(found, indent=2))
    write_text(origin, json.dumps({**provenance(), "config": settings}, indent=2, default=str))


def gather_scores(packs: Sequence[Path], order: Iterable[At], scores: Path, runs: Path) -> dict[str, Any]:
    """Join all cells, in the order of the configuration, into tidy tables of scores and of costs, as Parquet and CSV.

    Returns the summary: cells, by_status, and missing, a dict for each reason. A cell is lost if its job ended without
    a result in every attempt.
    """
    rows, lost, damaged = [], [], []
    for pack in packs:
        try:
            records = read_output(pack)
        except DamagedFile as error:  # all damaged files are reported at once
            damaged.append(str(error))
            continue
        # The whole records, with their histories, would take too much memory.
        rows += [_row(record) for record in records]
        lost += ["lost" in record for record in records]
    if damaged:
        raise DamagedFile("\n".join(damaged))
    frame = cells_at(_frame(rows).assign(lost=lost), order)
    _write_table(scores, frame[SCORE_COLUMNS])
    _write_table(runs, frame[[*_IDENTITY, *RUN_COLUMNS]])
    of_reason = frame[frame.status != "ok"].groupby(["dataset", "method", "status", "reason", "lost"])
    return {
        "cells": len(frame),
        "by_status": dict(sorted(Counter(frame.status).items())),
        "missing": of_reason.size().reset_index(name="cells").to_dict("records"),
    }


def _write_table(stem: Path, frame: pd.DataFrame) -> None:
    """Write a table as Parquet and as CSV."""
    schema = pa.schema([(name, _ARROW.get(_KINDS.get(name, ""), pa.string())) for name in frame])
    table = pa.Table.from_pandas(frame, schema=schema, preserve_index=False)
    write_arrow(stem.with_suffix(".parquet"), table)
    write_text(stem.with_suffix(".csv"), frame.to_csv(index=False))


def _frame(rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    return _typed(pd.DataFrame(list(rows), columns=[*SCORE_COLUMNS, *RUN_COLUMNS]))


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.astype({name: kind for name, kind in _KINDS.items() if name in frame})


def _with_more(frame: pd.DataFrame) -> pd.DataFrame:
    stated = [json.loads(text) if isinstance(text, str) else {} for text in frame["estimator"]]
    found = {
        name: pd.Series([one.get(attribute) for one in stated], index=frame.index, dtype=float)
        for name, attribute in STATED.items()
    }
    frame = frame.assign(**found, accuracy=1 - frame["clustering_error"])
    return frame.rename(columns={"wall_seconds": "seconds"})


def _row(record: Mapping[str, Any]) -> dict[str, Any]:
    estimator = record.get("estimator", {})
    history = record.get("history") or [{}]
    return {
        **{name: record.get(name) for name in [*SCORE_COLUMNS, *RUN_COLUMNS]},
        **record.get("metrics", {}),
        "lam": _number(record["params"].get("lam")),
        "counts": json.dumps(record["counts"]) if "counts" in record else None,
        "by_column": json.dumps(record.get("by_column", {})) if "counts" in record else None,
        "versions": version_text(record["versions"]) if "versions" in record else None,
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
