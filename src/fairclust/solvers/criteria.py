"""The bounds that a user gives, as linear rows on the group-by-cluster table, the same rows for every cluster.

All rows are in points, so moving about one point removes an excess of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import block_diag

from fairclust.base import NotSupported
from fairclust.group_encoding import Sensitive, SensitiveColumn, resolve_target

# About the seconds of an inverse of a matrix with n rows, divided by n^3. `step_of_rows` takes about as long with n
# multipliers that are not zero. The second number is the seconds of each distance in a pass over the points.
_SYSTEM, _DISTANCE = 1.25e-10, 3e-9
_ON_GROUPS = ("tolerance", "min_balance", "max_gap")


@dataclass
class Work:
    """A limit on Newton steps, in about the seconds that they take.

    It is counted instead of measured, so that every machine stops at the same step. They may take as long as the
    passes over the points, and `extra` seconds more.
    """

    extra: float = 3.0
    spent: float = 0.0
    is_cut: bool = False
    advice: ClassVar[str] = (
        "the limit of work was reached before the prices converged, so the cost may be higher than it could be. Bound "
        "fewer groups or columns at once, or take fewer clusters"
    )

    def pass_over(self, n_distances: int) -> None:
        """Count a pass over the points."""
        self.spent -= _DISTANCE * n_distances

    def systems(self, number: int, size: int) -> None:
        """Count inverses of matrices with `size` rows, or calls of `step_of_rows` with so many multipliers."""
        self.spent += _SYSTEM * number * size**3

    def is_done(self, part: float = 1.0) -> bool:
        """Whether this part of the work is spent. `is_cut` is set if all of it is."""
        done = self.spent >= part * self.extra
        self.is_cut |= self.spent >= self.extra
        return done


@dataclass(eq=False)
class Criterion:
    """Bounds on a table n of shape (n_groups, n_clusters), and by how many points it violates them.

    Column k is within the bounds if there are helpers v of shape (n_helpers,) with
    ``rows @ n[:, k] + helpers @ v <= limits[:, k]``, and ``=`` instead of ``<=`` in the rows that are `exact`.
    """

    rows: np.ndarray  # (n_rows, n_groups)
    limits: np.ndarray  # (n_rows, 1), for all clusters, or (n_rows, n_clusters)
    # Called with a table, shape (n_groups, n_clusters). Returns the number of points by which each cell is outside its
    # bounds, same shape; 0 within.
    excess: Callable[..., np.ndarray]
    shares: np.ndarray | None = None  # (n_groups,); those of `exact_shares`, whose rows are all equalities
    helpers: np.ndarray = None  # type: ignore[assignment]  # (n_rows, n_helpers); by default none
    exact: np.ndarray = None  # type: ignore[assignment]  # (n_rows,); which rows are equalities
    combined: bool = False  # Whether `combine` made this criterion
    # Called with multipliers, shape (n_rows, n_clusters), and a table. Returns the most that an assignment can save by
    # being outside the bounds as far as the table is. By default, the sum of excess times multiplier of the rows.
    saving: Callable[[np.ndarray, np.ndarray], float] = None  # type: ignore[assignment]
    work: Work = field(default_factory=Work)  # What was spent on Newton steps for this criterion
    # (n_rows, n_values); if `combined`, for each column the coefficients of all rows at its values, and last those of
    # the cluster's size, (n_rows, 1). The price of a group is the sum of the prices of its values and of the size.
    parts: tuple[np.ndarray, ...] = ()
    # The number of groups whose points are counted on their own. By default all groups; `mean_bound` adds up the scores
    # of all groups, so that groups that only their scores tell apart count as one.
    n_counted: int = 0

    def __post_init__(self) -> None:
        n_rows, n_groups = self.rows.shape
        self.n_counted = self.n_counted or n_groups
        if self.helpers is None:
            self.helpers = np.empty((n_rows, 0))
        if self.exact is None:
            self.exact = np.full(n_rows, self.shares is not None)
        if self.saving is None:
            self.saving = self._saving_of_rows

    def _saving_of_rows(self, multipliers: np.ndarray, counts: np.ndarray) -> float:
        above = self.rows @ counts - self.limits
        above = np.where(self.exact[:, None], np.abs(above), np.maximum(above, 0.0))
        return float((above * np.abs(multipliers)).sum())

    def prices(self, multipliers: np.ndarray) -> np.ndarray:
        """Prices W = G'y, shape (n_groups, n_clusters), of multipliers, shape (n_rows, n_clusters)."""
        return self.rows.T @ multipliers

    def excess_of(self, columns: np.ndarray, clusters: np.ndarray) -> np.ndarray:
        """`excess` of a table, shape (n_groups, n_columns), whose columns belong to the given clusters."""
        return self.excess(columns, clusters) if self.combined else self.excess(columns)


