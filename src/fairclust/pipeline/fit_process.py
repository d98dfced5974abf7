"""Run fits in a separate process, so that a fit that exceeds its limits becomes a row and the job goes on."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import math
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil

from fairclust.datasets.errors import DatasetError
from fairclust.pipeline.blocks import Cell
from fairclust.pipeline.script import die_with, kill_family

_POLL_SECONDS = 0.25
_WARM_UP_ROWS = 256
# Reading data and compiling happen before the clock of a cell starts, so they have their own limit.
_PREPARATION_SECONDS = 600.0


@dataclass(frozen=True)
class Task:
    """What a fitting process needs to know for all cells of a block."""

    data: Path  # the folder of the prepared data set
    graph: Path | None  # the folder of its graph, for methods that fit it
    class_path: str
    n_clusters: int
    metrics: tuple[str, ...]
    score_options: Mapping[str, Any]  # keyword arguments of `score_labels`


def load_class(path: str) -> Any:
    """The class that a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _reset_peak_memory() -> None:
    # Without /proc (macOS), the reported peak is that of the whole process so far.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory_mb() -> float:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def _scalars(model: Any) -> dict[str, Any]:
    """Single numbers that the fitted estimator exposes, such as n_iter_ and converged_."""
    found = {}
    for name, value in vars(model).items():
        if (
            name.endswith("_")
            and not name.startswith("_")
            and isinstance(value, int | float | np.number | np.bool_)
        ):
            found[name] = value.item() if isinstance(value, np.generic) else value
    return found


def _plain_history(history: Any) -> list[dict[str, Any]]:
    """The history in JSON's types, with NumPy values converted to Python values."""
    plain = json.loads(json.dumps(history, default=lambda value: np.asarray(value).tolist()))
    if not isinstance(plain, list) or not all(isinstance(step, dict) for step in plain):
        raise TypeError("history_ must be a list of dicts, one for each step")
    return plain


def _check_labels(labels: Any, n_samples: int, n_clusters: int) -> np.ndarray:
    labels = np.asarray(labels)
    if labels.shape != (n_samples,) or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"labels_ has shape {labels.shape} and type {labels.dtype}, expected {n_samples} integers"
        )
    if labels.min() < 0 or labels.max() >= n_clusters:
        raise ValueError(
            f"labels_ runs from {labels.min()} to {labels.max()}, expected 0 to {n_clusters - 1}"
        )
    return labels


def _make(class_path: str, n_clusters: int, cell: Cell) -> Any:
    cls = load_class(class_path)
    params = dict(cell.params)
    if "random_state" in inspect.signature(cls.__init__).parameters:
        params.setdefault("random_state", cell.random_state)
    return cls(n_clusters=n_clusters, **params)


