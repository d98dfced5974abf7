"""Scores of the labels of many rows, computed from the rows and the labels alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairclust.chunks.passes import group_codes, total_of
from fairclust.chunks.sources import Chunk, slices_of
from fairclust.chunks.table import ChunkTable
from fairclust.kernels.assignment import cluster_moments
from fairclust.metrics.centers import squared_distances_to_own
from fairclust.metrics.counts import contingency


def score_chunks(
    table: ChunkTable, labels: Any, names: np.ndarray, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """The group-by-cluster table, and for each group the sum of squared distances to the cluster means, in two passes.

    `names` are the groups, sorted; the table has the shape (n_groups, n_clusters).
    """

    def own() -> Iterator[tuple[np.ndarray]]:
        return ((np.asarray(labels[rows]),) for rows in slices_of(table.chunks))

    counts, sums = total_of(table.engine.run(_counts_and_sums, table.chunks, names, n_clusters, each=own()))
    means = sums / np.maximum(counts.sum(axis=0), 1)[:, None]
    (costs,) = total_of(table.engine.run(_costs, table.chunks, names, means, each=own()))
    return counts, costs


def _counts_and_sums(chunk: Chunk, labels: np.ndarray, names: np.ndarray, n_clusters: int) -> tuple[Any, ...]:
    X, values = chunk.read()
    if not len(X):
        return ()
    labels = labels.astype(np.int32)
    counts = contingency(labels, group_codes(values, names, chunk).astype(np.int32), n_clusters, len(names))
    return counts, cluster_moments(np.array(X), labels, n_clusters)[1]


def _costs(chunk: Chunk, labels: np.ndarray, names: np.ndarray, means: np.ndarray) -> tuple[np.ndarray]:
    X, values = chunk.read()
    costs = squared_distances_to_own(X, labels, means)
    return (np.bincount(group_codes(values, names, chunk), costs, len(names)),)
