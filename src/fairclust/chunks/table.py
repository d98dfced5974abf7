"""Tables of rows that do not fit in memory, which `fit` takes in place of an array."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.base import is_collection
from fairclust.chunks.passes import Engine
from fairclust.chunks.sources import (
    CHUNK_ROWS,
    Chunk,
    ChunkError,
    array_chunks,
    parquet_chunks,
    parquet_files,
)
from fairclust.outputs import check_outputs


@dataclass(frozen=True)
class ChunkTable(AbstractContextManager["ChunkTable"]):
    """Rows in chunks and the options of a fit on them, as returned by `open_chunks`; a context manager."""

    chunks: list[Chunk]
    engine: Engine
    features: tuple[str, ...] = ()  # names of the features; empty if they have none
    labels: Path | None = None  # the file for the labels
    sample_rows: int | None = None  # see `open_chunks`
    has_groups: bool = True  # without groups, all rows are of one

    def close(self) -> None:
        """End the workers that `open_chunks` started, and close a client that it opened."""
        self.engine.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def open_chunks(
    X: Any,
    sensitive_features: Any = None,
    *,
    features: Sequence[str] | None = None,
    labels: str | Path | None = None,
    client: Any = None,
    chunk_rows: int = CHUNK_ROWS,
    sample_rows: int | None = None,
) -> ChunkTable:
    """Open rows that do not fit in memory, which must not change during a fit: every pass reads them again.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), str, Path, or Dask array or data frame
        A path is that of a .npy file, of a Parquet file or of a folder of Parquet files, or a pattern such as
        ``"big/*.parquet"``. The partitions of a Dask collection stay in the memory of the workers.
    sensitive_features : array of shape (n_samples,), or str
        The group of every row, also as a .npy file or a Dask array, or the name of the column of groups of Parquet
        files and Dask data frames. For arrays it may be left out, if a fit bounds only sizes.
    features : sequence of str, optional
        Columns of Parquet files or of a Dask data frame to cluster by. By default these are all columns of the first
        file or of the data frame but the sensitive one and an index without a name.
    labels : path, optional
        A .npy file to which the last pass writes the labels, and from which ``labels_`` is then mapped. By default
        they are an array in memory. For Dask collections, whose files are not known, the file must not exist.
    client : distributed.Client, str or int, optional
        The Dask cluster whose workers read the chunks: its client, the address of its scheduler, the path of its
        scheduler file, or the number of worker processes to start on this machine. The workers need the same version
        of fairclust, and the files at the same paths. By default the threads of this process read the chunks, and
        those of a Dask collection are read by the client that this process connected last, or else by two processes.
    chunk_rows : int
        Number of rows of a chunk of an array, and the most rows of a chunk of several Parquet row groups.
    sample_rows : int, optional
        Approximate size of the random sample on which the fit starts, and which is held in memory.

    Returns
    -------
    ChunkTable
        Pass it to `fit` as X. If `open_chunks` has started workers, call `close` or use it as a context manager.

    Raises
    ------
    ChunkError
        A ValueError. A file is missing or cannot be read, the files or arrays do not fit together, or there is no Dask
        cluster at the given address.
    ValueError
        `labels` is a file that is read or may be read, or it cannot be written. Arrays are refused as by `fit`: `X`
        holds dates, or `X` and `sensitive_features` have one index in different orders.
    """
    if chunk_rows < 1 or (sample_rows is not None and sample_rows < 1):
        raise ChunkError(f"chunk_rows={chunk_rows} and sample_rows={sample_rows} must be at least 1")
    engine = Engine()
    if client is not None or is_collection(X):
        # Imported only here, because Dask is not needed without a cluster.
        from fairclust.chunks.cluster import Cluster, collection_chunks

        engine = Cluster(client)
    names: tuple[str, ...] = ()
    inputs: list[str | Path] = [client] if isinstance(client, str) else []
    try:
        if is_collection(X):
            if labels is not None and Path(labels).is_file():
                raise ChunkError(
                    f"labels: {labels} exists, and a Dask collection does not tell from which files it is read. Fix: "
                    "remove the file, or name another one"
                )
            chunks, names = collection_chunks(X, sensitive_features, features, engine)  # type: ignore[arg-type]
        elif isinstance(X, str | Path) and Path(X).suffix != ".npy":
            if not isinstance(sensitive_features, str):
                raise ChunkError(
                    "for Parquet files, sensitive_features is the name of their column of groups: pass that name"
                )
            chunks, names = parquet_chunks(X, sensitive_features, features, chunk_rows)
            inputs += parquet_files(X)
        else:
            chunks = array_chunks(X, sensitive_features, chunk_rows)
            inputs += [
                file for file in map(_file_of, (X, sensitive_features)) if isinstance(file, str | Path)
            ]
        check_outputs({"labels": labels}, inputs)
    except BaseException:
        engine.close()
        raise
    path = None if labels is None else Path(labels)
    return ChunkTable(chunks, engine, names, path, sample_rows, sensitive_features is not None)


def _file_of(array: Any) -> Any:
    """The path, or the name of the file from which an array is mapped."""
    while isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
        array = array.base
    return getattr(array, "filename", array)