def fit_cell(
    X: Any, groups: Any, class_path: str, n_clusters: int, cell: Cell, points: Any = None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Fit one cell in this process; returns its record and its labels or None.

    Beside a graph X, `points` are the features of its nodes, for methods whose `fit` takes them. The record has
    status, reason, seconds, memory, the estimator's own numbers and its history.
    """
    from fairclust.base import Diverged, NotSupported

    labels = None
    status, reason = "ok", ""
    extra: dict[str, Any] = {}
    _reset_peak_memory()
    # Some methods draw from the global generators although they have a random_state.
    np.random.seed(cell.random_state)  # noqa: NPY002
    random.seed(cell.random_state)
    begin = time.perf_counter(), time.process_time()
    end: tuple[float, float] | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = _make(class_path, n_clusters, cell)
            takes_points = points is not None and "points" in inspect.signature(model.fit).parameters
            model.fit(X, sensitive_features=groups, **({"points": points} if takes_points else {}))
            end = time.perf_counter(), time.process_time()
            labels = _check_labels(model.labels_, X.shape[0], n_clusters)
            extra = {"estimator": _scalars(model), "history": _plain_history(getattr(model, "history_", []))}
        except NotSupported as error:
            status, reason = "skipped", str(error)
        except (Diverged, FloatingPointError) as error:
            status, reason = "diverged", str(error)
        except Exception as error:
            status, reason, labels = "error", f"{type(error).__name__}: {error}", None
    end = end or (time.perf_counter(), time.process_time())
    messages = list(dict.fromkeys(_writable(str(w.message)) for w in caught))
    record = {
        "status": status,
        "reason": _writable(reason),
        "warnings": messages[:5],
        "wall_seconds": end[0] - begin[0],
        "cpu_seconds": end[1] - begin[1],
        "peak_memory_mb": _peak_memory_mb(),
        **extra,
    }
    return record, labels


def _writable(text: str) -> str:
    """A text without halves of surrogate pairs, as in undecodable file names, because no file can hold them."""
    return text.encode(errors="replace").decode()


def _takes_columns(class_path: str) -> bool:
    """Whether a method takes several sensitive columns. Other methods get the combinations of their values."""
    with contextlib.suppress(Exception):  # if the class cannot be loaded, the fit reports why
        return bool(getattr(load_class(class_path), "takes_columns", False))
    return False


def _warm_up(X: Any, groups: Any, task: Task, cell: Cell) -> None:
    """Fit a few rows, so that compilation is not timed. Errors are ignored, because the timed fit reports them."""
    import scipy.sparse as sp

    every = max(1, X.shape[0] // max(_WARM_UP_ROWS, 2 * task.n_clusters))
    several = isinstance(groups, Mapping)
    groups = {name: codes[::every] for name, codes in groups.items()} if several else groups[::every]
    if sp.issparse(X):
        # A few rows of the graph itself would not be connected, so a ring with the same types is fitted.
        n = len(range(0, X.shape[0], every))
        ring = sp.eye_array(n, k=1) + sp.eye_array(n, k=2) + sp.eye_array(n, k=n - 1)
        few = sp.csr_array(ring + ring.T).astype(X.dtype)
    else:
        few = np.ascontiguousarray(X[::every])
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _make(task.class_path, task.n_clusters, cell).fit(few, sensitive_features=groups)


def _score(task: Task, data: Any, W: Any, labels: np.ndarray) -> dict[str, Any]:
    """Metrics by name (None where one does not apply), rows of each group in each cluster, and the seconds."""
    from fairclust.metrics.counts import contingency
    from fairclust.metrics.table import score_labels
    from fairclust.pipeline.columns import of_columns

    begin = time.perf_counter()
    labels, n_groups = labels.astype(np.int64), len(data.group_names)
    found = score_labels(
        data.X if data.X.shape[1] else None,
        labels,
        data.groups,
        n_clusters=task.n_clusters,
        n_groups=n_groups,
        W=W,
        truth=data.truth,
        columns=data.columns,
        numbers=data.numbers,
        metrics=task.metrics,
        **task.score_options,
    )
    table = contingency(labels, data.groups, task.n_clusters, n_groups)
    return {
        "metrics": {name: None if math.isnan(value) else value for name, value in found.items()},
        **(
            {"by_column": of_columns(labels, data.columns, task.n_clusters, data.numbers)}
            if data.columns
            else {}
        ),
        "counts": dict(zip(data.group_names, table.tolist(), strict=True)),
        "score_seconds": time.perf_counter() - begin,
    }


def _serve(pipe: Connection, task: Task) -> None:
    """Answer with a record and labels for every cell, and with scores for every array of labels."""
    from fairclust.datasets.graph import load_graph
    from fairclust.datasets.store import load_prepared

    # A keyboard interrupt reaches all processes of the terminal; the parent decides which of them end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        data = load_prepared(task.data)
        W: Any = None if task.graph is None else load_graph(task.graph)[0]
    except DatasetError as error:  # the data set or its graph is damaged
        pipe.recv()
        pipe.send(error)
        return
    X: Any = data.X if W is None else W
    points = None if W is None or not data.X.shape[1] else data.X
    warm = False
    while True:
        try:
            given = pipe.recv()
        except EOFError:
            return
        if not isinstance(given, Cell):
            pipe.send("started")
            pipe.send(_score(task, data, W, given))
            continue
        means = given.params.get("mean_tolerance") or ()
        sensitive = data.with_numbers(means) if _takes_columns(task.class_path) else data.groups
        if not warm:
            _warm_up(X, sensitive, task, given)
            warm = True
        pipe.send("started")
        record, labels = fit_cell(X, sensitive, task.class_path, task.n_clusters, given, points)
        pipe.send("fitted")
        if labels is not None:
            record |= _score(task, data, W, labels)
        pipe.send((record, labels))


class Ended(RuntimeError):
    """The fitting process exceeded a limit or died before it answered."""

    def __init__(
        self, reason: str, seconds: float, status: str = "error", *, over_memory: bool = False
    ) -> None:
        super().__init__(reason)
        self.record = {
            "status": status,
            "reason": reason,
            "over_memory": over_memory,
            "warnings": [],
            "wall_seconds": seconds,
            "cpu_seconds": None,
            "peak_memory_mb": None,
        }


class FitProcess:
    """A child process that fits and scores cells of one block. If it ends early, a new process replaces it.

    Loading, compilation and scoring do not count for the limit of seconds.
    """

    def __init__(self, task: Task, cell_seconds: float, cell_memory_mb: float) -> None:
        self._task = task
        self._seconds = cell_seconds
        self._memory_mb = cell_memory_mb
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> FitProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def score(self, labels: np.ndarray) -> dict[str, Any]:
        """The scores of labels; raises Ended if the process ends while it scores."""
        return self._ask(labels)

    def fit(self, cell: Cell) -> tuple[dict[str, Any], np.ndarray | None]:
        """Fit and score one cell within the limits: its record with the scores, and its labels or None."""
        try:
            return self._ask(cell)
        except Ended as ended:
            return ended.record, None

    def _ask(self, given: Cell | np.ndarray) -> Any:
        if self._process is None:
            self._start()
        try:
            self._pipe.send(given)
        except OSError:  # it died while idle
            self._end()
            self._start()
            self._pipe.send(given)
        sent = time.perf_counter()
        begun: float | None = None
        is_timed = isinstance(given, Cell)
        while True:
            try:
                answer = self._pipe.recv() if self._pipe.poll(_POLL_SECONDS) else None
                died = answer is None and not self._process.is_alive() and not self._pipe.poll()
            except (EOFError, OSError):
                answer, died = None, True
            now = time.perf_counter()
            seconds = 0.0 if begun is None else now - begun
            if isinstance(answer, DatasetError):
                self._end()
                raise answer
            if isinstance(answer, str):
                begun, is_timed = begun or now, is_timed and answer == "started"
            elif answer is not None:
                return answer
            elif died:
                code = self._end()
                reason = f"the fitting process died (exit code {code}; -9: perhaps out of memory)"
                raise Ended(reason, seconds)
            elif begun is None and now - sent > _PREPARATION_SECONDS:
                self._end()
                reason = f"no fit begun {_PREPARATION_SECONDS:g} s after the process was started"
                raise Ended(reason, seconds, "timeout")
            elif begun is not None and is_timed and seconds > self._seconds:
                self._end()
                raise Ended(
                    f"over the limit of {self._seconds:g} s (limits.cell_seconds)", seconds, "timeout"
                )
            elif (memory := self._memory()) > self._memory_mb:
                self._end()
                reason = (
                    f"{memory:.0f} MB, over the limit of {self._memory_mb:.0f} MB (limits.cell_memory_mb, else what "
                    "the job asked for)"
                )
                raise Ended(reason, seconds, over_memory=True)

    def _memory(self) -> float:
        try:
            process = psutil.Process(self._process.pid)
            family = [process, *process.children(recursive=True)]
            return sum(member.memory_info().rss for member in family) / 2**20
        except psutil.Error:
            return 0.0

    def _start(self) -> None:
        # Forking avoids new imports. But if this process has threads (OpenMP's, for example), a forked child may wait
        # for them for ever.
        fork = sys.platform == "linux" and not _has_threads()
        context: Any = multiprocessing.get_context("fork" if fork else "spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_child, args=(theirs, self._pipe if fork else None, os.getpid(), self._task)
        )
        with contextlib.nullcontext() if fork else _another_main():
            self._process.start()
        theirs.close()

    def _end(self) -> int | None:
        if self._process is None:
            return None
        self._pipe.close()
        self._process.join(timeout=0.2)
        kill_family(self._process)  # the method may have started processes of its own
        exit_code = self._process.exitcode
        self._process = None
        return exit_code


def _has_threads() -> bool:
    """Whether this process has threads that a forked child could wait for (Linux)."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append(task.joinpath("comm").read_text().strip())
    # The thread of pyarrow's allocator does not count: the allocator supports forks.
    return len([name for name in names if name != "jemalloc_bg_thd"]) > 1


@contextlib.contextmanager
def _another_main() -> Iterator[None]:
    """Keep a spawned child from running the `__main__` script again: Snakemake's scripts have no main guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _child(pipe: Connection, parents_end: Connection | None, parent: int, task: Task) -> None:
    if parents_end is not None:
        parents_end.close()  # otherwise this process does not notice when the parent closes the pipe
    os.setsid()
    die_with(parent)
    _serve(pipe, task)
