"""Assignment of batches of points to clusters with a bounded balance: a mixed-integer program."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from scipy import sparse

from fairclust.solvers.programs import Program, Solution, table_sums

# The search is limited by nodes instead of seconds, so that every machine finds the same labels.
_MAX_NODES = 200
_GAP = 1e-3
# The mixed-integer program decides on at least this many batches for each cluster.
_FREE = 8


def assign_batches(costs: np.ndarray, counts: np.ndarray, min_balance: float) -> np.ndarray | None:
    """Cheap assignment of whole batches, costs (n_batches, n_clusters), in which every cluster keeps the balance, or
    None.

    The solution of the linear program splits few batches, and its reduced costs say which others would change first. A
    mixed-integer program decides on these; as long as it has no solution, it is solved again with more batches.
    """
    n_batches, n_clusters = costs.shape
    above = costs - costs.min(axis=1, keepdims=True)
    above /= above.mean() or 1.0
    once, of_clusters = table_sums(costs.shape)
    balanced = [
        -sparse.kron(_excess(counts[:, i], counts[:, j], min_balance), sparse.eye_array(n_clusters))
        for i, j in permutations(range(counts.shape[1]), 2)
    ]

    def assigned(with_all: bool, low: Any, high: Any, *, whole: bool) -> Solution | None:
        """The assignment with shares between `low` and `high`, in which, `with_all`, no cluster is empty."""
        program = Program()
        program.variables("shares", above, low, high, whole=whole)
        program.rows(1, 1, shares=once)
        for rows in balanced:
            program.rows(-np.inf, 0, shares=rows)
        if with_all:
            program.rows(-np.inf, -1, shares=-of_clusters)
        return program.solve(nodes=_MAX_NODES, gap=_GAP)

    for with_all in (True, False):
        relaxed = assigned(with_all, 0, np.inf, whole=False)
        if relaxed is None:
            continue
        shares = relaxed.values["shares"]
        # The least cost of changing a batch's cluster. It is below zero for split batches, so that they come first.
        regret = np.sort(relaxed.reduced_costs["shares"], axis=1)
        split = shares.max(axis=1) < 1 - 1e-6
        regret = np.where(split, -1.0, regret[:, min(1, n_clusters - 1)])
        order = np.argsort(regret, kind="stable")
        n_free = max(_FREE * n_clusters, 2 * int(split.sum()))
        while True:
            lower, upper = np.round(shares), np.round(shares)
            lower[order[:n_free]], upper[order[:n_free]] = 0, 1
            done = assigned(with_all, lower, upper, whole=True)
            if done is not None:
                return done.values["shares"].argmax(axis=1)
            if n_free >= n_batches:
                break
            n_free *= 2
    return None


def _excess(of_one: np.ndarray, of_other: np.ndarray, min_balance: float) -> np.ndarray:
    """Points of one group minus `min_balance` times points of another in each batch, scaled to at most 1 for HiGHS."""
    excess = of_one - min_balance * of_other
    return excess[None, :] / (np.abs(excess).max() or 1.0)
