"""The engine that runs passes on the workers of a Dask cluster, which may be on other machines."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numba
import numpy as np
from dask import array as da
from dask import config, delayed
from distributed import Client, Future, default_client

from fairclust.base import with_nan
from fairclust.chunks.passes import Engine, in_order
from fairclust.chunks.sources import ArrayChunk, Chunk, ChunkError, as_float, is_index
from fairclust.group_encoding import as_array
from fairclust.messages import count

# Number of tasks that are submitted in advance for each thread of the workers.
_AHEAD = 4
# Submitting a task and collecting its result takes some 10 ms, so a task computes several chunks, at most _LARGEST, and
# every thread has about _PARTS tasks or more.
_LARGEST, _PARTS = 8, 4
# Settings of Dask for workers that are started here. By default every process of a Dask cluster profiles itself, which
# takes 5 % of a core, and a worker whose memory is nearly full pauses. If all workers pause, the fit never ends.
_SETTINGS = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
}


class Cluster(Engine):
    """An engine that runs a pass as tasks on a Dask cluster.

    `client` is a client, an address, a ``.json`` scheduler file or a number of workers, by default the client that this
    process connected last, or else two workers. If a worker is lost, Dask gives its tasks to others. ChunkError if
    there is no scheduler or worker.
    """

    def __init__(self, client: Client | str | int | None) -> None:
        # The client that is opened here; if it has started workers, they end with it.
        self._own: Client | None = None
        if client is None:
            try:
                client = default_client()
            except ValueError:
                client = 2
        if isinstance(client, int):
            with config.set(_SETTINGS):
                client = Client(n_workers=client, threads_per_worker=1, dashboard_address=None)
            self._own = client
        place = client
        try:
            if isinstance(client, str):
                option = "scheduler_file" if client.endswith(".json") else "address"
                client = Client(**{option: client})
                self._own = client
            client.wait_for_workers(1, timeout=config.get("distributed.comm.timeouts.connect"))
        except (OSError, ValueError) as error:
            self.close()
            raise ChunkError(
                f"there is no Dask scheduler with workers at {place}: {error}. Start them by `dask scheduler` and "
                "`dask worker`, or pass another address"
            ) from None
        self.client = client

    def run(
        self, function: Callable[..., Any], chunks: Sequence[Chunk], *more: Iterable[Any]
    ) -> Iterator[Any]:
        n_threads = max(1, sum(self.client.nthreads().values()))
        # The rows of some chunks are sent with the task, or are in the memory of some worker. A task of several such
        # chunks would need several times the memory, or would move rows between workers.
        largest = 1 if any(map(_has_rows, chunks)) else _LARGEST
        size = min(largest, max(1, len(chunks) // (_PARTS * n_threads)))
        calls = zip((getattr(chunk, "future", chunk) for chunk in chunks), *more, strict=False)
        # Dask would hash the arguments to look up an earlier result of the same task. No task is submitted twice.
        batches = iter(lambda: list(islice(calls, size)), [])
        tasks = (self.client.submit(_results, function, batch, pure=False) for batch in batches)
        for results in in_order(tasks, _AHEAD * n_threads):
            yield from results

    def close(self) -> None:
        """Close the client and workers that were started here. A client that the caller passed stays open."""
        if self._own is not None:
            self._own.close()


def _has_rows(chunk: Chunk) -> bool:
    if isinstance(chunk, ArrayChunk):
        return not (isinstance(chunk.X, str) and isinstance(chunk.values, str))
    return isinstance(chunk, HeldChunk)


def _results(function: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """The results of several calls: a chunk and the other arguments of each."""
    numba.set_num_threads(1)
    return [function(*_writable(call)) for call in calls]


def _writable(value: Any) -> Any:
    """Copy read-only arrays. Arrays from Dask messages are read-only, and compiled code treats them as another type."""
    if isinstance(value, (list, tuple)):
        # A named tuple is made by its `_make`.
        return getattr(value, "_make", type(value))(map(_writable, value))
    return value.copy() if isinstance(value, np.ndarray) and not value.flags.writeable else value


class HeldChunk(NamedTuple):
    """A partition of a Dask collection: the future of an `ArrayChunk` in the memory of a worker, and its rows."""

    future: Future
    n_rows: int


def collection_chunks(
    X: Any, sensitive: Any, features: Sequence[str] | None, cluster: Cluster
) -> tuple[list[Any], tuple[str, ...]]:
    """Compute the partitions of a Dask array or data frame once and keep them in the memory of the workers.

    Returns the chunks and the names of the features. ChunkError if X is not a matrix, a feature is not a number, or the
    sensitive column is missing or has another length than X.
    """
    names: tuple[str, ...] = ()
    if not isinstance(X, da.Array):
        names = tuple(features or (name for name in X.columns if name != sensitive and not is_index(name)))
        missing = [name for name in names if name not in X.columns]
        if missing or not (isinstance(sensitive, str) and sensitive in X.columns):
            raise ChunkError(
                f"the Dask data frame has the columns {', '.join(map(str, X.columns))}: pass the name of the column of "
                "groups as sensitive_features, and names of columns of numbers as features"
            )
        X, sensitive = X[list(names)].to_dask_array(), X[sensitive]
    # Dask warns that texts become objects.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        column = sensitive.to_dask_array() if hasattr(sensitive, "to_dask_array") else sensitive
    if X.ndim != 2 or not X.shape[1] or X.dtype.kind not in "fiubO" or not isinstance(column, da.Array):
        raise ChunkError(
            "features of a Dask collection must be a matrix of numbers, and sensitive_features one column, in Dask too"
        )
    X = X.rechunk({1: -1})
    column = column.reshape(-1) if column.ndim == 2 and column.shape[1] == 1 else column
    if column.shape == X.shape[:1]:
        column = column.rechunk((X.chunks[0],))
    # The number of rows of a block may be unknown here, so `_block` compares the lengths.
    if column.ndim != 1 or column.numblocks != X.numblocks[:1]:
        raise ChunkError(
            f"sensitive_features has shape {column.shape}, X has {X.shape[0]} rows: pass the group of every row. If "
            "lengths are unknown, call compute_chunk_sizes() on both"
        )
    parts = zip(X.to_delayed().ravel(), column.to_delayed().ravel(), strict=True)
    futures = cluster.client.compute(
        [delayed(_block)(part, values, f"block {i}") for i, (part, values) in enumerate(parts)]
    )
    sizes = cluster.client.gather(cluster.client.map(attrgetter("n_rows"), futures, pure=False))
    return [HeldChunk(future, size) for future, size in zip(futures, sizes, strict=True)], names


def _block(X: np.ndarray, values: np.ndarray, name: str) -> ArrayChunk:
    if len(X) != len(values):
        raise ChunkError(f"{name}: X has {count(len(X), 'row')}, sensitive_features has {len(values)}")
    try:
        rows = as_float(np.asarray(with_nan(X)))
    except (ValueError, TypeError) as error:
        raise ChunkError(
            f"{name}: a feature is not a number ({error}): leave out or correct such rows"
        ) from None
    return ArrayChunk(np.ascontiguousarray(rows), as_array(values), 0, len(X), name)
