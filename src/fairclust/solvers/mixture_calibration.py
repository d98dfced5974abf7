"""Fair hard labels of a mixture by shifted log weights."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from fairclust.kernels.mixture import MixtureTiles
from fairclust.metrics import delta
from fairclust.solvers.mixture import Mixture

_TEMPERATURES = (0.3, 0.1, 0.03, 0.01)


def calibrated(tiles: MixtureTiles, sizes: np.ndarray, mixture: Mixture) -> np.ndarray:
    """Shifts of the log weights that make hard labels fair, found at falling temperatures; zeros if nothing is better.

    They minimise the sum of squares of ``log(M_jk / mean_j M_jk)``, because plain differences of M vanish for a
    component that loses its points. They are kept if Delta of the hard labels falls and no cluster loses all its
    points.
    """

    psi = tiles.room(mixture.n_clusters)

    def squares(offset: np.ndarray, sharpness: float) -> tuple[float, np.ndarray]:
        components = mixture.components(offset)
        M = tiles.table(components, sharpness=sharpness, with_logsum=False, psi=psi)[0] / sizes[:, None]
        M = np.maximum(M, 1e-9)
        mean = M.mean(axis=0)
        logs = np.log(M / mean)
        by_M = 2 * (logs / M - logs.mean(axis=0) / mean)
        C = by_M / sizes[:, None]
        moved = tiles.moments(components, alpha=0.0, C=C, sharpness=sharpness, psi=psi)[0]
        return float((logs**2).sum()), sharpness * moved.weight

    best = np.zeros(mixture.n_clusters)
    table = tiles.hard_table(mixture.components(best))
    offset, least, n_nonempty = best, delta(table), (table.sum(axis=0) > 0).sum()
    for temperature in _TEMPERATURES:
        found = minimize(squares, offset, (1 / temperature,), "BFGS", jac=True, options={"maxiter": 50})
        offset = found.x - found.x.mean()
        table = tiles.hard_table(mixture.components(offset))
        if delta(table) < least and (table.sum(axis=0) > 0).sum() >= n_nonempty:
            best, least = offset, delta(table)
    return best
