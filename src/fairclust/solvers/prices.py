"""Group prices for linear rows on the group-by-cluster table, by ascent of the dual function.

At fixed potentials the cheapest assignment whose table n satisfies ``G n + B v <= h`` (or ``= h``) is a
linear program over N x K shares. Its dual has one multiplier per row, y >= 0 (free for equalities) with
``B'y = 0``: with the prices ``W = G'y``, of shape (n_groups, n_clusters),
``D(y) = sum_p min_k (a_pk + W[g(p), k]) - h'y``. D is concave, one pass over the points evaluates it, and it
is a lower bound for every such y. The min is smoothed by the softmin ``-T log sum_k exp(-. / T)`` and T is
lowered. A step maximises the quadratic model of the smoothed dual over all y allowed, so that which rows bind
need not be guessed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lu_factor, lu_solve

from fairclust.kernels.assignment import Potentials
from fairclust.solvers.criteria import Criterion

# In units of the mean gap between a point's two smallest potentials.
START_LEVELS = (0.2, 0.04, 0.02)
_STEPS_PER_LEVEL = 12
# Of sums of softmax rows, relative to the sum: terms round either way.
ROUNDING = {"f": 1e-7, "d": 1e-14}
_DAMPING = 1e-6
_SHORTEN = 1e4
_INTERIOR_STEPS = 60


class Prices(NamedTuple):
    """Prices of the rows at the last temperature.

    Attributes
    ----------
    prices : ndarray of shape (n_groups, n_clusters)
    multipliers : ndarray of shape (n_rows, n_clusters)
    mass : ndarray of shape (n_groups, n_clusters)
        The soft table.
    cost : float
        Potentials of the soft assignment.
    violation : float
        How far the soft table is from its bounds, in points: the largest entry of the criterion's excess.
    error : float
        How far from the optimum, in points: the violation, or what rows that are not tight have for a price,
        in units, if that is more.
    n_passes : int
    converged : bool
    """

    prices: np.ndarray
    multipliers: np.ndarray
    mass: np.ndarray
    cost: float
    violation: float
    error: float
    n_passes: int
    converged: bool


def temperature_unit(potentials: Potentials) -> float:
    """The scale of the potentials that temperatures are multiples of; positive."""
    unit = potentials.mean_gap()
    if unit <= 0:
        # Every point's two best clusters are level, as with equal centres or one cluster: any scale does.
        unit = float(potentials.a.mean(dtype=np.float64))
    return unit if unit > 0 else 1.0


def curvature(mass: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Minus T times the derivative of the soft table by the prices: ``diag(n_j) - M_j`` for each group j.

    Returns
    -------
    ndarray of shape (n_groups * n_clusters, n_groups * n_clusters)
        Positive semi-definite, one block per group.
    """
    n_groups, n_clusters = mass.shape
    out = np.zeros((n_groups, n_clusters, n_groups, n_clusters))
    for j in range(n_groups):
        out[j, :, j, :] = np.diag(mass[j]) - moments[j]
    return out.reshape(mass.size, mass.size)


