"""Starts of mixtures: means of k-means, equal weights and unit variance, or the result of plain EM from there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairclust.base import initial_centers, is_mapped
from fairclust.kernels.mixture import MixtureTiles
from fairclust.solvers.lloyd import Lloyd
from fairclust.solvers.mixture import Family, Mixture
from fairclust.solvers.mixture_fit import FullData, plain_em
from fairclust.solvers.mixture_rows import Rows, as_index, at_most

# The most rows of a mapped file that k-means uses.
_START_ROWS = 200_000
_WARM_TOL = 1e-5


def start_mixture(
    rows: Rows,
    tiles: MixtureTiles,
    family: Family,
    n_clusters: int,
    init: Any,
    warm: bool,
    rng: np.random.RandomState,
) -> Mixture:
    """Parameters to start from.

    Parameters
    ----------
    rows : Rows
        All rows that are learned from. If they are mapped from a file, k-means uses 200,000 of them at most.
    tiles : MixtureTiles
        The rows that plain EM uses.
    family : Family
    n_clusters : int
    init : str or array-like of shape (n_clusters, n_numeric)
        Means; k-means finds them if it is a string.
    warm : bool
        Whether to run plain EM from these means.
    rng : RandomState

    Returns
    -------
    Mixture
    """
    n_numeric = family.n_numeric
    means, logits = np.zeros((n_clusters, 0)), rng.uniform(size=(n_clusters, family.n_levels))
    if n_numeric:
        limit = max(_START_ROWS, n_clusters) if is_mapped(rows.X) else len(rows.X)
        some = as_index(at_most(len(rows.X), limit, rng))
        if isinstance(init, str):
            points = rows.numeric(rows.X[some])
            centers = initial_centers(points, n_clusters, "k-means++", rng).astype(points.dtype)
            centers = Lloyd(n_clusters, init=centers, n_init=1, copy_x=False).fit(points).cluster_centers_
        else:
            given = rows.X[:0, rows.columns.numeric]
            centers = (initial_centers(given, n_clusters, init, rng) - rows.shift) / rows.unit
        means, logits = centers, np.zeros_like(logits)
    log_sd = np.zeros((1, 1) if family.shared else (n_clusters, n_numeric))
    mixture = Mixture(family, np.zeros(n_clusters), means, np.maximum(log_sd, family.min_log_sd), logits)
    if not warm:
        return mixture
    if not n_numeric:
        return plain_em(FullData(tiles), mixture, max_iter=200, tol=_WARM_TOL)[0]
    # Plain EM uses only the numeric columns. With the categories, its components could separate by them, and with them
    # by group, and later steps may not undo this.
    bare = Mixture(replace(family, sizes=()), mixture.eta, means, mixture.log_sd, np.zeros((n_clusters, 0)))
    numeric = replace(tiles, n_levels=0, codes=tiles.codes[:, :0], members=None)
    bare = plain_em(FullData(numeric), bare, max_iter=200, tol=_WARM_TOL)[0]
    return Mixture(family, bare.eta, bare.means, bare.log_sd, logits)
