"""Fairness bounds as linear rows on the group-by-cluster table, the same rows for every cluster.

Column k of the table is fair if there are helper numbers v_k with
``rows @ n[:, k] + helpers @ v_k <= limits`` (``=`` where the criterion is one of equalities). All rows are in
points: a row that is broken by one is mended by moving about one point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from fairclust.base import NotSupported


@dataclass(frozen=True)
class Criterion:
    """Rows of one cluster, and the violation that readers see.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_groups)
    limits : ndarray of shape (n_rows,)
    excess : callable
        From a table, shape (n_groups, n_clusters), to the points that each cell is off its bounds by, same
        shape; 0 within.
    equal : bool
        The rows are equalities.
    helpers : ndarray of shape (n_rows, n_helpers)
    low, high : ndarray of shape (n_groups,)
        Of criteria whose rows are ``n_jk <= high_j n_k`` and ``low_j n_k <= n_jk`` for all groups, in this
        order, or equalities of shares; else empty.
    """

    rows: np.ndarray
    limits: np.ndarray
    excess: Callable[[np.ndarray], np.ndarray]
    equal: bool = False
    helpers: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    low: np.ndarray = field(default_factory=lambda: np.empty(0))
    high: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        if not self.helpers.size:
            object.__setattr__(self, "helpers", np.empty((len(self.rows), 0)))

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """Prices W = G'y, shape (n_groups, n_clusters), of multipliers, shape (n_rows, n_clusters)."""
        return self.rows.T @ multipliers


def make_criterion(
    names: np.ndarray,
    sizes: np.ndarray,
    *,
    target: np.ndarray | None = None,
    tolerance: float = 0.0,
    min_balance: float | None = None,
    max_gap: float | None = None,
) -> Criterion:
    """The criterion that a user asked for, if data with these groups can meet it.

    Parameters
    ----------
    names : ndarray of shape (n_groups,)
        For messages.
    sizes : ndarray of shape (n_groups,)
        Points of each group, positive.
    target, tolerance, min_balance, max_gap
        As in `fairclust.fair_assignment`.

    Raises
    ------
    ValueError
        More than one criterion, or a bound out of range.
    NotSupported
        A ValueError: bounds that no assignment meets. The message says which could be met.
    """
    if min_balance is not None or max_gap is not None:
        named = "min_balance" if max_gap is None else "max_gap"
        if min_balance is not None and max_gap is not None:
            raise ValueError("give min_balance or max_gap, not both")
        if tolerance != 0 or target is not None:
            raise ValueError(f"tolerance and target bound the shares: give them or {named}, not both")
    if max_gap is not None:
        if not max_gap >= 0:
            raise ValueError(f"max_gap must be at least 0, found {max_gap}")
        if max_gap < 1e-12:
            return exact_shares(sizes / sizes.sum())
        return gap_bound(float(max_gap), sizes.astype(float))
    if min_balance is not None:
        largest = sizes.min() / sizes.max()
        if not 0 <= min_balance <= largest * (1 + 1e-12):
            raise NotSupported(
                f"min_balance={min_balance} cannot be met: it must be between 0 and the data's own balance, "
                f"{largest:.6g}"
            )
        return ratio_bound(float(min_balance), len(sizes))
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must be at least 0 and below 1, found {tolerance}")
    shares = sizes / sizes.sum()
    wanted = shares if target is None else target
    ratios = np.minimum(shares / wanted, wanted / shares)
    least = 1 - float(ratios.min())
    if tolerance < least - 1e-9:
        j = int(ratios.argmin())
        raise NotSupported(
            f"tolerance={tolerance} cannot be met: group {names[j]} has the share {shares[j]:.6g} of the "
            f"data, its target is {wanted[j]:.6g}; the smallest tolerance for this target is {least:.6g}"
        )
    if tolerance < 1e-9:
        return exact_shares(shares)
    return share_bounds((1 - tolerance) * wanted, wanted / (1 - tolerance))


def exact_shares(shares: np.ndarray) -> Criterion:
    """Every cluster has the given shares of the groups.

    Parameters
    ----------
    shares : ndarray of shape (n_groups,)
        Those of the data: no others can be met.
    """
    # The last group's row follows from the others.
    rows = (np.eye(len(shares)) - shares[:, None])[:-1]

    def excess(table: np.ndarray) -> np.ndarray:
        return np.abs(table - np.outer(shares, table.sum(axis=0)))

    return Criterion(rows, np.zeros(len(rows)), excess, equal=True, low=shares, high=shares)


