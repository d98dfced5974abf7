"""The paper's iteration for the assignment at fixed potentials: bound optimisation."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairclust.base import Diverged
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.bound import SMALL_ENTRIES, bound_loop
from fairclust.solvers.points import Points

# The published program keeps every s_pk at 1e-20 or above. Here the mass of a group in a cluster is at least this
# fraction of the group's mass.
_LEAST_SHARE = 1e-20
# The iteration ends when the bound changes by less than this fraction, as in the published program.
BOUND_TOL = 1e-5


class BoundSolution(NamedTuple):
    """The result of the bound iteration."""

    scale: float  # ``1 + t/L``
    offset: np.ndarray  # (n_groups, n_clusters); B
    mass: np.ndarray  # (n_groups, n_clusters); soft counts
    clustering: float  # ``sum_pk s_pk a_pk``
    n_iter: int


def fairness_term(mass: np.ndarray, target: np.ndarray) -> float:
    """Cross-entropy ``sum_k sum_j -mu_j log P(j|k)`` of equation 4, for (soft) counts (n_groups, n_clusters)."""
    return float(-(target[:, None] * np.log(mass / mass.sum(axis=0))).sum())


def bound_iteration(
    points: Points,
    *,
    lam: float,
    lipschitz: float,
    target: np.ndarray,
    max_iter: int,
    tol: float,
) -> BoundSolution:
    """The paper's inner loop (equation 13) on the group-by-cluster table instead of N x K rows.

    After t updates, with both terms divided by L as in the published program, ``log s_pk = -(1 + t/L) a_pk - B[g(p),
    k]`` plus a constant, B being the sum of ``(lam/L) b``. `tol` ends it by the change of the bound, from the third
    update on.
    """
    if isinstance(points, Potentials) and points.entries <= SMALL_ENTRIES:
        layout = points.layout
        scale, offset, mass, clustering, t, bound = bound_loop(
            points.a,
            layout.group,
            layout.count,
            points.row_min_sum,
            np.asarray(target, dtype=float),
            float(lam),
            float(lipschitz),
            max_iter,
            float(tol),
            _LEAST_SHARE,
        )
        if t and not np.isfinite(bound):
            raise _diverged(bound, t, lam)
        return BoundSolution(scale, offset, mass, clustering, t)
    offset = np.zeros((len(target), points.n_clusters))
    scale = 1.0
    mass, clustering, logsum = points.soft(scale, offset)
    floor = _LEAST_SHARE * mass.sum(axis=1, keepdims=True)
    mass = np.maximum(mass, floor)
    bound = np.inf
    t = 0
    while t < max_iter:
        b = 1.0 / mass.sum(axis=0) - target[:, None] / mass
        offset = offset + (lam / lipschitz) * b
        t += 1
        scale = 1.0 + t / lipschitz
        mass, clustering, new_logsum = points.soft(scale, offset)
        mass = np.maximum(mass, floor)
        # sum s log(s/s_in) + s (a + lam b), with log s = log s_in - (a + lam b)/L - log Z.
        linear = clustering + lam * float((mass * b).sum())
        new_bound = (1.0 - 1.0 / lipschitz) * linear - (new_logsum - logsum)
        if not np.isfinite(new_bound):
            raise _diverged(new_bound, t, lam)
        logsum = new_logsum
        if t > 2 and abs(new_bound - bound) <= tol * abs(bound):
            break
        bound = new_bound
    return BoundSolution(scale, offset, mass, clustering, t)


def _diverged(bound: float, t: int, lam: float) -> Diverged:
    return Diverged(f"the bound is {bound} after {t} inner updates (lam={lam:g})")