def complementary(M: np.ndarray, q: np.ndarray, B: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The y >= 0 with ``B'y = 0`` that minimises ``y'M y / 2 + q'y``, by Mehrotra's interior point method.

    Parameters
    ----------
    M : ndarray of shape (n, n)
        Positive definite.
    q : ndarray of shape (n,)
        M, q and the solution should be of order one.
    B : ndarray of shape (n, m)
        Of full column rank, or m = 0; some positive y has ``B'y = 0``.
    y : ndarray of shape (n,)
        Where to start from.

    Returns
    -------
    ndarray of shape (n,)
        Positive, those that should be zero about 1e-12.
    """
    n, m = B.shape
    y = np.maximum(y, 0.1)
    v = np.zeros(m)
    s = np.maximum(M @ y + q, 0.1)
    system = np.zeros((n + m, n + m))
    system[:n, n:] = B
    system[n:, :n] = B.T
    for _ in range(_INTERIOR_STEPS):
        # M y + q + B v - s = 0,  B'y = 0,  y s = 0.
        dual, primal, gap = M @ y + q + B @ v - s, B.T @ y, float(y @ s) / n
        if gap <= 1e-12 and max(np.abs(dual).max(), np.abs(primal).max(initial=0.0)) <= 1e-9:
            break
        system[:n, :n] = M + np.diag(s / y)
        factors = lu_factor(system, check_finite=False)
        # Steps for y ds + s dy = target - y s: first to zero, to see how far that gets, then to where it may.
        target = np.zeros(n)
        for last in (False, True):
            right = np.concatenate([target / y - s - dual, -primal])
            solved = lu_solve(factors, right, check_finite=False)
            dy, dv = solved[:n], solved[n:]
            ds = (target - s * dy) / y - s
            step = _longest(y, dy, s, ds)
            if not last:
                after = float((y + step * dy) @ (s + step * ds)) / n
                target = max((after / gap) ** 3, 1e-3) * gap - dy * ds
        step = min(1.0, 0.995 * step)
        y, v, s = y + step * dy, v + step * dv, s + step * ds
    return y


def _longest(y: np.ndarray, dy: np.ndarray, s: np.ndarray, ds: np.ndarray) -> float:
    """The longest step, at most 1 / 0.995, that keeps y and s non-negative."""
    most = 1 / 0.995
    for at, by in ((y, dy), (s, ds)):
        down = by < 0
        if down.any():
            # Never zero in the division: what falls slower than this reaches nothing.
            most = min(most, float((at[down] / np.maximum(-by[down], 1e-300)).min()))
    return most


def dual_prices(
    potentials: Potentials,
    criterion: Criterion,
    *,
    start: np.ndarray | None = None,
    levels: tuple[float, ...] = START_LEVELS,
    max_steps: int = _STEPS_PER_LEVEL,
    tol: float = 1e-4,
) -> Prices:
    """Maximise the smoothed dual over the multipliers of the criterion's rows by damped Newton steps.

    A step that lowers the dual is undone and the damping (Levenberg, Marquardt) raised tenfold: backtracking
    would fail where few points lie between two clusters and the curvature changes within a step.

    Parameters
    ----------
    potentials : Potentials
    criterion : Criterion
        There must be tables that satisfy it, or the dual has no maximum.
    start : ndarray of shape (n_rows, n_clusters), optional
        Multipliers to start from.
    levels : tuple of float
        Temperatures in units of `temperature_unit`, descending.
    max_steps : int
        Steps tried per temperature.
    tol : float
        A temperature is done when the table is off its bounds by at most this share of all points (or by
        1e-4 of a point), and rows that are not tight have no price, in the same measure.

    Returns
    -------
    Prices
    """
    n_points, n_clusters = len(potentials.layout.order), potentials.a.shape[1]
    shape = potentials.n_groups, n_clusters
    y = np.zeros((len(criterion.rows), n_clusters)) if start is None else start
    unit = temperature_unit(potentials)
    enough = max(tol * n_points, 1e-4)
    if not criterion.rows.size:
        _, mass, cost, _ = potentials.priced(np.zeros(shape))
        return Prices(np.zeros(shape), y, mass, cost, float(criterion.excess(mass).max()), 0.0, 1, True)
    damping, n_passes = _DAMPING, 0
    for level in levels:
        temperature = level * unit

        def evaluate(y: np.ndarray, temperature: float = temperature) -> _Smoothed:
            return _evaluate(potentials, criterion, y, temperature, unit)

        at = evaluate(y)
        n_passes += 1
        for _ in range(max_steps):
            if at.error <= enough:
                break
            new = evaluate(_newton_step(criterion, at, temperature, damping, unit, n_points))
            n_passes += 1
            # Where the dual is level up to rounding, a smaller error decides.
            if new.value >= at.value or (new.value >= at.value - at.noise and new.error < at.error):
                at = new
                damping = max(damping / 10, _DAMPING)
            else:
                damping *= 10
        y = at.multipliers
    return Prices(
        criterion.prices(y), y, at.mass, at.cost, at.violation, at.error, n_passes, at.error <= enough
    )


class _Smoothed(NamedTuple):
    """The smoothed dual at some multipliers, and its derivatives."""

    multipliers: np.ndarray
    value: float
    noise: float
    mass: np.ndarray
    cost: float
    moments: np.ndarray
    violation: float
    error: float


def _evaluate(
    potentials: Potentials, criterion: Criterion, y: np.ndarray, temperature: float, unit: float
) -> _Smoothed:
    prices = criterion.prices(y)
    mass, cost, logsum, moments = potentials.soft_moments(1.0 / temperature, prices / temperature)
    limits = float((criterion.limits[:, None] * y).sum())
    violation = float(criterion.excess(mass).max())
    unpaid = 0.0 if criterion.equal else abs(limits - float((prices * mass).sum()))
    paid = float((mass * (prices - prices.min(axis=1, keepdims=True))).sum())
    noise = ROUNDING[potentials.a.dtype.char] * (cost - potentials.row_min_sum + paid)
    error = max(violation, unpaid / unit)
    return _Smoothed(y, -temperature * logsum - limits, noise, mass, cost, moments, violation, error)


def _newton_step(
    criterion: Criterion, at: _Smoothed, temperature: float, damping: float, unit: float, n_points: int
) -> np.ndarray:
    """Multipliers that maximise the quadratic model of the smoothed dual, less the damping."""
    y, mass = at.multipliers, at.mass
    rows, n_clusters = criterion.rows, mass.shape[1]
    by_group = -at.moments
    by_group[:, np.arange(n_clusters), np.arange(n_clusters)] += mass
    hessian = np.einsum("rj,sj,jkl->rksl", rows, rows, by_group, optimize=True).reshape(y.size, y.size)
    hessian /= temperature
    slack = (rows @ mass - criterion.limits[:, None]).ravel()
    # The unit matrix, too: prices that shift a whole group have no curvature at all, and none have any where
    # every point is far from level. The second part keeps steps below a hundred units, and it vanishes in the
    # end, with the violation (not the slack: that of a row far from its limit is large and says nothing).
    ridge = float(hessian.diagonal().mean()) + _SHORTEN * at.violation / unit
    hessian[np.diag_indices(y.size)] += damping * ridge
    if criterion.equal:
        return y + np.linalg.solve(hessian, slack).reshape(y.shape)
    # Shares of the points and multiples of the unit: all of order one.
    M = hessian * (unit / n_points)
    z = y.ravel() / unit
    q = -slack / n_points - M @ z
    helpers = np.kron(criterion.helpers, np.eye(n_clusters))
    return unit * complementary(M, q, helpers, z).reshape(y.shape)
