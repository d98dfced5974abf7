"""Fair assignment to fixed centres, exact up to the rounding of a few points, with a certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairclust.base import checked_weights, groups_of_rows, scaled_weights
from fairclust.group_encoding import Sensitive, as_array, check_same_order, read_sensitive
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import blocks, make_layout, one_thread
from fairclust.messages import warn
from fairclust.methods.price.budget import Attempt, check_budget, fairest_within
from fairclust.methods.price.rounding import round_prices
from fairclust.solvers.criteria import Bounds, Criterion, Work, bounds_criterion
from fairclust.solvers.prices import Prices, certified_gap, lower_bound, paid_limits, solve

# Tiles of smaller problems are kept in double precision.
_DOUBLE_ENTRIES = 1 << 23
_BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class FairAssignment:
    """Labels within the bounds, and a bound on how much cheaper other labels can be.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,), int32
    prices : ndarray of shape (n_groups, n_clusters)
        The label of a point is ``argmin_k distances[p, k] + prices[group of p, k]``, except for the few points that
        rounding has moved.
    groups : ndarray of shape (n_groups,)
        The groups in the order of the rows of `prices`: the values of a single sensitive column, or the combinations
        of the values of several columns that occur.
    cost : float
        Sum over rows of the distance to the cluster of the row's label, times the weight of the row.
    lower_bound : float
        No assignment within the bounds costs less, not even a fractional one. A bound of `mean_tolerance` is here one
        on the mean of the rounded numbers.
    gap : float
        Let best be the least cost of all assignments that are within the bounds or violate no row of them by more than
        the labels do. Then ``cost / best - 1`` is at most `gap`. If `violation` is 0, the gap is
        ``cost / lower_bound - 1``. Otherwise the cost that the violation may have saved is first subtracted from the
        lower bound. Never negative.
    violation : ndarray of shape (n_groups, n_clusters)
        Number of points, or sum of their weights, by which each cell of the table is outside its bounds; 0 within.
        With several sensitive columns or bounds on the sizes, it is the largest of their violations.
    tolerance : float or None
        With a budget, the smallest tolerance found whose assignment costs no more than the budget; else None.
    tolerance_bound : float or None
        With a budget, else None. If positive, every assignment with this tolerance or less costs more than the budget.

    Examples
    --------
    >>> from fairclust import fair_assignment
    >>> found = fair_assignment([[0, 1], [0, 1], [0, 2], [0, 3]], size_max=2)
    >>> found.labels.tolist(), found.cost, found.slack
    ([1, 1, 0, 0], 2.0, 0.0)
    """

    labels: np.ndarray
    prices: np.ndarray
    groups: np.ndarray
    cost: float
    lower_bound: float
    gap: float
    violation: np.ndarray
    tolerance: float | None = None
    tolerance_bound: float | None = None

    @property
    def slack(self) -> float:
        """The largest violation, in points or weight."""
        return float(self.violation.max())


def fair_assignment(
    distances: Any,
    sensitive_features: Any = None,
    *,
    target: Any = None,
    tolerance: Any = 0.0,
    min_balance: Any = None,
    max_gap: Any = None,
    size_min: Any = None,
    size_max: Any = None,
    crossed: bool = False,
    mean_tolerance: Any = None,
    sample_weight: Any = None,
    max_cost: float | None = None,
    max_cost_increase: float | None = None,
) -> FairAssignment:
    """Cheapest assignment of points to clusters with bounded group shares, balance or gap, and bounded sizes.

    One of three criteria counts for each sensitive column: the shares (the default), `min_balance` or `max_gap`.

    Parameters
    ----------
    distances : array-like of shape (n_samples, n_clusters)
        Cost of each point in each cluster, finite. An array mapped from a file is read in blocks. The fit keeps a copy
        in tiles: in single precision, or in double precision if there are at most 8 million entries.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), data frame, or mapping
        The group of every row, or several sensitive columns, each of which is bounded on its own. None if only the
        sizes are bounded.
    target, tolerance, min_balance, max_gap, size_min, size_max, crossed, mean_tolerance
        The bounds, as in `PriceFairKMeans`.
    max_cost, max_cost_increase : float, optional
        A budget instead of a tolerance, as there.
    sample_weight : array-like of shape (n_samples,), optional
        A row of weight 2 counts as two rows with the same label, in the cost and in the bounds. A row of weight 0
        counts in neither, and gets the label that the prices of its group give it.

    Returns
    -------
    FairAssignment
        If no labels within the bounds are found, because whole points cannot meet them, the labels violate the bounds
        by about a point: see `FairAssignment.violation`. Clusters may be empty.

    Raises
    ------
    ValueError
        Bad input, more than one criterion, or bounds that these groups cannot meet. The message names bounds that they
        can meet.

    Notes
    -----
    The linear program over N x K shares is solved through its dual, a concave function of J x K group prices, which
    with several columns are sums of a price for each value. Bounds on shares are those of Bera et al., "Fair
    algorithms for clustering", NeurIPS 2019; the fairest assignment within a cost is the problem of Esmaeili et al.,
    "Fair clustering under a bounded cost", NeurIPS 2021.

    Examples
    --------
    >>> from fairclust import fair_assignment
    >>> found = fair_assignment([[0, 1], [0, 1], [0, 2], [0, 3]], ["a", "b", "a", "b"])
    >>> found.labels.tolist(), found.cost
    ([0, 0, 0, 0], 0.0)
    >>> fair_assignment([[0, 1], [0, 1], [0, 2], [0, 3]], size_max=2).labels.tolist()
    [1, 1, 0, 0]
    """
    check_same_order(distances, sample_weight, "sample_weight", "distances")
    check_same_order(distances, sensitive_features, of="distances")
    check_same_order(sensitive_features, sample_weight, "sample_weight", "sensitive_features")
    costs = as_array(distances)
    if costs.ndim != 2 or not costs.size:
        raise ValueError(f"distances must be a non-empty matrix, found shape {costs.shape}")
    if costs.dtype not in (np.float32, np.float64):
        costs = costs.astype(np.float64)
    if not isinstance(mean_tolerance, Mapping | None):
        raise ValueError(f"mean_tolerance must map columns to numbers, found {mean_tolerance!r}")
    weights = checked_weights(sample_weight, costs)
    rest = np.arange(0) if weights is None else np.flatnonzero(weights == 0)
    if weights is not None and len(rest):
        n_given, other_costs, counted = len(weights), costs[rest], np.flatnonzero(weights)
        others = groups_of_rows(sensitive_features, rest, costs.shape[0])
        # An error names a row of all the data, not one of those that count.
        read_sensitive(sensitive_features, costs.shape[0], means=mean_tolerance or ())
        sensitive_features = groups_of_rows(sensitive_features, counted, costs.shape[0])
        costs, weights = costs[counted], weights[counted]
        if not np.isfinite(other_costs).all():
            raise ValueError("distances has entries that are not finite")
    n_samples, n_clusters = costs.shape
    sensitive = read_sensitive(sensitive_features, n_samples, means=mean_tolerance or ())
    weights, unit = scaled_weights(weights)
    dtype = np.float64 if n_samples * n_clusters <= _DOUBLE_ENTRIES else np.float32
    n_groups = len(sensitive.cells)
    layout = make_layout(sensitive.codes, n_groups)
    potentials = Potentials.empty(layout, n_groups, n_clusters, dtype, weights)
    potentials.set_costs(costs)
    # The largest entry is NaN if any entry is.
    if not np.isfinite(potentials.row_min_sum) or not np.isfinite(potentials.a.max()):
        raise ValueError("distances has entries that are not finite")
    bounds = Bounds(tolerance, min_balance, max_gap, target, size_min, size_max, crossed, mean_tolerance)

    def solved(bounds: Bounds, work: Work) -> tuple[Criterion, Prices]:
        mean = None if weights is None else unit
        criterion = bounds_criterion(bounds, sensitive, potentials.group_sizes, n_clusters, unit=mean)
        criterion = replace(criterion, work=work)
        with one_thread():
            return criterion, solve(potentials, criterion)

    assigned = partial(_assign, costs, potentials, sensitive, unit)
    if max_cost is None and max_cost_increase is None:
        work = Work()
        made = assigned(*solved(bounds, work))
    else:
        cost = potentials.row_min_sum * unit
        budget = check_budget(bounds, max_cost, max_cost_increase, cost, potentials.rounding)

        def attempt(tolerance: float | None, work: Work) -> Attempt:
            criterion, prices = solved(bounds._replace(tolerance=tolerance), work)
            least = lower_bound(potentials, criterion, prices) * unit
            if least > budget:
                return Attempt(np.inf, least, None)
            made = assigned(criterion, prices)
            return Attempt(made.cost, made.lower_bound, (made, work))

        tolerance, tolerance_bound, (made, work) = fairest_within(attempt, budget)
        made = replace(made, tolerance=tolerance, tolerance_bound=tolerance_bound)
    if work.is_cut:
        warn(f"fair_assignment: {work.advice}", ConvergenceWarning)
    if len(rest):
        codes, prices = sensitive.new_groups(made.prices, [], others, len(rest))
        labels = np.empty(n_given, made.labels.dtype)
        labels[counted], labels[rest] = made.labels, (other_costs + prices[codes]).argmin(axis=1)
        made = replace(made, labels=labels)
    return made


def _assign(
    costs: np.ndarray,
    potentials: Potentials,
    sensitive: Sensitive,
    unit: float,
    criterion: Criterion,
    solved: Prices,
) -> FairAssignment:
    labels, _, counts = round_prices(potentials, criterion, solved)
    # The cost and the bound are summed in double precision, even if the tiles are in single precision.
    cost = least = 0.0
    for block in blocks(costs.shape[0], _BLOCK_ROWS):
        rows = np.asarray(costs[block], dtype=np.float64)
        paid = rows[np.arange(len(rows)), labels[block]]
        priced = rows + solved.prices[sensitive.codes[block]]
        reduced = priced.min(axis=1)
        if potentials.weights is not None:
            weights = potentials.weights[block]
            paid, reduced = paid * weights, reduced * weights
        cost += float(paid.sum())
        least += float(reduced.sum())
    bound = least - paid_limits(criterion, solved.multipliers)
    return FairAssignment(
        labels,
        solved.prices,
        sensitive.names,
        cost * unit,
        bound * unit,
        certified_gap(criterion, solved, cost, bound, counts),
        criterion.excess(counts) * unit,
    )
