"""The assignment steps of variational fair clustering: an equation in J x K prices, which Newton's method solves.

The penalty of equation 4 depends on the labels only through the group-by-cluster table n. At its minimum over
assignments every point takes ``argmin_k a_pk + W[g(p), k]`` with ``W = lam * b(n)``, where
``b_jk = 1 / n_k - mu_j / n_jk`` is the derivative of ``R(n) = sum_k (log n_k - sum_j mu_j log n_jk)``. This is
the fixed point that the paper's update (equation 13) approaches as its counter grows. The argmin is smoothed
by a softmin of temperature T, which makes a soft assignment s and its table n from the prices W. The smoothed energy
``E_T(W) = sum s a + T sum s log s + lam R(n)`` has the gradient ``-H (lam b - W) / T`` with H = `curvature`, and
Newton's method for the equation ``W = lam b(n(W))`` lowers it. T is lowered in a few levels. Each evaluation is one
pass over the points.

`newton_step` and, with the paper's update, `bound_step` take the points at fixed centres and the step before (None at
first), and return the next step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairclust.base import Diverged
from fairclust.kernels.bound import bound_iteration
from fairclust.kernels.points import Points
from fairclust.kernels.prices import curvature
from fairclust.solvers.alternation import Step, plain_step
from fairclust.solvers.criteria import exact_shares
from fairclust.solvers.prices import dual_prices, rounding_error, temperature_unit


class Effort(NamedTuple):
    """Temperatures, in units of the mean gap between a point's two smallest potentials, and the most passes at each."""

    levels: tuple[float, ...]
    max_passes: int


# The last temperature of a complete descent.
_COLDEST = 0.002
# Searches near old prices. One that takes longer than `_NEAR` is not worth its time, and a cold start is safer.
_STEP, _BRIEF, _NEAR = (Effort((_COLDEST,), most) for most in (1, 2, 15))
# Descents: from higher temperatures, one that ends early, for centres that will move, and one from the nearest centres.
_HEAT, _FIRST = Effort((0.02, 0.005, _COLDEST), 60), Effort((0.02, 0.005), 60)
_FROM_NEAREST = Effort((1.0, 0.25, 0.06, 0.02, 0.005, _COLDEST), 60)
_WORTH_HARDENING = 0.06
# Temperature and tolerance of the prices for proportional clusters, from which a cold start begins.
_FAIR_LEVELS, _FAIR_TOL = (0.1,), 1e-2
# This many points are added to every cluster, divided among the groups like the target shares. The penalty of an empty
# cell is then finite.
_PSEUDO_COUNT = 0.01
_ROUGH, _FINE = 1e-2, 1e-4
# A descent counts as converged if its last step is at most this long, in units of the mean gap.
_SMALL_STEP = 0.1
_SUFFICIENT = 1e-4
_SHORTEST_STEP = 1.0 / 64
# Prices that have not converged are accepted if the energy has fallen enough. With fewer than _MANY_POINTS points for
# each cell of the table, enough is the fraction _FALL of the clustering term. With more points, it is the fraction
# _FALL_OF_MANY after a single Newton step, and any fall after more passes. The second rule can end in worse minima if
# there are few points.
_FALL, _FALL_OF_MANY, _MANY_POINTS = 3e-5, 1e-5, 150
# In double precision, exp(-a) is zero from here on: half of the smallest positive number is rounded to zero.
_VANISHES = -float(np.log(np.finfo(float).smallest_subnormal) - np.log(2))
# An offset that no point pays.
_FORBIDDEN = float(np.finfo(np.float32).max) / 2


Targets = Sequence[tuple[np.ndarray, np.ndarray]]
"""For each sensitive column, a matrix of ones and zeros that says which groups have which value, shape (n_values,
n_groups), and the target shares U of the values, shape (n_values,)."""


