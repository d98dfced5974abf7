"""Clustering of rows that do not fit in memory: files and Dask collections are read in chunks."""

from fairclust.chunks.sources import ChunkError
from fairclust.chunks.table import ChunkTable, open_chunks

__all__ = ["ChunkError", "ChunkTable", "open_chunks"]
