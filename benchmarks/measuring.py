"""Functions that several benchmarks use: for data, clocks, separate processes and tables."""

from __future__ import annotations

import csv
import multiprocessing
import resource
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairclust.datasets.census_like import make_census_like
from fairclust.datasets.download import fetch_source
from fairclust.datasets.prepare import prepare_dataset, standardize, unit_rows
from fairclust.datasets.store import PreparedDataset
from fairclust.pipeline.config import user_config

ROOT = Path(__file__).parents[1]
SEED = 0
CENSUS_ROWS = 2_458_285


def prepared(name: str, mirror: str | None) -> PreparedDataset:
    """Download and prepare a data set of the configuration as the papers do."""
    config = user_config([])
    sources = config.sources_of(name)
    with tempfile.TemporaryDirectory() as raw:
        mirrors = [mirror] if mirror else []
        paths = {key: fetch_source(key, spec, raw, mirrors) for key, spec in sources.items()}
        return prepare_dataset(name, config.datasets[name], paths, sources)


def paper_data(name: str, mirror: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Return points, groups and K of a data set of the configuration."""
    data = prepared(name, mirror)
    return data.X, data.groups, int(data.card["n_clusters"])


def drawn(rows: int, *, dtype: type = np.float32, **params: Any) -> tuple[np.ndarray, np.ndarray]:
    """Draw `census_like`, standardised and with rows of unit length, as the papers scale their data."""
    X, groups, *_ = make_census_like(n_rows=rows, **params)
    standardize(X)
    unit_rows(X)
    return X.astype(dtype, copy=False), groups


def adult(mirror: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Return Adult from the mirror or, without a mirror, drawn data of the same size."""
    if mirror:
        return paper_data("adult", mirror)[:2]
    return drawn(32_561, dtype=np.float64, n_features=5, n_components=10, group_share=0.33)


def centers_of(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Draw rows with a fixed seed, so that all programs have the same start."""
    rng = np.random.default_rng(SEED)
    return X[np.sort(rng.choice(len(X), n_clusters, replace=False))].astype(float)


def least(call: Callable[[], Any], repeats: int, clock: Callable[[], float] = perf_counter) -> float:
    """Return the shortest time of some calls, after a first call that compiles."""
    call()
    times = []
    for _ in range(repeats):
        begin = clock()
        call()
        times.append(clock() - begin)
    return min(times)


def apart(
    call: Callable[..., Mapping[str, float]], threads: int, *args: Any, **params: Any
) -> dict[str, float]:
    """Run a call in its own process, and return what it measures and the peak memory of the process."""
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_child, args=(queue, call, threads, args, params))
    process.start()
    found = queue.get()
    process.join()
    return found


def _child(out: Any, call: Any, threads: int, args: Sequence[Any], params: Mapping[str, Any]) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    found = call(*args, **params)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out.put({**found, "peak_mb": peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)})


def tell(name: str, threads: int, found: Mapping[str, float]) -> None:
    values = ", ".join(f"{key} {value:,.6g}" for key, value in found.items())
    print(f"{name} ({threads} threads): {values}", flush=True)


def write_csv(path: str | Path | None, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows of a table, if there is a path and the table is not empty."""
    if path and rows:
        with Path(path).open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


def write_measurements(path: str | None, found: Mapping[str, Mapping[str, float]], **common: Any) -> None:
    """Write a row for each quantity of each measurement. `common` are columns with the same value in all rows."""
    rows = [
        {**common, "measurement": name, "quantity": key, "value": value}
        for name, values in found.items()
        for key, value in values.items()
    ]
    write_csv(path, rows)
