"""Integer group-by-cluster tables near a soft table, within the bounds or as close to them as whole points can be."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from fairclust.kernels.prices import cheapest_columns
from fairclust.solvers.criteria import Criterion
from fairclust.solvers.programs import SECONDS, Program, table_sums

# What the points that would move cost, for numbers of points in each cell, both of shape (n_groups, n_clusters, n).
Regrets = Callable[[np.ndarray], np.ndarray]
# The search covers cells within _WINDOW of the soft table, and within _PER_EXCESS more for each point by which the
# soft table itself exceeds the bounds.
_WINDOW, _PER_EXCESS = 3, 2
# The search is limited by nodes, so that every machine finds the same table.
_NODES = 20
# A search ends at this relative gap between the best solution and the bound.
GAP = 0.05
# If the rows cannot all be met, the objective adds these costs for each point of the largest excess and of the sum of
# all excesses; at fixed sizes of the clusters, the first for the sum.
WORST, _ALL = 100.0, 10.0
# For two and three groups, a table is found for each of these weights of the regrets of the points that would move, and
# for each of these costs of the distance to the soft table, of which the first is that of `_search`.
_REGRETS, _FAR = (1.0, 0.5, 2.0), (2.0, 0.5, 8.0, 32.0)
# Wider windows, which only rough prices need, are left to `_search`. The time is proportional to the fourth power of
# the window with two groups, and to the sixth power with three.
_WIDEST = {2: 15, 3: 3}
# The sums of the first clusters stay so close to those of the soft table.
_ROOM = {2: 8, 3: 4}
# The regrets take a pass over the points, and with more points they save next to nothing.
MOST_POINTS = 1 << 17
# If no table meets the rows, two costs with the regrets and one of the distances are taken, with these costs for the
# sum of all excesses.
_ALL_NEAR = 10.0, 1.0, 1.0
# Tables that are off by more than this many points are returned only if there are no others. The largest excess falls
# by the factor _CLOSER from one table to the next, so that there are few tables.
_FAR_OFF, _CLOSER = 1.0, 0.7
# If the rows cannot all be met, tables with more cells than this are rounded by a flow only, which is fast and changes
# every cell by less than a point.
_SEARCHED_CELLS = 30
# Above this many cells, only the cluster sizes are rounded first, because a search over all tables takes seconds.
_LARGE = 300
# Cluster sizes up to _NEAR_SIZES below and above the soft sizes are tried, and then cells within _NEAR_CELLS of the
# soft table. The squared distance of a size costs _FAR_SIZES divided by the mean size, because in larger clusters the
# points that move lie closer to a boundary.
_NEAR_SIZES, _NEAR_CELLS, _FAR_SIZES = 40, 20, 3.0
# With many clusters fewer sizes are tried, so many in all but at least so many of each.
_SIZES_IN_ALL, _LEAST_SIZES = 2400, 3
# Numbers below these are rounding errors, here and in HiGHS.
_NEAR, _MET = 1e-9, 1e-5
# The weight of the prices in `flow_table`, beside deviations of up to one point to the fourth power.
_PRICED = 0.2


def accepted(criterion: Criterion) -> float:
    """The excess with which a table counts as within the bounds: a point if some are equalities, else a rounding error.

    Whole points can rarely meet equalities.
    """
    return 1.0 if criterion.exact.any() else _MET


def integer_tables(
    soft: np.ndarray,
    prices: np.ndarray,
    criterion: Criterion,
    multipliers: np.ndarray,
    regrets: Regrets | None = None,
) -> list[np.ndarray]:
    """The integer tables that were found within the bounds, or if there are none, tables that exceed them by little.

    Which of them is best depends on what it costs to move points to them.
    `prices` say how much one more point in a cell saves, in units of the mean gap of the potentials, and `multipliers`
    how much a row's limit, raised by one, saves. `regrets` are in the same units.
    """
    tables: list[np.ndarray] = []
    if not criterion.equal:
        is_few = _has_few_groups(soft, criterion)
        large = criterion.combined or (soft.size > _LARGE and not is_few)
        if large:
            sizes = _whole_sizes(criterion, multipliers, soft.sum(axis=0), int(np.rint(soft.sum())))
            tables += [] if sizes is None else _search(soft, prices, criterion, sizes=sizes)
        most = accepted(criterion)
        if is_few:
            # Sizes are met exactly, also if shares cannot be.
            within = _MET if criterion.combined else most
            tables += Columns(soft, prices, criterion, regrets).cheapest(within)
        elif not large or soft.size <= _SEARCHED_CELLS:
            tables += _search(soft, prices, criterion, strict=True)
        good = [table for table in tables if criterion.excess(table).max() <= most]
        if good:
            return good
    tables += tables_near(soft, prices, criterion, regrets)
    close = [table for table in tables if criterion.excess(table).max() <= _FAR_OFF + _NEAR]
    return close or tables


def tables_near(
    soft: np.ndarray, prices: np.ndarray, criterion: Criterion, regrets: Regrets | None = None
) -> list[np.ndarray]:
    """Integer tables near the soft one that exceed the bounds by little, mostly by less than a point in any cell."""
    tables = [flow_table(soft, prices, criterion)]
    if soft.size > _SEARCHED_CELLS:
        return tables
    if _has_few_groups(soft, criterion):
        return tables + Columns(soft, prices, criterion, regrets).nearest()
    return tables + _search(soft, prices, criterion)


def _window(soft: np.ndarray, criterion: Criterion) -> int:
    return _WINDOW + _PER_EXCESS * int(criterion.excess(soft).max())


def _has_few_groups(soft: np.ndarray, criterion: Criterion) -> bool:
    """Whether `Columns` is fast."""
    n_groups, most_cells = len(soft), np.inf if len(soft) == 2 else _LARGE
    return n_groups in _WIDEST and soft.size <= most_cells and _window(soft, criterion) <= _WIDEST[n_groups]


def _whole_sizes(
    criterion: Criterion, multipliers: np.ndarray, soft: np.ndarray, total: int
) -> np.ndarray | None:
    """Whole cluster sizes near the soft sizes, chosen so that rounding the bounds to whole points costs least.

    At some cluster size a row may allow 12.9 points. Only 12 of them can be used, and the loss is 0.9 times the row's
    multiplier. Dynamic programming finds the sizes that have the right total and the least sum of losses. Returns None
    if no sizes near the soft sizes are within the bounds.
    """
    factors = criterion.factors
    n_clusters = len(soft)
    alone = factors.value < 0
    limits = np.broadcast_to(criterion.limits, (len(factors.value), n_clusters))
    near = min(_NEAR_SIZES, max(_LEAST_SIZES, _SIZES_IN_ALL // n_clusters))
    tried = np.floor(soft + _NEAR)[:, None] + np.arange(-near, near + 2)
    left = limits[:, :, None] - factors.size[:, None, None] * tried
    # Which rows are inequalities on a whole number of points. Those about the size alone have the value -1, and so take
    # the entry that is appended.
    whole = np.append(factors.whole, False)[factors.value] & ~criterion.helpers.any(axis=1)
    whole &= ~criterion.exact & (np.abs(factors.sign) == 1)
    lost = np.where(whole[:, None, None], left - np.floor(left + _NEAR), 0.0)
    # For a bound on the size itself, the loss is the whole unused part of the bound.
    lost[alone] = left[alone]
    # The multipliers predict the loss only near the soft sizes, so the distance to these costs something too.
    far = _FAR_SIZES * n_clusters / total
    loss = (multipliers[:, :, None] * lost).sum(axis=0) + far * (tried - soft[:, None]) ** 2
    loss[(left[alone] < -_NEAR).any(axis=0) | (tried < 0)] = np.inf
    first = tried[:, 0].astype(int)
    most = int(total - first.sum())
    if most < 0:
        return None
    # best[t] is the least loss of the clusters so far, if their sizes sum to t more than their smallest sizes.
    best, steps = np.full(most + 1, np.inf), []
    best[0] = 0.0
    for of_cluster in loss:
        options = np.full((len(of_cluster), most + 1), np.inf)
        for step, value in enumerate(of_cluster[: most + 1]):
            options[step, step:] = best[: most + 1 - step] + value
        steps.append(options.argmin(axis=0))
        best = options.min(axis=0)
    if not np.isfinite(best[most]):
        return None
    sizes = first.astype(float)
    for k in reversed(range(n_clusters)):
        step = int(steps[k][most])
        sizes[k] += step
        most -= step
    return sizes


def flow_table(soft: np.ndarray, prices: np.ndarray, criterion: Criterion) -> np.ndarray:
    """Round every cell up or down, so that the row sums stay the same and the column sums are rounded up or down too.

    This is a flow problem, so the vertices of its linear program are whole numbers. For exact shares, the cells are
    first set to the shares of whole cluster sizes. Rounding then changes each by less than a point.
    """
    totals = np.rint(soft.sum(axis=1))
    sizes = np.floor(soft.sum(axis=0) + 1e-9)
    missing = int(totals.sum() - sizes.sum())
    sizes[np.argsort(sizes - soft.sum(axis=0), kind="stable")[:missing]] += 1
    if criterion.equal:
        soft = np.outer(totals / totals.sum(), sizes)
    down = np.floor(soft + 1e-9)
    part = soft - down
    up = (part > 1e-9).astype(float)
    # With the fourth power, large deviations count most. The prices decide between deviations of about the same size.
    cost = np.abs(1 - part) ** 4 - np.abs(part) ** 4 - _PRICED * prices
    rows, columns = table_sums(soft.shape)
    in_rows, sums = totals - down.sum(axis=1), part.sum(axis=0)
    # If no rounding of the cells has these sizes, some rounding has sizes that are rounded up or down otherwise.
    exactly = sizes - down.sum(axis=0)
    for least, most in (exactly, exactly), (np.floor(sums + 1e-9), np.ceil(sums - 1e-9)):
        program = Program()
        program.variables("up", cost, 0.0, up)
        program.rows(in_rows, in_rows, up=rows)
        program.rows(least, most, up=columns)
        solution = program.solve()
        if solution is not None:
            return (down + np.rint(solution.values["up"])).astype(np.int64)
    raise RuntimeError(f"HiGHS found no integer table: {program.message}")


class Columns:
    """The columns near those of a soft table with few rows, of which dynamic programming makes the cheapest tables."""

    def __init__(
        self, soft: np.ndarray, prices: np.ndarray, criterion: Criterion, regrets: Regrets | None
    ) -> None:
        n_groups, n_clusters = soft.shape
        window = _window(soft, criterion)
        shifts = np.arange(-window, window + 2)
        grid = np.indices((len(shifts),) * n_groups).reshape(n_groups, -1)
        self.down, self.options = np.floor(soft + _NEAR), shifts[grid].T.copy()
        cells = self.down[:, :, None] + shifts
        columns = self.down[:, :, None] + shifts[grid][:, None, :]
        clusters = np.repeat(np.arange(n_clusters), grid.shape[1])
        excess = criterion.excess_of(columns.reshape(n_groups, -1), clusters).reshape(columns.shape)
        self.off, self.all_off = excess.max(axis=0), excess.sum(axis=0)
        saved = np.where(cells < 0, -np.inf, prices[:, :, None] * (cells - soft[:, :, None]))
        paid = [far / (1 + soft[:, :, None]) * np.abs(cells - soft[:, :, None]) for far in _FAR]
        if regrets is not None:
            of_points = regrets(cells)
            paid = [weight * of_points for weight in _REGRETS] + paid
        # The costs of the columns, of shape (n_clusters, n_options), in several ways.
        self.costs = [sum((charge - saved)[j][:, grid[j]] for j in range(n_groups)) for charge in paid]
        # The state is the number of points of each group so far.
        missing = np.cumsum(soft - self.down, axis=1)
        self.wanted = np.vstack([np.floor(missing[:, :-1].T + _NEAR), np.rint(missing[:, -1:].T)]).astype(int)
        self.room = _ROOM[n_groups] + 2 * (window - _WINDOW)

    def _cheapest(self, costs: np.ndarray, most: float) -> tuple[np.ndarray, float, float]:
        """The table of the cheapest columns with at most this excess, its costs, and its largest excess."""
        costs = np.where(self.off <= most, costs, np.inf)
        chosen, cost = cheapest_columns(costs, self.options, self.wanted, self.room)
        worst = float(self.off[np.arange(len(chosen)), chosen].max())
        return (self.down + self.options[chosen].T).astype(np.int64), cost, worst

    def cheapest(self, most: float) -> list[np.ndarray]:
        """The cheapest tables with at most this excess, by all costs."""
        candidates = [self._cheapest(costs, most + _NEAR) for costs in self.costs]
        return [table for table, cost, _ in candidates if np.isfinite(cost)]

    def nearest(self) -> list[np.ndarray]:
        """Tables for which the costs and those of the largest excess and of the sum of all excesses are low."""
        tables = []
        ways = self.costs[0], self.costs[1], self.costs[-len(_FAR)]
        for costs, weight in zip(ways, _ALL_NEAR, strict=True):
            costs = costs + weight * self.all_off
            least, most = np.inf, _FAR_OFF + _NEAR
            if not np.isfinite(self._cheapest(costs, most)[1]):
                most = np.inf
            while True:
                table, cost, worst = self._cheapest(costs, most)
                if cost >= least:
                    break
                # The next table has a lower largest excess, and costs more otherwise.
                least, most = min(least, cost + WORST * worst), _CLOSER * worst - _MET
                tables.append(table)
        return tables


def _search(
    soft: np.ndarray,
    prices: np.ndarray,
    criterion: Criterion,
    *,
    sizes: np.ndarray | None = None,
    strict: bool = False,
) -> list[np.ndarray]:
    """The best integer table near the soft one, by a mixed-integer program, or none.

    If `strict`, the table must meet all rows. With `sizes`, the clusters have these sizes, and nearly all vertices of
    the linear program are integers.
    """
    program = Program()
    in_group = np.rint(soft.sum(axis=1))
    # With clusters of given sizes and one column, the program is a flow, all of whose vertices are whole.
    is_flow = sizes is not None and len(criterion.parts) <= 1 and not criterion.helpers.size
    is_flow = is_flow and bool(criterion.factors.whole.all())
    # Subtracting a constant from each group's prices does not change which table is best. It makes the objective
    # smaller, and HiGHS's tolerance is a fraction of the objective.
    by_group = (soft * prices).sum(axis=1, keepdims=True) / in_group[:, None]
    window = _window(soft, criterion) if sizes is None else _NEAR_CELLS
    low, high = np.maximum(np.floor(soft) - window, 0), np.ceil(soft) + window
    program.variables("table", by_group - prices, low, high, whole=not is_flow)
    # In a cell with many points, those that move lie close to a boundary, so a larger distance is allowed.
    program.variables("far", 2 / (1 + soft))
    cells = sparse.eye_array(soft.size)
    of_groups, of_clusters = table_sums(soft.shape)
    program.rows(in_group, in_group, table=of_groups)
    if sizes is not None:
        program.rows(sizes, sizes, table=of_clusters)
    program.rows(-np.inf, soft, table=cells, far=-cells)
    program.rows(-np.inf, -soft, table=-cells, far=-cells)
    if is_flow:
        # The distance is a chord between the whole numbers around it. It bends at whole numbers only, which is faster.
        part = soft - np.floor(soft)
        chord = sparse.diags_array((1 - 2 * part).ravel())
        program.rows(-np.inf, (1 - 2 * part) * np.floor(soft) - part, table=chord, far=-cells)
    bound_table(
        program, criterion, "table", np.eye(len(soft)), np.zeros(soft.shape), sizes=sizes, strict=strict
    )
    criterion.work.program(program.n_entries)
    solution = program.solve(nodes=_NODES, gap=GAP, seconds=SECONDS)
    return [] if solution is None else [np.rint(solution.values["table"]).astype(np.int64)]


def bound_table(
    program: Program,
    criterion: Criterion,
    name: str,
    members: np.ndarray,
    fixed: np.ndarray,
    *,
    sizes: np.ndarray | None = None,
    strict: bool = False,
) -> None:
    """Bound the table ``fixed + members @ variables``, for variables `name` of shape (n, n_clusters).

    Unless `strict`, the bounds may be exceeded at a cost. `sizes` are those of the clusters if they are fixed.
    """
    sides, most, helpers = _sides(criterion, fixed.shape[1]) if sizes is None else _at_sizes(criterion, sizes)
    most = most - sides @ fixed
    each, over = sparse.eye_array(fixed.shape[1]), sparse.eye_array(most.size)
    program.variables("helpers", np.zeros((helpers.shape[1], fixed.shape[1])), -np.inf)
    highest = 0.0 if strict else np.inf
    # At fixed sizes nearly all vertices are whole, but not if one variable is the largest of all excesses.
    each_costs, worst_costs = (_ALL, WORST) if sizes is None else (WORST, 0.0)
    program.variables("excess", np.full(most.shape, each_costs), 0.0, highest)
    program.variables("worst", np.array([worst_costs]), 0.0, highest)
    matrix = {name: sparse.kron(sides @ members, each), "helpers": sparse.kron(helpers, each)}
    program.rows(-np.inf, most, **matrix, excess=-over)
    program.rows(-np.inf, 0.0, excess=over, worst=-np.ones((most.size, 1)))


def _sides(criterion: Criterion, n_clusters: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows on a table as inequalities, with their limits and helpers. An equality is a bound on both sides."""
    rows, helpers, exact = criterion.rows, criterion.helpers, criterion.exact
    limits = np.broadcast_to(criterion.limits, (len(rows), n_clusters))
    if criterion.equal:
        # Add the row of the last group, which the criterion leaves out.
        rows, limits = np.vstack([rows, -rows.sum(axis=0)]), np.zeros((len(rows) + 1, n_clusters))
        helpers, exact = np.empty((len(rows), 0)), np.ones(len(rows), bool)
    sides, helpers = np.vstack([rows, -rows[exact]]), np.vstack([helpers, -helpers[exact]])
    return sides, np.vstack([limits, -limits[exact]]), helpers


def _at_sizes(criterion: Criterion, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As `_sides` for clusters of these sizes, where each row bounds a sum of cells by a whole number."""
    factors = criterion.factors
    limits = np.broadcast_to(criterion.limits, (len(factors.value), len(sizes)))
    fixed = np.flatnonzero(factors.value >= 0)
    values, exact = factors.values[factors.value[fixed]], criterion.exact[fixed]
    scale = np.abs(factors.sign[fixed])[:, None]
    helpers = criterion.helpers[fixed] / scale
    # Divided by the magnitude of its sign, a row bounds the number of points of a value. That is a whole number, so the
    # bound is rounded to one.
    most = (limits - factors.size[:, None] * sizes)[fixed] / scale
    whole = ~helpers.any(axis=1) & factors.whole[factors.value[fixed]]
    up, down = np.ceil(most - _NEAR), np.floor(most + _NEAR)
    rounded = np.where(exact[:, None], up, np.where(whole[:, None], down, most))
    rows = np.sign(factors.sign[fixed])[:, None] * values
    return (
        np.vstack([rows, -rows[exact]]),
        np.vstack([rounded, -down[exact]]),
        np.vstack([helpers, -helpers[exact]]),
    )