def share_bounds(lower: np.ndarray, upper: np.ndarray) -> Criterion:
    """Shares of the groups in every cluster within ``[lower_j, upper_j]``.

    Parameters
    ----------
    lower, upper : ndarray of shape (n_groups,)
    """
    unit = np.eye(len(lower))

    def excess(table: np.ndarray) -> np.ndarray:
        sizes = table.sum(axis=0)
        over, under = table - np.outer(upper, sizes), np.outer(lower, sizes) - table
        return np.maximum(0.0, np.maximum(over, under))

    low, high = lower, upper
    if len(lower) == 2:
        # The bounds of one group are bounds of the other: the tighter ones are enough.
        low, high = np.maximum(lower, 1 - upper[::-1])[:1], np.minimum(upper, 1 - lower[::-1])[:1]
        unit = unit[:1]
    over, under = (unit - high[:, None])[high < 1], (low[:, None] - unit)[low > 0]
    rows = np.vstack([over, under])
    if len(rows) == 2 * len(lower):
        return Criterion(rows, np.zeros(len(rows)), excess, low=lower, high=upper)
    return Criterion(rows, np.zeros(len(rows)), excess)


def ratio_bound(ratio: float, n_groups: int) -> Criterion:
    """``n_ik >= ratio * n_jk`` for all groups i, j in every cluster k."""

    def excess(table: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, ratio * table.max(axis=0) - table)

    unit = np.eye(n_groups)
    if n_groups <= 2:
        pairs = [ratio * unit[j] - unit[i] for i in range(n_groups) for j in range(n_groups) if i != j]
        rows = np.array(pairs).reshape(-1, n_groups)
        return Criterion(rows, np.zeros(len(rows)), excess)
    # n_jk <= m_k and ratio m_k <= n_jk, m_k free: fewer rows than pairs.
    ones = np.ones((n_groups, 1))
    return Criterion(
        np.vstack([unit, -unit]), np.zeros(2 * n_groups), excess, helpers=np.vstack([-ones, ratio * ones])
    )


def gap_bound(gap: float, sizes: np.ndarray) -> Criterion:
    """Delta, the mean over pairs of groups of ``abs(n_ik / N_i - n_jk / N_j)``: at most `gap` everywhere.

    Parameters
    ----------
    gap : float
    sizes : ndarray of shape (n_groups,)
        N_j, positive.
    """
    n_groups = len(sizes)
    pairs = list(combinations(range(n_groups), 2))

    def excess(table: np.ndarray) -> np.ndarray:
        spread = table / sizes[:, None]
        out = np.zeros_like(spread)
        if pairs:
            over = np.mean([np.abs(spread[i] - spread[j]) for i, j in pairs], axis=0) - gap
            # Points that the less numerous of the two extreme groups has too many, or too few.
            ends = np.stack([spread.argmin(axis=0), spread.argmax(axis=0)])
            end = np.take_along_axis(ends, sizes[ends].argmin(axis=0)[None], axis=0)[0]
            out[end, np.arange(len(end))] = np.maximum(0.0, over) * sizes[end] * n_groups / 2
        return out

    shares = np.diag(1.0 / sizes)
    if n_groups <= 2:
        rows = np.array([s * (shares[i] - shares[j]) * sizes.min() for i, j in pairs for s in (1, -1)])
        return Criterion(rows.reshape(-1, n_groups), np.full(len(rows), gap * sizes.min()), excess)
    if n_groups == 3:
        # The differences sum up to twice the largest: all shares within 3/4 of the gap of a free number.
        scaled, ones = shares * sizes.min(), np.ones((3, 1))
        limits = np.full(6, 0.75 * gap * sizes.min())
        return Criterion(np.vstack([scaled, -scaled]), limits, excess, helpers=np.vstack([-ones, ones]))
    # A helper above each pair's difference, and a bound on the helpers' mean.
    difference = np.array([(shares[i] - shares[j]) * min(sizes[i], sizes[j]) for i, j in pairs])
    unit = np.eye(len(pairs))
    mean = sizes.min() / (len(pairs) * np.array([min(sizes[i], sizes[j]) for i, j in pairs]))
    return Criterion(
        np.vstack([difference, -difference, np.zeros(n_groups)]),
        np.r_[np.zeros(2 * len(pairs)), gap * sizes.min()],
        excess,
        helpers=np.vstack([-unit, -unit, mean]),
    )
