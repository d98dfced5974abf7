"""What `fit` takes for rows that do not fit in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fairclust.chunks.engines import Engine, Threads
from fairclust.chunks.sources import CHUNK_ROWS, Chunk, ChunkError, array_chunks, parquet_chunks
from fairclust.chunks.survey import SAMPLE_ROWS

# An array mapped from a file is read into memory as long as its points and distances take at most so many bytes.
_IN_MEMORY = 1 << 31


@dataclass(frozen=True)
class ChunkTable:
    """Rows in chunks, from `open_chunks`, and what a fit does with them; a context manager.

    Attributes
    ----------
    chunks : list of Chunk
    features : tuple of str
        Their names, if they have names.
    engine : Engine
    is_collection : bool
        Dask holds the rows.
    labels, checkpoint : Path or None
    sample_rows : int
    """

    chunks: list[Chunk]
    features: tuple[str, ...]
    engine: Engine
    is_collection: bool
    labels: Path | None
    checkpoint: Path | None
    sample_rows: int

    @property
    def n_rows(self) -> int:
        return sum(chunk.n_rows for chunk in self.chunks)

    def close(self) -> None:
        """End the workers that `open_chunks` has started."""
        self.engine.close()

    def __enter__(self) -> ChunkTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_chunks(
    X: Any,
    sensitive_features: Any = None,
    *,
    features: Sequence[str] | None = None,
    labels: str | Path | None = None,
    checkpoint: str | Path | None = None,
    client: Any = None,
    chunk_rows: int = CHUNK_ROWS,
    sample_rows: int = SAMPLE_ROWS,
) -> ChunkTable:
    """Rows that a fit reads chunk by chunk, in every pass.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), str, Path, or Dask array or data frame
        An array, which may be mapped from a file, a .npy file, a Parquet file, a folder of Parquet files, or a
        pattern such as ``"big/*.parquet"``. The partitions of a Dask collection are computed once and stay in the
        memory of the workers.
    sensitive_features : array of shape (n_samples,), or str
        The group of every row: an array, a .npy file or a Dask array; for Parquet and Dask data frames the name of
        the column.
    features : sequence of str, optional
        Columns to cluster by, where columns have names; default: all but the sensitive one.
    labels : path, optional
        The labels are written to this .npy file and mapped from there, as the smallest integers that hold them.
        By default they are an array in memory, and for Dask collections a Dask array.
    checkpoint : path, optional
        The outer steps of the fit are kept in this file; a fit that finds it goes on from there. Removed in the end.
    client : distributed.Client, str or int, optional
        Let the workers of a Dask cluster read the chunks: its client, the address or file of its scheduler, or the
        number of worker processes to start here. They must find the files under the same names. By default the threads
        of this process read them; for Dask collections, the cluster that is connected, or one started here.
    chunk_rows : int
        Rows of a chunk. Sums are added in the order of the chunks, so that another number changes the last digits.
    sample_rows : int
        The fit starts on a random sample of about so many rows, held in memory.

    Returns
    -------
    ChunkTable
        The X of `fit`. Close it, or use it as a context manager, if this has started workers.

    Raises
    ------
    ChunkError
        A ValueError: files that are not there or do not fit together, or no such cluster.
    """
    engine = _engine(client, X)
    names: tuple[str, ...] = ()
    try:
        if _is_collection(X):
            from fairclust.chunks.cluster import collection_chunks

            chunks, names = collection_chunks(X, sensitive_features, features, engine)  # type: ignore[arg-type]
        elif isinstance(X, str | Path) and Path(X).suffix != ".npy":
            if not isinstance(sensitive_features, str):
                raise ChunkError(
                    "for Parquet files, sensitive_features is the name of their column of groups"
                )
            chunks, names = parquet_chunks(X, sensitive_features, features, chunk_rows)
        else:
            chunks = array_chunks(_mapped(X), _mapped(sensitive_features), chunk_rows)
    except BaseException:
        engine.close()
        raise
    return ChunkTable(
        chunks,
        names,
        engine,
        _is_collection(X),
        None if labels is None else Path(labels),
        None if checkpoint is None else Path(checkpoint),
        sample_rows,
    )


def _engine(client: Any, X: Any) -> Engine:
    if client is None and not _is_collection(X):
        return Threads()
    # Imported only here: without a cluster, Dask is not needed.
    from fairclust.chunks.cluster import Cluster, running_client

    return Cluster((running_client() or 2) if client is None else client)


def _is_collection(X: Any) -> bool:
    """Whether X is a Dask array or data frame, told without importing Dask."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


def _mapped(X: Any) -> Any:
    """The array of a .npy file; anything else as it is."""
    if not isinstance(X, str | Path):
        return X
    try:
        return np.load(X, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise ChunkError(f"{X} cannot be mapped as an array: {error}") from None


def comes_in_chunks(X: Any, n_clusters: int) -> bool:
    """Whether `fit` reads X chunk by chunk: paths, Dask collections, `open_chunks`, and large mapped arrays."""
    if isinstance(X, np.memmap) and X.ndim == 2:
        return X.shape[0] * (X.shape[1] + n_clusters) * 4 > _IN_MEMORY
    return isinstance(X, str | Path | ChunkTable) or _is_collection(X)
