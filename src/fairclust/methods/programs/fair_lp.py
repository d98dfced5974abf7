"""Cheapest assignment to fixed centres with bounded group shares: the linear program, and its rounding.

The share of group j in every cluster must be between ``lower_j`` and ``upper_j``. Both steps are those of Bera et al.,
"Fair algorithms for clustering", NeurIPS 2019. HiGHS solves the programs and returns vertices, on which the rounding
depends.

The program is solved with the group prices bounded to a radius around those of a sample. A column that costs more than
its row's cheapest column by over twice the radius cannot be used then, so leaving it out does not change the solution.
If the prices reach the bound, the program is solved again around the new prices.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fairclust.solvers.programs import SHARE_EPS, Program, sums, whole_numbers

# With at most this many variables the whole program is solved at once.
_DIRECT = 20_000
# The first prices come from a sample of one point in this many. The first program then has one column for each point
# and further columns for about the same fraction of the points.
_THINNING = 8
_LEAST_RADIUS = 1e-3


def fair_assignment_lp(
    cost: np.ndarray, codes: np.ndarray, *, lower: np.ndarray, upper: np.ndarray
) -> sparse.csr_array:
    """Part of each point in each cluster, at the least cost with ``lower_j n_k <= n_jk <= upper_j n_k`` for all groups.

    The shares, (n_samples, n_clusters), are a vertex: all but a few rows have a single 1. Their cost is a lower bound.
    The share of each group of the data must be within its bounds.
    """
    high = np.minimum(upper, 1.0)
    inside = codes[:, None] == np.arange(len(high))
    kinds, pattern = np.unique(inside, axis=0, return_inverse=True)
    rows = np.vstack([kinds.T - high[:, None], lower[:, None] - kinds.T])
    return _solve(_excess(cost), np.ones(len(cost)), pattern, rows)[0]


def round_assignment(shares: sparse.csr_array, cost: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Labels from the shares of the points: whole points keep their cluster, and `whole_numbers` rounds the others."""
    labels = np.asarray(shares.argmax(axis=1), dtype=np.int32).ravel()
    part = np.flatnonzero(shares.max(axis=1).toarray().ravel() < 1 - SHARE_EPS)
    if len(part):
        x = shares[part].toarray()
        keep = x > SHARE_EPS
        point, cluster = keep.nonzero()
        cells, shape = (point, codes[part][point], cluster), (codes.max() + 1, x.shape[1])
        numbers = whole_numbers(x[keep], _excess(cost[part])[keep], cells, shape, np.ones(len(part)))
        labels[part[point[numbers > 0]]] = cluster[numbers > 0]
    return labels


def _excess(cost: np.ndarray) -> np.ndarray:
    """Costs minus the least cost of each row, scaled to a mean of one to suit HiGHS's fixed tolerances."""
    excess = cost - cost.min(axis=1, keepdims=True)
    excess /= excess.mean() or 1.0
    return excess


def _solve(
    excess: np.ndarray, weight: np.ndarray, pattern: np.ndarray, rows: np.ndarray
) -> tuple[sparse.csr_array, np.ndarray]:
    """Solve the linear program with prices within a growing radius: shares, whose rows sum to `weight`, and prices.

    Points with the same memberships are of one kind, and ``rows @ n <= 0`` for the table n of kinds by clusters. The
    least of each point's costs `excess` is zero, and their mean is about one.
    """
    n_samples, n_clusters = excess.shape
    n_kinds = rows.shape[1]
    n_cells = n_kinds * n_clusters
    prices = np.zeros((n_kinds, n_clusters))
    n_columns = excess.size
    if excess.size > _DIRECT and 2 * n_kinds <= n_samples:
        # The sample's weights have the same sum for every kind as the weights of all points. The program of the sample
        # therefore has a solution if that of all points has one.
        by_kind = np.argsort(pattern, kind="stable")
        sample = np.union1d(np.unique(pattern, return_index=True)[1], by_kind[::_THINNING])
        scale = np.bincount(pattern, weight) / np.bincount(pattern[sample], weight[sample])
        scaled = weight[sample] * scale[pattern[sample]]
        # The weights are scaled to a mean of one, because HiGHS can fail with weights in the thousands.
        _, prices = _solve(excess[sample], scaled / scaled.mean(), pattern[sample], rows)
        n_columns = min(n_columns, n_samples + max(_DIRECT // n_clusters, n_samples // _THINNING))
    # The cells of the table are variables too, so that the rows of the bounds have few entries. Otherwise they would
    # have one for each point. Two more variables for each cell add points to it or remove them. Their costs bound the
    # prices to the radius.
    unit = sparse.eye_array(n_cells)
    bounds = sparse.kron(rows, sparse.eye_array(n_clusters))
    radius = 0.0
    while True:
        regret = excess + prices[pattern]
        regret -= regret.min(axis=1, keepdims=True)
        widest = np.partition(regret, n_columns - 1, axis=None)[n_columns - 1]
        radius = 1.5 * radius or max(widest / 2, _LEAST_RADIUS)
        keep = regret <= 2 * radius
        point, cluster = keep.nonzero()
        program = Program()
        program.variables("shares", excess[keep])
        program.variables("table", np.zeros(prices.shape))
        program.variables("added", radius - prices)
        program.variables("removed", radius + prices)
        program.rows(-np.inf, 0, table=bounds)
        program.rows(weight, weight, shares=sums(point, n_samples))
        table = sums(pattern[point] * n_clusters + cluster, n_cells)
        program.rows(0, 0, shares=table, table=-unit, added=unit, removed=-unit)
        solution = program.solve()
        if solution is None:
            raise RuntimeError(f"HiGHS found no assignment: {program.message}")
        prices = -solution.duals[n_samples:].reshape(n_kinds, n_clusters)
        if solution.values["added"].sum() + solution.values["removed"].sum() <= SHARE_EPS:
            shares = sparse.csr_array((solution.values["shares"], (point, cluster)), shape=excess.shape)
            shares.eliminate_zeros()
            return shares, prices