class Bounds(NamedTuple):
    """The bounds among the parameters of `fairclust.fair_assignment`."""

    tolerance: Any = 0.0
    min_balance: Any = None
    max_gap: Any = None
    target: Any = None
    size_min: Any = None
    size_max: Any = None
    crossed: bool = False
    mean_tolerance: Any = None


def bounds_criterion(
    bounds: Bounds, sensitive: Sensitive, sizes: np.ndarray, n_clusters: int, *, unit: float | None = None
) -> Criterion:
    """The criterion for the bounds that a user gave; a ValueError or `NotSupported` says which bounds the data can
    meet.

    For data with weights, `sizes` are sums of weights divided by their mean, `unit`, and bounds on sizes are sums of
    the weights that the user gave. Without weights, cluster sizes are whole numbers.
    """
    total = float(sizes.sum())
    least, most = _size_bounds(
        bounds.size_min, bounds.size_max, total * (unit or 1.0), n_clusters, whole=unit is None
    )
    least, most = least / (unit or 1.0), most / (unit or 1.0)
    bounded = bounds.size_min is not None or bounds.size_max is not None
    if not sensitive.columns:
        if not bounded:
            raise ValueError(
                "sensitive_features is missing: pass the group of every row by keyword, as in "
                "fit(X, sensitive_features=data['sex']), or bound the sizes of the clusters with size_min or size_max"
            )
        return combine([], sizes, least, most)
    names = [column.name for column in sensitive.columns]
    if bounds.crossed and len(names) > 1:
        if bounds.mean_tolerance:
            raise ValueError("mean_tolerance bounds one column at a time: pass it without crossed=True")
        # The combinations of values are treated as the values of one column without a name.
        _check_names(bounds, [])
        columns, members = [SensitiveColumn("", sensitive.names)], [np.eye(len(sizes))]
    else:
        _check_names(bounds, names)
        columns, members = list(sensitive.columns), [sensitive.members(i) for i in range(len(names))]
    if len(columns) == 1 and not bounded and not columns[0].measured:
        return _of_column(bounds, columns[0], sizes, alone=True)
    several, parts = len(columns) > 1, []
    for column, of_values in zip(columns, members, strict=True):
        try:
            parts.append((_of_column(bounds, column, of_values @ sizes, several=several), of_values))
        except ValueError as error:
            if not several:
                raise
            raise type(error)(f"{column.name}: {error}") from None
    return combine(parts, sizes, least, most)


