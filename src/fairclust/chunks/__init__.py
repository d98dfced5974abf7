"""Rows that do not fit in memory: chunks of files and of Dask collections, and sums over them."""

from fairclust.chunks.sources import ChunkError
from fairclust.chunks.table import ChunkTable, open_chunks

__all__ = ["ChunkError", "ChunkTable", "open_chunks"]