def fairness_term(mass: np.ndarray, target: np.ndarray) -> float:
    """Cross-entropy ``sum_k sum_j -mu_j log P(j|k)`` of equation 4, for (soft) counts (n_groups, n_clusters)."""
    return float(-(target[:, None] * np.log(mass / mass.sum(axis=0))).sum())


def padded_fairness(counts: np.ndarray, targets: Targets) -> float:
    """Fairness term of equation 4, summed over the columns; finite also if a value is missing in a cluster."""
    return sum(
        fairness_term(members @ counts + _PSEUDO_COUNT * shares[:, None], shares)
        for members, shares in targets
    )


def penalty_slope(mass: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The derivative b of the fairness term R of a column with respect to its table, shape (n_values, n_clusters)."""
    padded = mass + _PSEUDO_COUNT * target[:, None]
    return 1.0 / padded.sum(axis=0) - target[:, None] / padded


class _Smoothed(NamedTuple):
    """E_T and its derivatives at prices W."""

    prices: np.ndarray
    mass: np.ndarray
    value: float
    noise: float
    residual: np.ndarray
    curvature: np.ndarray


def _evaluate(
    points: Points, prices: np.ndarray, temperature: float, lam: float, targets: Targets
) -> _Smoothed:
    mass, potential, logsum, moments = points.soft(1.0 / temperature, prices / temperature, curved=True)
    value = -temperature * logsum - float((mass * prices).sum()) + lam * padded_fairness(mass, targets)
    if not np.isfinite(value):
        raise Diverged(f"the smoothed energy is {value} at temperature {temperature:g} (lam={lam:g})")
    noise = rounding_error(points, mass, potential, prices)
    slope = sum(members.T @ penalty_slope(members @ mass, shares) for members, shares in targets)
    return _Smoothed(prices, mass, value, noise, lam * slope - prices, curvature(mass, moments))


def _penalty_hessian(mass: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Second derivative of R for each cluster, (n_clusters, n_values, n_values), positive semi-definite.

    Its concave part is scaled down for that. Second derivatives between different clusters are zero.
    """
    padded = mass + _PSEUDO_COUNT * target[:, None]
    sizes = padded.sum(axis=0)
    concave = 1.0 / sizes**2 / np.maximum(1.0, ((padded / sizes) ** 2 / target[:, None]).sum(axis=0))
    each = np.arange(len(mass))
    out = np.repeat(-concave, len(mass) ** 2).reshape(-1, len(mass), len(mass))
    out[:, each, each] += (target[:, None] / padded**2).T
    return out


def _newton(
    points: Points,
    prices: np.ndarray,
    level: float,
    unit: float,
    tol: float,
    max_passes: int,
    lam: float,
    targets: Targets,
) -> tuple[np.ndarray, int, bool]:
    """Newton steps with a line search at one temperature. Returns prices, number of passes and whether it converged.

    If `max_passes` is 1, the step is not checked: the caller must compare the energy of its labels.
    """
    temperature = level * unit
    enough = tol * points.n_samples * temperature
    current = _evaluate(points, prices, temperature, lam, targets)
    n_passes = 1
    while n_passes < max(max_passes, 2):
        hessian = sum(
            members.T @ _penalty_hessian(members @ current.mass, shares) @ members
            for members, shares in targets
        )
        # Row (j, k) and column (i, l) of the product of the two block diagonal matrices.
        slope = np.einsum("kji,ikl->jkil", hessian, current.curvature)
        slope = (lam / temperature) * slope.reshape(prices.size, prices.size)
        try:
            step = np.linalg.solve(np.eye(prices.size) + slope, current.residual.ravel())
        except np.linalg.LinAlgError:
            # The penalty is so much larger than the potentials that the system is singular up to rounding errors.
            break
        by_group = step.reshape(prices.shape)
        decrease = float(np.einsum("jk,jkl,jl", current.residual, current.curvature, by_group)) / temperature
        if decrease <= max(enough, 2 * current.noise):
            # The step is expected to gain nothing. If it is long, this is not a minimum: at these prices no point is
            # near a boundary, so the energy is flat.
            centred = by_group - by_group.mean(axis=1, keepdims=True)
            return current.prices, n_passes, bool(np.abs(centred).max() <= _SMALL_STEP * unit)
        if max_passes == 1:
            return current.prices + by_group, n_passes, False
        length = 1.0
        while length >= _SHORTEST_STEP:
            trial = current.prices + length * by_group
            new = _evaluate(points, trial, temperature, lam, targets)
            n_passes += 1
            falls = new.value <= current.value - _SUFFICIENT * length * decrease + current.noise
            # The energy has further minima at the border of its domain, where a cluster is empty. To stay away from
            # them, every cluster must keep half of its mass in a step, and every cell a tenth.
            lasts = (2 * new.mass.sum(axis=0) >= current.mass.sum(axis=0)).all()
            if falls and lasts and (10 * new.mass >= current.mass).all():
                break
            length /= 2
        else:
            break
        current = new
    return current.prices, n_passes, False


def _descend(
    points: Points,
    prices: np.ndarray,
    effort: Effort,
    unit: float,
    lam: float,
    targets: Targets,
) -> Step:
    """Newton's method at one temperature after the other. Returns the best of the labels found on the way."""
    solutions, n_passes = [], 0
    for level in effort.levels:
        tol = _FINE if level == _COLDEST else _ROUGH
        prices, passes, converged = _newton(points, prices, level, unit, tol, effort.max_passes, lam, targets)
        n_passes += passes
        # Where cells have few points, the labels of the lowest temperature are not always the best.
        if level <= _WORTH_HARDENING:
            solutions.append(_harden(points, prices, lam, targets))
    best = min(solutions, key=_rank)
    return best._replace(n_passes=n_passes + len(solutions), converged=converged, state=unit)


def _harden(points: Points, prices: np.ndarray, lam: float, targets: Targets) -> Step:
    """The step whose labels are the argmin at the prices. Its fairness term is that of the padded counts."""
    labels, counts, clustering = points.hard(1.0, prices)
    fairness = padded_fairness(counts, targets)
    return Step(labels, counts, 1.0, prices, clustering + lam * fairness, clustering, fairness, 1)


def _rank(step: Step) -> tuple[int, float]:
    """Sort key. Fewer empty clusters come first, because the energy does not penalise them."""
    return step.n_empty, step.objective


def minimize_penalty(
    points: Points,
    *,
    lam: float,
    targets: Targets,
    start: np.ndarray | None = None,
    effort: Effort = _NEAR,
    unit: float | None = None,
) -> Step:
    """Minimise clustering term plus `lam` times fairness term (equation 4) over assignments.

    This is not convex, so the start decides. Without `start`, the search begins at exactly proportional clusters, and
    again at zero prices and a high temperature if that fails. Among the solutions with the fewest empty clusters, the
    best one. The state of the step is `unit`, the scale of the temperatures.
    """
    _check_finite(points, lam)
    shape = points.n_groups, points.n_clusters
    if lam == 0 or min(shape) == 1:
        return _harden(points, np.zeros(shape), lam, targets)
    unit = unit or temperature_unit(points)
    if start is not None:
        return _descend(points, start, effort, unit, lam, targets)
    sizes = points.group_sizes
    # All clusters can have the shares of the data, but not those of every target.
    fair = dual_prices(points, exact_shares(sizes / sizes.sum()), levels=_FAIR_LEVELS, tol=_FAIR_TOL)
    first = effort is _FIRST
    best = _descend(points, fair.prices, _FIRST if first else _HEAT, unit, lam, targets)
    n_passes = fair.n_passes + best.n_passes
    if not (best.converged or first) or (best.counts == 0).any():
        other = _descend(points, np.zeros(shape), _FROM_NEAREST, unit, lam, targets)
        n_passes += other.n_passes
        best = min(best, other, key=_rank)
    return best._replace(n_passes=n_passes)


def _check_finite(points: Points, lam: float) -> None:
    if not np.isfinite(points.row_min_sum):
        raise Diverged(f"the potentials sum to {points.row_min_sum} (lam={lam:g})")


def bound_step(
    points: Points, last: Step | None, *, lam: float, lipschitz: float, target: np.ndarray
) -> Step:
    """The paper's step, from a cold start. Its objective is the energy of the soft assignment.

    The published program begins with exp(-a) divided by its sum over the clusters. If this sum is zero for a row, as
    for far outliers that are not scaled to unit length, all numbers become NaN and every point goes to cluster 0.
    """
    if lam == 0:
        return plain_step(points, last)
    _check_finite(points, lam)
    if n_vanished := points.n_beyond(_VANISHES):
        offset = np.zeros((points.n_groups, points.n_clusters))
        offset[:, 1:] = _FORBIDDEN
        labels, counts, cost = points.hard(1.0, offset)
        return Step(labels, counts, 1.0, offset, np.nan, cost, np.nan, 0, more={"n_vanished": n_vanished})
    n_iter, offset, mass, clustering, bound = bound_iteration(
        points, lam=lam, lipschitz=lipschitz, target=target
    )
    if not np.isfinite(bound):
        raise Diverged(f"the bound is {bound} after {n_iter} inner updates (lam={lam:g})")
    fairness, scale = fairness_term(mass, target), 1.0 + n_iter / lipschitz
    labels, counts, _ = points.hard(scale, offset)
    energy = clustering + lam * fairness
    return Step(labels, counts, scale, offset, energy, clustering, fairness, n_iter)


def newton_step(
    points: Points,
    last: Step | None,
    *,
    lam: float,
    targets: Targets,
    prices: np.ndarray | None,
    hurried: bool = False,
) -> Step | None:
    """Newton's method from the prices of the last step or from a cold start.

    At the first step, it starts from `prices` if given. `hurried` says that the first centres will move far, so that
    exact prices for them are a waste of time: with many points, a cold first step then ends early. Returns None if no
    result is as good as the last step.
    """
    most_empty, most = (points.n_clusters, np.inf) if last is None else (last.n_empty, last.objective)
    empty_cells = 0 if last is None else (last.counts == 0).sum()
    many = points.n_samples >= _MANY_POINTS * points.n_groups * points.n_clusters
    if last is not None:
        prices = last.offset
    cold = _FIRST if hurried and last is None and many else _NEAR
    starts: list[tuple[np.ndarray | None, Effort]] = [(None, cold)]
    if prices is not None:
        starts.insert(0, (prices, _NEAR))
    if last is not None:
        # If the centres have moved far, a cold start may end in a worse minimum than the last prices.
        starts.append((last.offset, _HEAT))
        starts.insert(0, (last.offset, _STEP if many else _BRIEF))
    tried: list[Step] = []
    for start, effort in starts:
        # As long as single Newton steps succeed, the scale of the temperatures need not be measured again.
        state = None if last is None else last.state
        unit = float(state) if state is not None and effort is _STEP else None
        solution = minimize_penalty(points, lam=lam, targets=targets, start=start, effort=effort, unit=unit)
        tried.append(solution)
        # A warm start may not get away from its start, or it may empty some cells. As long as the energy falls, a
        # result that has not converged is good enough to continue from.
        least_fall = _FALL
        if many:
            least_fall = _FALL_OF_MANY if effort is _STEP else 0.0
        falls = last is not None and solution.objective <= most - least_fall * solution.clustering
        sound = start is None or (
            (solution.converged or falls) and (solution.counts == 0).sum() <= empty_cells
        )
        # The energy does not penalise empty clusters, so their number is compared as well.
        if sound and solution.n_empty <= most_empty and solution.objective <= most:
            break
    n_passes = sum(solution.n_passes for solution in tried)
    solution = min(tried, key=_rank)
    if solution.n_empty > most_empty or solution.objective > most:
        return None
    return solution._replace(n_passes=n_passes)