def _size_bounds(
    size_min: Any, size_max: Any, total: float, n_clusters: int, *, whole: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest size of every cluster, (n_clusters,) each; without a bound 0 and infinity.

    Integers are numbers of points, floats multiples of ``total / n_clusters``. With `whole`, these are rounded to the
    stricter side, or to the looser one if the sizes could not add up to `total` otherwise.
    """
    mean, rows = total / n_clusters, "rows" if whole else "units of weight"
    low, low_shares = _sizes(size_min, "size_min", 0.0, mean, n_clusters)
    high, high_shares = _sizes(size_max, "size_max", np.inf, mean, n_clusters)
    if whole:
        inward = (
            np.where(low_shares, np.ceil(low - 1e-9), low),
            np.where(high_shares, np.floor(high + 1e-9), high),
        )
        outward = np.where(low_shares, np.floor(low), low), np.where(high_shares, np.ceil(high), high)
        low = inward[0] if inward[0].sum() <= total else outward[0]
        high = inward[1] if inward[1].sum() >= total else outward[1]
        if (low > high).any():
            low, high = outward
    slack = 1e-9 * total
    if low.sum() > total + slack:
        raise NotSupported(
            f"size_min={size_min} cannot be met: {n_clusters} clusters would have {low.sum():g} of {total:g} {rows}. "
            f"The largest size_min for all of them is {_floor(mean, whole):g}{_meant(size_min)}"
        )
    if high.sum() < total - slack:
        raise NotSupported(
            f"size_max={size_max} cannot be met: {n_clusters} clusters would have {high.sum():g} of {total:g} {rows}. "
            f"The smallest size_max for all of them is {-_floor(-mean, whole):g}{_meant(size_max)}"
        )
    if (low > high + slack).any():
        k = int((low - high).argmax())
        raise NotSupported(
            f"cluster {k} cannot have at least {low[k]:g} and at most {high[k]:g} {rows}: "
            "lower size_min or raise size_max"
        )
    return low, high


def _meant(size: Any) -> str:
    """A hint for a small whole number, which counts rows, but may be meant as a multiple of the mean size."""
    small = isinstance(size, Integral) and int(size) in (1, 2)
    return f". Whole numbers count rows: {float(size)} is the multiple of the mean size" if small else ""


def _floor(value: float, whole: bool) -> float:
    return float(np.floor(value)) if whole else value


def _sizes(
    bounds: Any, name: str, default: float, mean: float, n_clusters: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of all clusters in points, and which of them were given as floats."""
    if bounds is None:
        return np.full(n_clusters, default), np.zeros(n_clusters, bool)
    listed = list(bounds) if np.ndim(bounds) else [bounds] * n_clusters
    if len(listed) != n_clusters:
        raise ValueError(
            f"{name} has {len(listed)} entries, there are {n_clusters} clusters: "
            "pass one number, or one for each cluster"
        )
    shares = np.array([not isinstance(value, Integral) for value in listed])
    values = np.array(listed, dtype=float)
    if not (values >= 0).all():
        raise ValueError(f"{name} must not be negative, found {bounds}")
    return np.where(shares, values * mean, values), shares


def _of_column(
    bounds: Bounds, column: SensitiveColumn, sizes: np.ndarray, *, several: bool = False, alone: bool = False
) -> Criterion:
    """The criterion of one column, whose values have these sizes.

    With `several` columns, `target` maps columns to shares. `alone` says that there are neither other columns nor
    bounds on the sizes.
    """
    name, values = column.name, column.values
    if column.measured:
        most = _entry(bounds.mean_tolerance, name)
        if not isinstance(most, Real) or not 0 <= float(most) < np.inf:
            raise ValueError(f"mean_tolerance must be a finite number of at least 0, found {most!r}")
        if len(values) < 2:
            return no_bound(len(sizes))
        # Distances to the weighted mean in standard deviations.
        mean = float(values @ sizes / sizes.sum())
        deviation = float(np.sqrt((values - mean) ** 2 @ sizes / sizes.sum()))
        return mean_bound((values - mean) / deviation, float(most))
    tolerance, balance, gap = (_entry(getattr(bounds, parameter), name) for parameter in _ON_GROUPS)
    for parameter, bound in zip(_ON_GROUPS, (tolerance, balance, gap), strict=True):
        if bound is not None and not isinstance(bound, Real):
            raise ValueError(f"{parameter} must be a number, found {bound!r}")
    target = _entry(bounds.target, name) if several else bounds.target
    if balance is not None or gap is not None:
        named = "min_balance" if gap is None else "max_gap"
        if balance is not None and gap is not None:
            raise ValueError("give min_balance or max_gap, not both")
        if tolerance or target is not None:
            raise ValueError(f"tolerance and target bound the shares: give them or {named}, not both")
    if gap is not None:
        if not 0 <= gap < np.inf:
            raise ValueError(f"max_gap must be a finite number of at least 0, found {gap}")
        if gap < 1e-12:
            # The gap is zero at the shares of the data. The certificate is still about the gap: see `_saving_of_gap`.
            exact = exact_shares(sizes / sizes.sum(), complete=not alone)
            return replace(exact, saving=partial(_saving_of_gap, exact.rows, sizes.astype(float), 0.0))
        return gap_bound(float(gap), sizes.astype(float))
    if balance is not None:
        largest = sizes.min() / sizes.max()
        if not 0 <= balance <= largest * (1 + 1e-12):
            raise NotSupported(
                f"min_balance={balance} cannot be met: it must be between 0 and the data's own balance, {largest:.6g}"
            )
        return ratio_bound(float(balance), len(sizes))
    # If min_balance or max_gap is a mapping, the default tolerance of 0 does not bound the columns it leaves out.
    instead = isinstance(bounds.min_balance, Mapping) or isinstance(bounds.max_gap, Mapping)
    if tolerance is None or (instead and tolerance == 0 and not isinstance(bounds.tolerance, Mapping)):
        return no_bound(len(sizes))
    if not 0 <= tolerance < 1:
        raise ValueError(f"tolerance must be at least 0 and below 1, found {tolerance}")
    shares = sizes / sizes.sum()
    wanted = shares if target is None else resolve_target(target, values, np.arange(len(sizes)))
    ratios = np.minimum(shares / wanted, wanted / shares)
    least = 1 - float(ratios.min())
    if tolerance < least - 1e-9:
        j = int(ratios.argmin())
        raise NotSupported(
            f"tolerance={tolerance} cannot be met: group {values[j]} has the share {shares[j]:.6g} of the data, its "
            f"target is {wanted[j]:.6g}; the smallest tolerance for this target is {least:.6g}"
        )
    if tolerance < 1e-9:
        return exact_shares(shares, complete=not alone)
    return share_bounds((1 - tolerance) * wanted, wanted / (1 - tolerance))


def _entry(bounds: Any, name: str) -> Any:
    """The bound of one column. A mapping has an entry for each bounded column; any other value is for all columns."""
    if not isinstance(bounds, Mapping):
        return bounds
    return {str(key): value for key, value in bounds.items()}.get(name)


def _check_names(bounds: Bounds, names: list[str]) -> None:
    """Raise an error if bounds on groups name a column that does not exist, or whose mean is bounded.

    `names` are those of the sensitive columns, and empty for crossed columns.
    """
    grouped = [name for name in names if name not in map(str, bounds.mean_tolerance or ())]
    for parameter in _ON_GROUPS:
        given = getattr(bounds, parameter)
        if isinstance(given, Mapping) and (unknown := {*map(str, given)}.difference(grouped)):
            known = f"the columns with groups are {grouped}" if any(names) else "there are no columns to name"
            raise ValueError(f"{parameter} names {sorted(unknown)}, but {known}")
    target = bounds.target
    if target is None or (len(names) <= 1 and grouped == names):
        return
    if not isinstance(target, Mapping) or (set(map(str, target)) - set(grouped)):
        raise ValueError(
            f"target must be a mapping of sensitive columns to shares, with columns out of {grouped}"
        )


def exact_shares(shares: np.ndarray, *, complete: bool = False) -> Criterion:
    """Every cluster has the shares of the groups in the data.

    `complete` adds a row for the last of more than two groups, although it follows from the others. It is needed beside
    the rows of other columns or of sizes, because all these rows are rounded together.
    """
    n_rows = len(shares) if complete and len(shares) > 2 else len(shares) - 1

    def excess(table: np.ndarray) -> np.ndarray:
        return np.abs(table - shares[:, None] * table.sum(axis=0))

    rows = (np.eye(len(shares)) - shares[:, None])[:n_rows]
    return Criterion(rows, np.zeros((n_rows, 1)), excess, shares=shares)


def share_bounds(lower: np.ndarray, upper: np.ndarray) -> Criterion:
    """Shares of the groups in every cluster within ``[lower_j, upper_j]``; both have the shape (n_groups,)."""
    unit = np.eye(len(lower))

    def excess(table: np.ndarray) -> np.ndarray:
        sizes = table.sum(axis=0)
        over, under = table - upper[:, None] * sizes, lower[:, None] * sizes - table
        return np.maximum(0.0, np.maximum(over, under))

    low, high = lower, upper
    if len(lower) == 2:
        # With two groups, bounds on one share are also bounds on the other, so the tighter ones are enough.
        low, high = np.maximum(lower, 1 - upper[::-1])[:1], np.minimum(upper, 1 - lower[::-1])[:1]
        unit = unit[:1]
    over, under = (unit - high[:, None])[high < 1], (low[:, None] - unit)[low > 0]
    rows = np.vstack([over, under])
    return Criterion(rows, np.zeros((len(rows), 1)), excess)


def ratio_bound(ratio: float, n_groups: int) -> Criterion:
    """``n_ik >= ratio * n_jk`` for all groups i, j in every cluster k."""

    def excess(table: np.ndarray) -> np.ndarray:
        return np.maximum(0.0, ratio * table.max(axis=0) - table)

    unit = np.eye(n_groups)
    if n_groups <= 2:
        pairs = [ratio * unit[j] - unit[i] for i in range(n_groups) for j in range(n_groups) if i != j]
        rows = np.array(pairs).reshape(-1, n_groups)
        return Criterion(rows, np.zeros((len(rows), 1)), excess)
    # n_jk <= m_k and ratio m_k <= n_jk with a free number m_k need fewer rows than all pairs of groups.
    ones = np.ones((n_groups, 1))

    def saving(multipliers: np.ndarray, counts: np.ndarray) -> float:
        # With the largest count of a cluster as m, the rows of the second kind are exceeded by `excess`.
        return float((multipliers[n_groups:] * excess(counts)).sum())

    return Criterion(
        np.vstack([unit, -unit]),
        np.zeros((2 * n_groups, 1)),
        excess,
        helpers=np.vstack([-ones, ratio * ones]),
        saving=saving,
    )


def gap_bound(gap: float, sizes: np.ndarray) -> Criterion:
    """In every cluster, Delta is at most `gap`: the mean over pairs of groups of ``abs(n_ik / N_i - n_jk / N_j)``."""
    n_groups = len(sizes)
    pairs = list(combinations(range(n_groups), 2))

    def excess(table: np.ndarray) -> np.ndarray:
        spread = table / sizes[:, None]
        over = np.maximum(0.0, _mean_gap(spread) - gap)
        # The number of points that the smaller one of the two extreme groups has too many or too few.
        ends = np.stack([spread.argmin(axis=0), spread.argmax(axis=0)])
        end = np.take_along_axis(ends, sizes[ends].argmin(axis=0)[None], axis=0)[0]
        out = np.zeros_like(spread)
        out[end, np.arange(len(end))] = over * sizes[end] * n_groups / 2
        return out

    def criterion(rows: np.ndarray, limits: np.ndarray, helpers: Any = None) -> Criterion:
        saving = partial(_saving_of_gap, rows, sizes, gap)
        return Criterion(rows, limits[:, None], excess, helpers=helpers, saving=saving)

    shares = np.diag(1.0 / sizes)
    if n_groups <= 2:
        rows = np.array([s * (shares[i] - shares[j]) * sizes.min() for i, j in pairs for s in (1, -1)])
        return criterion(rows.reshape(-1, n_groups), np.full(len(rows), gap * sizes.min()))
    if n_groups == 3:
        # The three differences sum to twice the largest, so all shares must be within 3/4 of the gap of a free number.
        scaled, ones = shares * sizes.min(), np.ones((3, 1))
        limits = np.full(6, 0.75 * gap * sizes.min())
        return criterion(np.vstack([scaled, -scaled]), limits, np.vstack([-ones, ones]))
    # Each pair has a helper that is at least its difference, and the mean of the helpers is bounded.
    difference = np.array([(shares[i] - shares[j]) * min(sizes[i], sizes[j]) for i, j in pairs])
    n_pairs = len(pairs)
    each = np.arange(n_pairs)
    # For many groups this matrix is large. Memory of np.zeros is not taken where it stays zero.
    helpers = np.zeros((2 * n_pairs + 1, n_pairs))
    helpers[each, each] = helpers[n_pairs + each, each] = -1.0
    helpers[-1] = sizes.min() / (n_pairs * np.array([min(sizes[i], sizes[j]) for i, j in pairs]))
    return criterion(
        np.vstack([difference, -difference, np.zeros(n_groups)]),
        np.r_[np.zeros(2 * n_pairs), gap * sizes.min()],
        helpers,
    )


def _mean_gap(spread: np.ndarray) -> np.ndarray:
    """The mean over pairs of rows of the absolute difference, for each column; 0 for a single row."""
    n = len(spread)
    weights = 2.0 * np.arange(n) - (n - 1)
    return weights @ np.sort(spread, axis=0) * (2.0 / max(n * (n - 1), 1))


def _saving_of_gap(
    rows: np.ndarray, sizes: np.ndarray, gap: float, multipliers: np.ndarray, counts: np.ndarray
) -> float:
    """What an assignment can save if Delta of each cluster is at most that of the table.

    Among tables with a given Delta, the largest value of prices is attained where some groups have one share of their
    points in the cluster and all other groups another.
    """
    values = sizes[:, None] * (rows.T @ multipliers)
    # The sums over all groups are zero up to rounding errors.
    n = len(sizes)
    tops = np.cumsum(np.sort(values - values.mean(axis=0), axis=0)[::-1], axis=0)[:-1]
    chosen = np.arange(1, n)[:, None]
    most = (tops / (chosen * (n - chosen))).max(axis=0, initial=0.0) * (n * (n - 1) / 2)
    return float((np.maximum(0.0, _mean_gap(counts / sizes[:, None]) - gap) * most).sum())


def mean_bound(scores: np.ndarray, tolerance: float) -> Criterion:
    """In every cluster the mean score of the points is between ``-tolerance`` and ``tolerance``, in standard
    deviations.

    The scores of the groups have mean 0 and standard deviation 1 over all points.
    """

    def excess(table: np.ndarray) -> np.ndarray:
        # The unit is a point whose score is off by one. All cells of a cluster contribute to its mean, so all get the
        # same excess.
        off = np.maximum(0.0, np.abs(scores @ table) - tolerance * table.sum(axis=0))
        return np.broadcast_to(off, table.shape)

    if tolerance < 1e-9:
        return Criterion(scores[None], np.zeros((1, 1)), excess, exact=np.ones(1, bool), n_counted=1)
    return Criterion(np.stack([scores, -scores]) - tolerance, np.zeros((2, 1)), excess, n_counted=1)


def no_bound(n_groups: int) -> Criterion:
    """A criterion without rows, which every table meets."""
    return Criterion(np.empty((0, n_groups)), np.empty((0, 1)), np.zeros_like)


def combine(
    parts: Sequence[tuple[Criterion, np.ndarray]],
    sizes: np.ndarray,
    least: np.ndarray,
    most: np.ndarray,
) -> Criterion:
    """Combine criteria on several columns and bounds on the cluster sizes in one criterion.

    Each criterion comes with ones and zeros of shape (n_values, n_groups) that say which groups have which value.
    `sizes` are those of the groups. Without a bound on sizes, `least` and `most` are 0 and infinity.
    """
    n_clusters = len(least)
    # A largest size stays a bound even if no cluster can exceed it: with the more clusters of the search, it may bind.
    size_rows = [(1.0, np.minimum(most, sizes.sum()))] if np.isfinite(most).any() else []
    if least.any():
        size_rows.append((-1.0, -least))
    # The coefficients of the rows at the values of each column, and of the rows on sizes at the size.
    coefficients = [*(part.rows for part, _ in parts), np.array([sign for sign, _ in size_rows])[:, None]]
    rows = [part.rows @ members for part, members in parts]
    limits = [np.broadcast_to(part.limits, (len(part.rows), n_clusters)) for part, _ in parts]
    helpers = [*(part.helpers for part, _ in parts), np.empty((len(size_rows), 0))]
    # The rows of the parts are one below the other, and end here.
    ends = np.cumsum([len(part.rows) for part, _ in parts], dtype=int)

    def excess(table: np.ndarray, clusters: np.ndarray | slice = slice(None)) -> np.ndarray:
        in_clusters = table.sum(axis=0)
        off = np.maximum(0.0, np.maximum(in_clusters - most[clusters], least[clusters] - in_clusters))
        out = np.broadcast_to(off, table.shape).copy()
        for part, members in parts:
            np.maximum(out, members.T @ part.excess(members @ table), out=out)
        return out

    # One row for each group: what its points are counted as in the columns.
    counted = np.vstack([np.ones(len(sizes)), *(members for part, members in parts if part.n_counted > 1)]).T

    def saving(multipliers: np.ndarray, counts: np.ndarray) -> float:
        *of_parts, of_sizes = np.split(multipliers, ends)
        saved = 0.0
        for entries, (part, members) in zip(of_parts, parts, strict=True):
            saved += part.saving(entries, members @ counts)
        for entries, (sign, limits) in zip(of_sizes, size_rows, strict=True):
            saved += float((np.maximum(0.0, sign * counts.sum(axis=0) - limits) * entries).sum())
        return saved

    return Criterion(
        np.vstack([*rows, coefficients[-1] * np.ones(len(sizes))]),
        np.vstack([np.empty((0, n_clusters)), *limits, *(limits for _, limits in size_rows)]),
        excess,
        helpers=block_diag(*helpers),
        exact=np.concatenate([*(part.exact for part, _ in parts), np.zeros(len(size_rows), bool)]),
        combined=True,
        saving=saving,
        parts=tuple(
            np.split(
                block_diag(*coefficients), np.cumsum([part.shape[1] for part in coefficients])[:-1], axis=1
            )
        ),
        n_counted=len(np.unique(counted, axis=0)),
    )
