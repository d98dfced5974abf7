"""Group prices for linear rows on the group-by-cluster table, by ascent of the dual function.

At fixed potentials the cheapest assignment whose table n satisfies ``G n = 0`` is a linear program over N x K
shares. Its dual has one multiplier per row: with the prices ``W = G'y``, of shape (n_groups, n_clusters),
``D(y) = sum_p min_k (a_pk + W[g(p), k])``. D is concave, one pass over the points evaluates it, and it is a
lower bound for every y. The min is smoothed by the softmin ``-T log sum_k exp(-. / T)`` and T is lowered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairclust.kernels.assignment import Potentials

# In units of the mean gap between a point's two smallest potentials.
START_LEVELS = (0.2, 0.04, 0.02)
_STEPS_PER_LEVEL = 12
_DAMPING = 1e-6


class Prices(NamedTuple):
    """Prices of the rows at the last temperature.

    Attributes
    ----------
    prices : ndarray of shape (n_groups, n_clusters)
    violation : float
        Largest absolute entry of ``G n`` for the soft table.
    n_passes : int
    """

    prices: np.ndarray
    violation: float
    n_passes: int


def temperature_unit(potentials: Potentials) -> float:
    """The scale of the potentials that temperatures are multiples of; positive."""
    unit = potentials.mean_gap()
    if unit <= 0:
        # Every point's two best clusters are level, as with equal centres or one cluster: any scale does.
        unit = float(potentials.a.mean(dtype=np.float64))
    return unit if unit > 0 else 1.0


def share_rows(shares: np.ndarray, n_clusters: int) -> np.ndarray:
    """Rows ``n_jk - shares_j sum_j' n_j'k`` for all groups but the last, whose rows follow from the others.

    Parameters
    ----------
    shares : ndarray of shape (n_groups,)
        Wanted share of each group in every cluster, positive.
    n_clusters : int

    Returns
    -------
    ndarray of shape ((n_groups - 1) * n_clusters, n_groups * n_clusters)
    """
    by_group = np.eye(len(shares)) - shares[:, None]
    return np.kron(by_group[:-1], np.eye(n_clusters))


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


def dual_prices(
    potentials: Potentials,
    rows: np.ndarray,
    *,
    start: np.ndarray | None = None,
    levels: tuple[float, ...] = START_LEVELS,
    max_steps: int = _STEPS_PER_LEVEL,
    tol: float = 1e-4,
) -> Prices:
    """Maximise the smoothed dual over the multipliers of ``rows @ n = 0`` by damped Newton steps.

    A step that lowers the dual is undone and the damping (Levenberg, Marquardt) raised tenfold: backtracking
    would fail where few points lie between two clusters and the curvature changes within a step.

    Parameters
    ----------
    potentials : Potentials
    rows : ndarray of shape (n_rows, n_groups * n_clusters)
        G; there must be tables that satisfy it, or the dual has no maximum.
    start : ndarray of shape (n_rows,), optional
        Multipliers to start from.
    levels : tuple of float
        Temperatures in units of `temperature_unit`, descending.
    max_steps : int
        Steps tried per temperature.
    tol : float
        A temperature is done when no row is violated by more than this share of all points.

    Returns
    -------
    Prices
    """
    shape = potentials.n_groups, potentials.a.shape[1]
    y = np.zeros(len(rows)) if start is None else start
    unit = temperature_unit(potentials)
    damping, n_passes = _DAMPING, 0
    slack = np.zeros(len(rows))
    if not rows.size:
        return Prices(np.zeros(shape), 0.0, 0)
    for level in levels:
        temperature = level * unit

        def evaluate(y: np.ndarray, temperature: float = temperature) -> tuple[float, np.ndarray, np.ndarray]:
            prices = (y @ rows).reshape(shape) / temperature
            mass, _, logsum, moments = potentials.soft_moments(1.0 / temperature, prices)
            return -temperature * logsum, mass, moments

        value, mass, moments = evaluate(y)
        n_passes += 1
        for _ in range(max_steps):
            slack = rows @ mass.ravel()
            if np.abs(slack).max() <= tol * len(potentials.layout.order):
                break
            hessian = rows @ curvature(mass, moments) @ rows.T / temperature
            # The unit matrix, too: prices that shift a whole group have no curvature at all.
            scale = max(float(hessian.diagonal().mean()), 1e-30)
            step = np.linalg.solve(hessian + damping * scale * np.eye(len(y)), slack)
            new_value, new_mass, new_moments = evaluate(y + step)
            n_passes += 1
            if new_value >= value:
                y, value, mass, moments = y + step, new_value, new_mass, new_moments
                damping = max(damping / 10, _DAMPING)
            else:
                damping *= 10
    return Prices((y @ rows).reshape(shape), float(np.abs(rows @ mass.ravel()).max()), n_passes)
