"""The modified stochastic block model: graphs in which the groups are more visible than the clusters."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import numpy as np
import scipy.sparse as sp

from fairclust.datasets.generate import Generated


def make_msbm(
    n_rows: int = 1000,
    n_clusters: int = 5,
    n_groups: int = 2,
    rates: Sequence[float] = (10.0, 7.0, 4.0, 1.0),
    seed: int = 0,
) -> Generated:
    """Draw a graph whose nodes link more often to their group than to their cluster (Kleindessner et al. 2019, Section
    4).

    Edges have probability rate times ``(log n_rows / n_rows) ** (2 / 3)``. The four rates fall: same cluster and
    group, same group alone, same cluster alone, neither. Memory grows only with the number of edges.
    """
    n_cells = n_clusters * n_groups
    if n_clusters < 1 or n_groups < 2 or n_rows < 2 * n_cells:
        raise ValueError(
            "n_clusters must be positive, n_groups at least 2, n_rows at least 2 * n_clusters * n_groups"
        )
    probabilities = np.asarray(rates, dtype=float) * (log(n_rows) / n_rows) ** (2 / 3)
    if probabilities.shape != (4,) or not (probabilities.min() >= 0 and probabilities.max() <= 1):
        raise ValueError(
            f"rates {list(rates)} give the probabilities {probabilities.round(3).tolist()} at "
            f"n_rows={n_rows}; four numbers in [0, 1] are needed"
        )
    rng = np.random.default_rng(seed)
    starts = np.linspace(0, n_rows, n_cells + 1).astype(int)
    ends: list[tuple[np.ndarray, np.ndarray]] = []
    for a in range(n_cells):
        for b in range(a, n_cells):
            same_cluster, same_group = a // n_groups == b // n_groups, a % n_groups == b % n_groups
            p = probabilities[2 * (not same_group) + (not same_cluster)]
            sizes = starts[a + 1] - starts[a], starts[b + 1] - starts[b]
            if a == b:
                rows, columns = _pairs_within(sizes[0], p, rng)
            else:
                rows, columns = np.divmod(_hits(sizes[0] * sizes[1], p, rng), sizes[1])
            ends.append((rows + starts[a], columns + starts[b]))
    rows, columns = (np.concatenate(part).astype(np.int32) for part in zip(*ends, strict=True))
    half = sp.coo_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n_rows, n_rows)).tocsr()
    W = (half + half.T).tocsr()
    W.sort_indices()
    cell = np.repeat(np.arange(n_cells), np.diff(starts))
    names = tuple(f"group {j + 1}" for j in range(n_groups))
    nothing = np.empty((n_rows, 0))
    return Generated(nothing, (cell % n_groups).astype(np.int32), (), names, W, cell // n_groups)


def _hits(n_trials: int, p: float, rng: np.random.Generator) -> np.ndarray:
    """Sorted numbers of the successes among independent trials, drawn by the gaps between them."""
    if p == 0:
        return np.empty(0, np.int64)
    found = [np.array([-1])]
    while found[-1][-1] < n_trials:
        left = n_trials - found[-1][-1]
        gaps = rng.geometric(p, size=int(left * p + 4 * np.sqrt(left * p) + 10))
        found.append(found[-1][-1] + np.cumsum(gaps))
    hits = np.concatenate(found[1:])
    return hits[hits < n_trials]


def _pairs_within(n: int, p: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pairs (i, j) with i < j."""
    hits = _hits(n * (n - 1) // 2, p, rng)
    # The pair (i, j) has the number j (j - 1) / 2 + i. The root is exact for all sizes that fit into memory.
    j = ((1 + np.sqrt(1 + 8 * hits.astype(float))) / 2).astype(np.int64)
    return hits - j * (j - 1) // 2, j
