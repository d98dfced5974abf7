"""Local search for centres among the rows by swaps. Each ball of a given list always contains a centre."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from scipy.spatial.distance import cdist

from fairclust.base import record

# Number of distances that are computed at a time.
_BLOCK = 2**21


def critical_balls(X: np.ndarray, radii: np.ndarray, alpha: float) -> np.ndarray:
    """Rows, sorted by radius, whose balls must contain a centre, so that every row has one within ``3 * alpha`` radii.

    Their balls of `alpha` times their radius do not overlap. Every other row is within ``2 * alpha`` times its own
    radius of one of them that has no larger radius.
    """
    uncovered = np.ones(len(X), dtype=bool)
    found = []
    for p in np.argsort(radii, kind="stable"):
        if uncovered[p]:
            found.append(p)
            # The tolerance covers points exactly at the limit. Otherwise rounding could make too many balls.
            uncovered &= np.linalg.norm(X - X[p], axis=1) > 2 * alpha * radii * (1 + 1e-12)
    return np.array(found)


def swap_search(
    X: np.ndarray,
    rows: np.ndarray,
    must: np.ndarray,
    *,
    metric: str,
    n_candidates: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Replace centres by other rows, one at a time, as long as that lowers the cost by more than `tol`, relatively.

    `must` (n_balls, n_samples) says which rows lie in which ball, and every ball always contains a centre. Each pass
    tries `n_candidates` random rows, and the search ends after `max_iter` passes or one without a swap. Returns the
    rows that are centres, and a record for every pass.
    """
    rows = rows.copy()
    distances = cdist(X, X[rows], metric)
    cost = float(distances.min(axis=1).sum())
    height = max(1, _BLOCK // len(X))
    history: list[dict[str, float]] = []
    for step in range(1, max_iter + 1):
        begin, n_swaps = perf_counter(), 0
        tried = rng.permutation(len(X))[:n_candidates]
        for start in range(0, len(tried), height):
            batch = tried[start : start + height]
            to_batch = cdist(X[batch], X, metric)
            totals = _after_swap(distances, to_batch)
            totals[~_allowed(must, rows, batch)] = np.inf
            i, k = np.unravel_index(int(totals.argmin()), totals.shape)
            if totals[i, k] < cost * (1 - tol):
                rows[k], distances[:, k], cost = batch[i], to_batch[i], float(totals[i, k])
                n_swaps += 1
        history.append(record(step, begin, cost, cost, 0.0, swaps=n_swaps))
        if n_swaps == 0:
            break
    return rows, history


def _after_swap(distances: np.ndarray, to_batch: np.ndarray) -> np.ndarray:
    """Cost with each candidate instead of each centre, shape (n_candidates, n_clusters).

    If the centre of a point is swapped for the candidate, the point pays the smaller of its distances to the second
    nearest centre and to the candidate. If another centre is swapped, it pays the smaller of its distances to its own
    centre and to the candidate.
    """
    n_samples, n_clusters = distances.shape
    own = distances.argmin(axis=1)
    every = np.arange(n_samples)
    first = distances[every, own]
    others = distances.copy()
    others[every, own] = np.inf
    kept = np.minimum(to_batch, first)
    lost = np.minimum(to_batch, others.min(axis=1)) - kept
    return kept.sum(axis=1)[:, None] + lost @ (own[:, None] == np.arange(n_clusters))


def _allowed(must: np.ndarray, rows: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Which swaps leave a centre in every ball, shape (n_candidates, n_clusters)."""
    held = must[:, rows]
    without = held.sum(axis=1)[:, None] - held
    return ((without[:, None, :] > 0) | must[:, batch][:, :, None]).all(axis=0)
