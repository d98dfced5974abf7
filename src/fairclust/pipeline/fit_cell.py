"""One fit: a cell becomes a record, a dictionary of plain values, and an array of labels."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import json
import random
import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from fairclust.pipeline.grids import Cell

_WARM_UP_ROWS = 256


def load_class(path: str) -> Any:
    """The class that a dotted path names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _scalars(model: Any) -> dict[str, Any]:
    """Single numbers that the fitted estimator exposes, such as n_iter_ and converged_."""
    kinds = int | float | np.number | np.bool_
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and isinstance(value, kinds)
    }


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


def _make(class_path: str, cell: Cell) -> Any:
    cls = load_class(class_path)
    params = dict(cell.params)
    if "random_state" in inspect.signature(cls.__init__).parameters:
        params.setdefault("random_state", cell.random_state)
    return cls(n_clusters=cell.n_clusters, **params)


def fit_cell(
    X: Any, groups: Any, class_path: str, cell: Cell, points: Any = None
) -> tuple[dict[str, Any], np.ndarray | None]:
    """Fit one cell in this process; returns its record and its labels or None.

    Beside a graph X, `points` are the features of its nodes, for methods whose `fit` takes them. The record has
    status, reason, seconds, the estimator's own numbers and its history. A MemoryError is raised.
    """
    from fairclust.base import Diverged, NotSupported

    labels = None
    status, reason = "ok", ""
    extra: dict[str, Any] = {}
    # Some methods draw from the global generators although they have a random_state.
    np.random.seed(cell.random_state)  # noqa: NPY002
    random.seed(cell.random_state)
    begin = time.perf_counter(), time.process_time()
    end: tuple[float, float] | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = _make(class_path, cell)
            takes_points = points is not None and "points" in inspect.signature(model.fit).parameters
            model.fit(X, sensitive_features=groups, **({"points": points} if takes_points else {}))
            end = time.perf_counter(), time.process_time()
            labels = _check_labels(model.labels_, X.shape[0], cell.n_clusters)
            extra = {"estimator": _scalars(model), "history": _plain_history(getattr(model, "history_", []))}
        except NotSupported as error:
            status, reason = "skipped", str(error)
        except (Diverged, FloatingPointError) as error:
            status, reason = "diverged", str(error)
        except MemoryError:
            raise
        except BaseException as error:  # panics of libraries in Rust are no Exception
            status, reason, labels = "error", f"{type(error).__name__}: {error}", None
    end = end or (time.perf_counter(), time.process_time())
    messages = list(dict.fromkeys(_writable(str(w.message)) for w in caught))
    record = {
        "status": status,
        "reason": _writable(reason),
        "warnings": messages[:5],
        "wall_seconds": end[0] - begin[0],
        "cpu_seconds": end[1] - begin[1],
        **extra,
    }
    return record, labels


def _writable(text: str) -> str:
    """A text without halves of surrogate pairs, as in undecodable file names, because no file can hold them."""
    return text.encode(errors="replace").decode()


def input_of(prepared: Any, W: Any, class_path: str, cell: Cell) -> tuple[Any, Any, Any]:
    """What a fit gets: points or a graph, groups, and the points of the nodes of a graph if they are known.

    A method that takes several sensitive columns gets them by name, with numbers where means are bounded. Others get
    the combinations of their values.
    """
    groups, points, takes_columns = prepared.groups, prepared.X, False
    with contextlib.suppress(Exception):  # if the class cannot be loaded, the fit reports why
        takes_columns = getattr(load_class(class_path), "takes_columns", False)
    if takes_columns:
        means = cell.params.get("mean_tolerance") or ()
        numbers = {name: prepared.numbers[name] for name in means if name in prepared.numbers}
        groups = {**prepared.columns, **numbers} or groups
    return (points, groups, None) if W is None else (W, groups, points if points.shape[1] else None)


def warm_up(X: Any, groups: Any, class_path: str, cell: Cell) -> None:
    """Fit a few rows, so that compilation is not timed. Errors are ignored, because the timed fit reports them."""
    import scipy.sparse as sp

    every = max(1, X.shape[0] // max(_WARM_UP_ROWS, 2 * cell.n_clusters))
    several = isinstance(groups, Mapping)
    groups = {name: codes[::every] for name, codes in groups.items()} if several else groups[::every]
    if sp.issparse(X):
        # A few rows of the graph itself would not be connected, so a ring with the same types is fitted.
        n = len(range(0, X.shape[0], every))
        ring = sp.eye_array(n, k=1) + sp.eye_array(n, k=2) + sp.eye_array(n, k=n - 1)
        few = sp.csr_array(ring + ring.T).astype(X.dtype)
    else:
        few = np.ascontiguousarray(X[::every])
    with contextlib.suppress(BaseException), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _make(class_path, cell).fit(few, sensitive_features=groups)
