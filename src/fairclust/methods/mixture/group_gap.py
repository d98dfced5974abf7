"""Penalties on the table of mean responsibilities, M[j, k] = mean of psi_k over group j."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

# A penalty takes M, the table of hard labels and mean responsibilities, and returns its value and derivative by M. Only
# that of the authors' program uses the labels and the means.
Penalty = Callable[..., tuple[float, np.ndarray]]

# Temperature of the smoothed Delta, and weight of the barrier that is added to it.
TEMPERATURE = 0.005
BARRIER = 0.3
# Gaps up to this size are rounding errors. Without them, all gaps are zero where the responsibilities of all points are
# equal, as at the start of the authors' program on categories, and their absolute values have no gradient.
_ROUNDING = 1e-7


def no_penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
    """The penalty of a mixture without fairness."""
    return 0.0, np.zeros_like(M)


@lru_cache(maxsize=16)
def _pairs(n_groups: int) -> np.ndarray:
    """Signed incidence of the unordered pairs of groups: shape (n_pairs, n_groups)."""
    first, second = np.triu_indices(n_groups, 1)
    eye = np.eye(n_groups)
    return eye[first] - eye[second]


def smooth_delta(M: np.ndarray) -> tuple[float, np.ndarray]:
    """`fairclust.metrics.delta` with ``sqrt(gap^2 + (T/10)^2)`` for the absolute value and a smooth maximum,
    ``T logsumexp(./T)``.

    The value is at least Delta and at most ``T (log n_clusters + 1/10)`` above it. The gradient comes second.
    """
    pairs = _pairs(len(M))
    if not len(pairs):
        return 0.0, np.zeros_like(M)
    gaps = pairs @ M
    soft = np.sqrt(gaps**2 + (TEMPERATURE / 10) ** 2)
    means = soft.mean(axis=0) / TEMPERATURE
    top = means.max()
    shares = np.exp(means - top)
    total = shares.sum()
    by_gap = gaps / soft * (shares / total) / len(pairs)
    return TEMPERATURE * float(top + np.log(total)), pairs.T @ by_gap


def smooth_penalty(lam: float) -> Penalty:
    """``lam * smooth_delta - BARRIER * mean log(K M)``. The second term keeps components from losing all points."""

    def penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
        value, gradient = smooth_delta(M)
        floored = np.maximum(M, 1e-12)
        alive = float(np.log(len(M[0]) * floored).mean())
        return lam * value - BARRIER * alive, lam * gradient - BARRIER / (floored * M.size)

    return penalty


def program_penalty(lam: float, sizes: np.ndarray) -> Penalty:
    """The published program's penalty times K, because it divides the likelihood by K.

    It is ``K lam max_{j,k} m_k |P(j | k) - P(j)|`` plus ``10 K P(j) / (n_jk + 1e-6)`` for the cell with the fewest hard
    labels. m_k is the mean responsibility at the first E-step of a round, constant in the gradient, or that of `M`.
    """
    share = sizes / sizes.sum()

    def penalty(M: np.ndarray, hard: np.ndarray, held: np.ndarray | None = None) -> tuple[float, np.ndarray]:
        n_clusters = M.shape[1]
        mean = np.maximum(share @ M, 1e-12)
        held = mean if held is None else held
        excess = share[:, None] * (M / mean - 1.0)
        worst = held * np.abs(excess)
        j, k = divmod(int(worst.argmax()), n_clusters)
        gradient = np.zeros_like(M)
        by_share = -(excess[j, k] + share[j]) * share
        by_share[j] += share[j]
        if worst[j, k] > _ROUNDING:
            gradient[:, k] = lam * held[k] / mean[k] * np.sign(excess[j, k]) * by_share
        s, c = divmod(int(hard.argmin()), n_clusters)
        count = sizes[s] * M[s, c] + 1e-6
        gradient[s, c] -= 10 * share[s] * sizes[s] / count**2
        value = lam * worst[j, k] + 10 * share[s] / count
        return n_clusters * float(value), n_clusters * gradient

    return penalty


def sum_of_columns(penalties: Sequence[Penalty], members: Sequence[np.ndarray], sizes: np.ndarray) -> Penalty:
    """The sum of the penalties of several sensitive columns, each of the column's own table.

    For each column, `members` (n_values, n_groups) has ones and zeros that say which groups have which value.
    """
    # A value's mean is the mean of its groups' means, weighted by the sizes of the groups.
    means = [of * sizes / (of @ sizes)[:, None] for of in members]

    def penalty(M: np.ndarray, hard: Any = None, held: Any = None) -> tuple[float, np.ndarray]:
        value, gradient = 0.0, np.zeros_like(M)
        for one, mean, of in zip(penalties, means, members, strict=True):
            added, by_value = one(mean @ M, None if hard is None else of @ hard, held)
            value, gradient = value + added, gradient + mean.T @ by_value
        return value, gradient

    return penalty
