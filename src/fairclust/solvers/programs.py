"""Linear and mixed-integer programs, stated by named blocks of variables. Only this module calls HiGHS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.optimize import LinearConstraint, linprog, milp

# HiGHS's tolerance is 1e-7, so shares this close to an integer count as this integer.
SHARE_EPS = 1e-6


class Solution(NamedTuple):
    """The best solution found."""

    values: dict[str, np.ndarray]  # The values of every block of variables, in the shape of its costs
    # For linear programs: the reduced costs of the variables, in the shape of their costs, and the dual variables of
    # the equations, in the order in which these were added.
    reduced_costs: Mapping[str, np.ndarray] = {}
    duals: np.ndarray = np.empty(0)


class Program:
    """Costs to minimise over blocks of variables that must meet rows."""

    def __init__(self) -> None:
        self._costs: dict[str, np.ndarray] = {}
        self._low: list[np.ndarray] = []
        self._high: list[np.ndarray] = []
        self._whole: list[np.ndarray] = []
        self._rows: list[tuple[np.ndarray, np.ndarray, sparse.csr_array]] = []
        self.message = ""
        """What HiGHS said at the end of `solve`."""

    def variables(
        self,
        name: str,
        costs: np.ndarray,
        low: ArrayLike = 0.0,
        high: ArrayLike = np.inf,
        *,
        whole: bool = False,
    ) -> None:
        """Add a block of variables. Their costs may have any shape, to which the bounds are broadcast."""
        self._costs[name] = costs
        for bounds, bound in (self._low, low), (self._high, high):
            bounds.append(np.broadcast_to(np.asarray(bound, dtype=float), costs.shape).ravel())
        self._whole.append(np.full(costs.size, whole))

    def rows(self, low: ArrayLike, high: ArrayLike, **blocks: Any) -> None:
        """Require that the sum of the matrices, each times the variables of its name, is between `low` and `high`.

        All variables must have been added before.
        """
        height = next(iter(blocks.values())).shape[0]
        low, high = (
            np.broadcast_to(np.ravel(np.asarray(bound, dtype=float)), (height,)) for bound in (low, high)
        )
        zeros = {name: sparse.csr_array((height, costs.size)) for name, costs in self._costs.items()}
        self._rows.append((low, high, sparse.hstack(list({**zeros, **blocks}.values()), format="csr")))

    def solve(self, *, nodes: int | None = None, gap: float | None = None) -> Solution | None:
        """Find the optimum, or the best solution within the limits; None if there is none, see `message`.

        The limits are for programs with whole variables: a number of nodes, with which every machine finds the same
        solution, and a relative gap. Other programs are solved by the dual simplex method, which ends in a vertex. It
        is mostly faster here than the interior point method with crossover.
        """
        costs = np.concatenate([block.ravel() for block in self._costs.values()])
        bounds = np.concatenate(self._low), np.concatenate(self._high)
        whole = np.concatenate(self._whole)
        if not whole.any():
            return self._vertex(costs, np.column_stack(bounds))
        limits = {"node_limit": nodes, "mip_rel_gap": gap}
        low, high, matrices = zip(*self._rows, strict=True)
        matrix = sparse.vstack(matrices, format="csc")
        done = milp(
            costs,
            constraints=LinearConstraint(matrix, np.concatenate(low), np.concatenate(high)),
            integrality=whole,
            bounds=bounds,
            options={name: limit for name, limit in limits.items() if limit is not None},
        )
        self.message = done.message
        return None if done.x is None else Solution(self._by_name(done.x))

    def _vertex(self, costs: np.ndarray, bounds: np.ndarray) -> Solution | None:
        equal, below = [], []
        for low, high, matrix in self._rows:
            if (low == high).all():
                equal.append((high, matrix))
                continue
            if (high < np.inf).any():
                below.append((high, matrix))
            if (low > -np.inf).any():
                below.append((-low, -matrix))
        sides: dict[str, Any] = {}
        for name, rows in ("eq", equal), ("ub", below):
            if rows:
                sides[f"A_{name}"] = sparse.vstack([matrix for _, matrix in rows], format="csr")
                sides[f"b_{name}"] = np.concatenate([bound for bound, _ in rows])
        done = linprog(costs, bounds=bounds, method="highs-ds", **sides)
        self.message = done.message
        if not done.success:
            return None
        return Solution(
            self._by_name(done.x),
            reduced_costs=self._by_name(done.lower.marginals),
            duals=done.eqlin.marginals,
        )

    def _by_name(self, numbers: np.ndarray) -> dict[str, np.ndarray]:
        ends = np.cumsum([costs.size for costs in self._costs.values()])
        parts = np.split(numbers, ends[:-1])
        return {
            name: part.reshape(costs.shape)
            for (name, costs), part in zip(self._costs.items(), parts, strict=True)
        }


def sums(values: np.ndarray, n_sums: int) -> sparse.csr_array:
    """The matrix of ones that adds up variables: variable i is part of the sum ``of[i]``."""
    return sparse.csr_array(
        (np.ones(len(values)), (values, np.arange(len(values)))), shape=(n_sums, len(values))
    )


def table_sums(shape: tuple[int, int]) -> tuple[sparse.sparray, sparse.sparray]:
    """The matrices that add up the rows, and the columns, of a table of variables."""
    of_rows, of_columns = np.indices(shape)
    return sums(of_rows.ravel(), shape[0]), sums(of_columns.ravel(), shape[1])


def whole_numbers(
    fractions: np.ndarray,
    costs: np.ndarray,
    cells: tuple[np.ndarray, np.ndarray, np.ndarray],
    shape: tuple[int, int],
    sizes: np.ndarray,
) -> np.ndarray:
    """Round numbers of points so that every sum of a group in a cluster, and of a cluster, is rounded up or down.

    `cells` are the row, group and cluster of each number, `shape` is (n_groups, n_clusters), and `sizes` are the sums
    of the rows. This is a flow of least cost, for which the vertices of the linear program are whole. With groups that
    overlap, as in the paper, they need not be.
    """
    rows, groups, clusters = cells
    n_groups, n_clusters = shape
    table = sums(groups * n_clusters + clusters, n_groups * n_clusters)
    counts = sparse.vstack([table, sums(clusters, n_clusters)], format="csr")
    totals = counts @ fractions
    program = Program()
    program.variables("points", costs)
    program.rows(-np.inf, np.ceil(totals - SHARE_EPS), points=counts)
    program.rows(np.floor(totals + SHARE_EPS), np.inf, points=counts)
    program.rows(sizes, sizes, points=sums(rows, len(sizes)))
    solution = program.solve()
    if solution is None:
        raise RuntimeError(f"HiGHS found no rounding: {program.message}")
    return np.rint(solution.values["points"]).astype(np.int64)
