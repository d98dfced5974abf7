"""One fit in a process of its own, so that a runaway fit ends as a row and not as a lost job."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import multiprocessing
import os
import random
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

from fairclust.base import Diverged, FairClusterer, NotSupported
from fairclust.bench.jobs import die_with
from fairclust.datasets.store import load_prepared

_POLL_SECONDS = 0.25
_WARM_UP_ROWS = 256
# Reading and compiling come before the clock of a cell starts; they have their own.
_PREPARATION_SECONDS = 600.0


def load_class(path: str) -> type[FairClusterer]:
    """The class that a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _reset_peak_memory() -> None:
    # Where there is no such file the peak is that of the whole process so far.
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
    """The history in JSON's own types; NumPy's become Python's."""
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


def _make(class_path: str, n_clusters: int, cell: Mapping[str, Any]) -> FairClusterer:
    cls = load_class(class_path)
    params = dict(cell["params"])
    if "random_state" in inspect.signature(cls.__init__).parameters:
        params.setdefault("random_state", cell["random_state"])
    return cls(n_clusters=n_clusters, **params)


def _warm_up(X: Any, groups: np.ndarray, class_path: str, n_clusters: int, cell: Mapping[str, Any]) -> None:
    """Fit a few rows, so that compilation is not timed; what fails here fails again, and counts, later."""
    every = max(1, X.shape[0] // max(_WARM_UP_ROWS, 2 * n_clusters))
    groups = groups[::every]
    if sp.issparse(X):
        # A ring of the same types: a few rows of the graph itself would fall to pieces.
        n = len(groups)
        ring = sp.eye_array(n, k=1) + sp.eye_array(n, k=2) + sp.eye_array(n, k=n - 1)
        few = sp.csr_array(ring + ring.T).astype(X.dtype)
    else:
        few = np.ascontiguousarray(X[::every])
    try:
        _make(class_path, n_clusters, cell).fit(few, sensitive_features=groups)
    except Exception:
        return


def fit_cell(
    X: Any, groups: np.ndarray, class_path: str, n_clusters: int, cell: Mapping[str, Any]
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Fit one cell in this process.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features) or sparse array of shape (n_samples, n_samples)
    groups : ndarray of shape (n_samples,)
    class_path : str
    n_clusters : int
    cell : mapping
        A `grid.Cell` as plain data.

    Returns
    -------
    record : dict
        Status 'ok', 'skipped', 'diverged' or 'error' with the reason; seconds, memory, the estimator's own
        numbers and its history.
    labels : ndarray of shape (n_samples,) or None
    """
    labels = None
    status, reason = "ok", ""
    extra: dict[str, Any] = {}
    _reset_peak_memory()
    # For methods that draw from the global generators in spite of their random_state.
    np.random.seed(cell["random_state"])  # noqa: NPY002
    random.seed(cell["random_state"])
    begin = time.perf_counter(), time.process_time()
    end: tuple[float, float] | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = _make(class_path, n_clusters, cell).fit(X, sensitive_features=groups)
            end = time.perf_counter(), time.process_time()
            labels = _check_labels(model.labels_, len(groups), n_clusters)
            extra = {"estimator": _scalars(model), "history": _plain_history(getattr(model, "history_", []))}
        except NotSupported as error:
            status, reason = "skipped", str(error)
        except (Diverged, FloatingPointError) as error:
            status, reason = "diverged", str(error)
        except Exception as error:
            status, reason, labels = "error", f"{type(error).__name__}: {error}", None
    end = end or (time.perf_counter(), time.process_time())
    messages = list(dict.fromkeys(str(w.message) for w in caught))
    record = {
        "status": status,
        "reason": reason,
        "warnings": messages[:5],
        "wall_seconds": end[0] - begin[0],
        "cpu_seconds": end[1] - begin[1],
        "peak_memory_mb": _peak_memory_mb(),
        **extra,
    }
    return record, labels


def _serve(
    pipe: Connection, data_folder: str, graph_folder: str | None, class_path: str, n_clusters: int
) -> None:
    # A keyboard interrupt goes to the whole terminal group; the parent decides what ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    data = load_prepared(Path(data_folder))
    X: Any = data.X
    if graph_folder is not None:
        from fairclust.datasets.graph import load_graph

        X = load_graph(Path(graph_folder))[0]
    warm = False
    while True:
        try:
            cell = pipe.recv()
        except EOFError:
            return
        if not warm:
            _warm_up(X, data.groups, class_path, n_clusters, cell)
            warm = True
        pipe.send("started")
        pipe.send(fit_cell(X, data.groups, class_path, n_clusters, cell))


class Worker:
    """A child process that fits cells of one block, replaced whenever it has to be ended.

    Parameters
    ----------
    data_folder : Path
        A prepared data set.
    graph_folder : Path or None
        Its neighbour graph, if that is what the method fits.
    class_path : str
    n_clusters : int
    cell_seconds, cell_memory_mb : float
        Limits of one cell; loading and compilation do not count.
    """

    def __init__(
        self,
        data_folder: Path,
        graph_folder: Path | None,
        class_path: str,
        n_clusters: int,
        *,
        cell_seconds: float,
        cell_memory_mb: float,
    ) -> None:
        graph = None if graph_folder is None else str(graph_folder)
        self._arguments = (str(data_folder), graph, class_path, n_clusters)
        self._seconds = cell_seconds
        self._memory_mb = cell_memory_mb
        self._process: Any = None
        self._pipe: Any = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def fit(self, cell: Mapping[str, Any]) -> tuple[dict[str, Any], np.ndarray | None]:
        """Fit one cell within the limits; as `fit_cell`, with the further statuses 'timeout' and 'error'."""
        if self._process is None:
            self._start()
        try:
            self._pipe.send(dict(cell))
        except OSError:  # it died while idle
            self._end()
            self._start()
            self._pipe.send(dict(cell))
        sent, begin = time.perf_counter(), None
        while True:
            if self._pipe.poll(_POLL_SECONDS):
                try:
                    answer = self._pipe.recv()
                except (EOFError, OSError):
                    return self._ended(begin, "error", "")
                if answer == "started":
                    begin = time.perf_counter()
                    continue
                return answer
            if not self._process.is_alive():
                return self._ended(begin, "error", "")
            now = time.perf_counter()
            if begin is not None and now - begin > self._seconds:
                return self._ended(
                    begin, "timeout", f"over the limit of {self._seconds:g} s (limits.cell_seconds)"
                )
            if begin is None and now - sent > _PREPARATION_SECONDS:
                return self._ended(
                    begin, "timeout", f"no fit begun {_PREPARATION_SECONDS:g} s after the process was started"
                )
            memory = self._memory()
            if memory > self._memory_mb:
                return self._ended(
                    begin,
                    "error",
                    f"{memory:.0f} MB, over the limit of {self._memory_mb:g} MB (limits.cell_memory_mb)",
                )

    def _memory(self) -> float:
        try:
            process = psutil.Process(self._process.pid)
            family = [process, *process.children(recursive=True)]
            return sum(member.memory_info().rss for member in family) / 2**20
        except psutil.Error:
            return 0.0

    def _ended(self, begin: float | None, status: str, reason: str) -> tuple[dict[str, Any], None]:
        self._end()
        if not reason:
            reason = f"the fitting process died (exit code {self._exit_code}; -9: perhaps out of memory)"
        seconds = 0.0 if begin is None else time.perf_counter() - begin
        record = {
            "status": status,
            "reason": reason,
            "warnings": [],
            "wall_seconds": seconds,
            "cpu_seconds": None,
            "peak_memory_mb": None,
        }
        return record, None

    def _start(self) -> None:
        # Forking spares the imports, but a child forked beside threads may wait for them for ever (OpenMP's).
        fork = sys.platform == "linux" and not _has_threads()
        context: Any = multiprocessing.get_context("fork" if fork else "spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_child, args=(theirs, self._pipe if fork else None, os.getpid(), *self._arguments)
        )
        with contextlib.nullcontext() if fork else _another_main():
            self._process.start()
        theirs.close()

    def _end(self) -> None:
        if self._process is None:
            return
        self._pipe.close()
        self._process.join(timeout=0.2)
        if self._process.is_alive():
            # The whole group: processes that the method itself has started go with it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
        self._process.join()
        self._exit_code = self._process.exitcode
        self._process = None


def _has_threads() -> bool:
    """Whether this process has threads that a forked child could wait for (Linux)."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has just ended
            names.append(task.joinpath("comm").read_text().strip())
    # The allocator that pyarrow brings has a thread, and knows of forks.
    return len([name for name in names if name != "jemalloc_bg_thd"]) > 1


@contextlib.contextmanager
def _another_main() -> Iterator[None]:
    """Keep a spawned child from running the script that is `__main__` here: Snakemake's have no guard."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _child(pipe: Connection, parents_end: Connection | None, parent: int, *arguments: Any) -> None:
    if parents_end is not None:
        parents_end.close()  # else the pipe never reads as closed when the parent dies
    os.setsid()
    die_with(parent)
    _serve(pipe, *arguments)
