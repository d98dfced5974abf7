"""The fit job: fit and score what the cache does not have, and write a row for each fit.

Finished fits, and their scores, lie in a cache of `joblib.Memory` under the keys of the fits. So every job, run and
configuration that asks for the same fit finds it, a killed job loses only the fit that is going on, and a new metric
is computed from the labels. Fits that have failed are not in the cache.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Memory

from fairclust.datasets.store import load_graph, load_prepared, read_card
from fairclust.pipeline.columns import record_of
from fairclust.pipeline.fit_cell import fit_cell, input_of, warm_up
from fairclust.pipeline.fit_process import FitEnded, fit_process
from fairclust.pipeline.grids import Cell, Grid, cells_of_grids
from fairclust.pipeline.provenance import git_commit, package_versions
from fairclust.pipeline.scores import write_fits

Outcome = tuple[dict[str, Any], np.ndarray | None]
"""What is kept of a fit: its record, and its labels if it has any."""

# Statuses with which a fit is finished. Others are tried again when their job runs again.
_FINAL = {"ok", "skipped", "diverged"}
# Compiling takes less, but the few rows of a warm-up can be a program of hours.
_WARM_UP_SECONDS = 120
# Scores of a fit may take as long, or as long as a fit may.
_SCORE_SECONDS = 600


class Unfinished(Exception):
    """A fit without a final status, which the cache must not keep; the argument is its record."""


def finished(key: str, compute: Callable[[], Any]) -> Any:
    """What the cache keeps under a key. joblib watches this code: if it changes, the cache is emptied."""
    return compute()


@dataclass(frozen=True)
class Request:
    """What a fit job is asked for, beside the data: the parameters of its rule."""

    dataset: str
    method: str
    class_path: str
    code: str  # fingerprint of the class
    grids: Sequence[Mapping[str, Any]]  # of `grids.Grid`
    metrics: Mapping[int, Sequence[str]]  # for each K
    scorer: str  # fingerprint of the metrics: when it changes, fits are scored again
    cell_seconds: float
    cell_memory_mb: float
    threads: int = 1

    def cells(self) -> list[Cell]:
        return cells_of_grids(self.dataset, (Grid(**grid) for grid in self.grids))


def fit_grids(
    request: Request,
    output: Path,
    *,
    data: Path,
    graph: Path | None = None,
    cache: Path,
    given_up: str = "",
) -> None:
    """Fit, score and write all cells of a job. The folder `cache` has finished fits and keeps new ones.

    If `given_up` states a reason, nothing is fitted, and every fit that the cache does not have becomes a row with the
    status 'error' and this reason.
    """
    card = read_card(data)
    common: dict[str, Any] = {
        "dataset": request.dataset,
        "method": request.method,
        "fingerprint": request.code,
    }
    reason = card.get("reason")
    if reason is None and not card["columns"] and graph is None:
        reason = "the data set is a graph, without points for a method of `input: points`"
    if reason is not None:
        common |= {"status": "skipped", "reason": reason}
        write_fits(output, [({**common, **vars(cell)}, None) for cell in request.cells()])
        return
    common |= {"n_rows": card["rows"], "n_features": len(card["columns"]), "n_groups": len(card["groups"])}
    common["data_hash"] = input_hash(card, graph)
    # Asked for first, because a process that is forked while git starts would hold git's pipe open for ever.
    origin = {"threads": request.threads, "git_commit": git_commit(), "versions": package_versions()}
    with fit_process(request.cell_memory_mb) as call:
        job = _Job(request, data, graph, _cache(cache), origin, call)
        cells, begin = request.cells(), time.perf_counter()
        outcomes: list[Outcome] = []
        for number, cell in enumerate(cells, 1):
            record, labels = job.outcome(cell, common["data_hash"], given_up)
            outcomes.append(({**common, **vars(cell), **record}, labels))
            left = (time.perf_counter() - begin) / number * (len(cells) - number)
            print(
                f"[{number}/{len(cells)}] {record['status']} K={cell.n_clusters} {cell.params} seed={cell.seed} "
                f"{record.get('wall_seconds') or 0.0:.2f} s {record['reason']} (about {left:.0f} s left)",
                file=sys.stderr,
            )
    write_fits(output, outcomes)


@dataclass
class _Job:
    """The cells of a job. The process of the fits is started, and the data are read, with the first call."""

    request: Request
    data: Path
    graph: Path | None
    cached: Callable[..., Any]  # `finished` with its memory
    origin: Mapping[str, Any]  # threads, commit and versions, for the records of new fits
    call: Callable[..., Any]  # of `fit_process`

    def outcome(self, cell: Cell, data_hash: str, given_up: str) -> Outcome:
        """The record and the labels of a cell, from a cache or from a fit, with the scores of the present metrics."""
        request = self.request
        key = cell.key(data_hash=data_hash, class_path=request.class_path, code=request.code)
        try:
            record, labels = self.cached(key, lambda: self._fit(cell, given_up))
        except Unfinished as unfinished:
            record, labels = unfinished.args[0], None
        record = {"key": key, **record}
        if labels is None:
            return record, None
        metrics = list(request.metrics[cell.n_clusters])
        asked = f"{key}: {request.scorer}, {metrics}"
        inputs = self.data, self.graph, labels, cell.n_clusters, metrics
        try:
            seconds = max(_SCORE_SECONDS, request.cell_seconds)
            return record | self.cached(asked, lambda: self.call(_score, *inputs, seconds=seconds)), labels
        except FitEnded as ended:
            return {**record, "status": ended.status, "reason": f"while it was scored: {ended}"}, None

    def _fit(self, cell: Cell, given_up: str) -> Outcome:
        if given_up:
            raise Unfinished({"status": "error", "reason": given_up, "lost": True})
        inputs = self.data, self.graph, self.request.class_path, cell
        with suppress(FitEnded):
            self.call(_warm_up, *inputs, seconds=_WARM_UP_SECONDS)
        begin = time.perf_counter()
        try:
            record, labels = self.call(
                _fit, *inputs, seconds=self.request.cell_seconds, limit=" (limits.cell_seconds)"
            )
        except FitEnded as ended:
            took = {"wall_seconds": time.perf_counter() - begin, "cpu_seconds": None}
            record, labels = {"status": ended.status, "reason": str(ended), "warnings": [], **took}, None
        record |= {**self.origin, "finished": time.time()}
        if record["status"] not in _FINAL:
            raise Unfinished(record)
        return record, labels


# These functions run in the process of the fits. What they load stays there until the process ends.

_begun: set[str] = set()  # the methods that this process has begun to fit


@cache
def _loaded(data: Path, graph: Path | None) -> tuple[Any, Any]:
    return load_prepared(data), None if graph is None else load_graph(graph)


def _input(data: Path, graph: Path | None, class_path: str, cell: Cell) -> tuple[Any, Any, Any]:
    """What a fit gets, see `input_of`."""
    import fairclust.base  # noqa: F401 - a user's class may not import it

    _begun.add(class_path)
    return input_of(*_loaded(data, graph), class_path, cell)


def _warm_up(data: Path, graph: Path | None, class_path: str, cell: Cell) -> None:
    """Read the data and compile the method, once in each process, so that this is not timed."""
    if class_path not in _begun:
        X, groups, _ = _input(data, graph, class_path, cell)
        warm_up(X, groups, class_path, cell)


def _fit(data: Path, graph: Path | None, class_path: str, cell: Cell) -> Outcome:
    X, groups, points = _input(data, graph, class_path, cell)
    record, labels = fit_cell(X, groups, class_path, cell, points)
    return record, None if labels is None else labels.astype(np.min_scalar_type(int(labels.max(initial=0))))


def _score(
    data: Path,
    graph: Path | None,
    labels: np.ndarray,
    n_clusters: int,
    metrics: Sequence[str],
) -> dict[str, Any]:
    """Metrics by name (None where one does not apply), rows of each group in each cluster, and the seconds."""
    begin, (prepared, W) = time.perf_counter(), _loaded(data, graph)
    scored = prepared.scored(labels, n_clusters, W)
    record = record_of(scored, metrics, prepared.group_names)
    return {**record, "score_seconds": time.perf_counter() - begin}


def input_hash(card: Mapping[str, Any], graph: Path | None) -> str:
    """Hash of what a fit reads: the data set, and the graph if there is one."""
    if graph is None:
        return card["data_hash"]
    W = load_graph(graph)
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(a).data for a in (W.indptr, W.indices, W.data)))
    return f"{card['data_hash']}+{digest.hexdigest()[:16]}"


def _cache(folder: Path) -> Any:
    return Memory(folder, verbose=0, compress=3).cache(finished, ignore=["compute"])


def cached_keys(folder: Path, keys: Iterable[str]) -> set[str]:
    """The keys whose fits the cache in a folder has."""
    if not folder.is_dir():  # joblib would create it
        return set()
    cache = _cache(folder)
    return {key for key in keys if cache.check_call_in_cache(key, None)}
