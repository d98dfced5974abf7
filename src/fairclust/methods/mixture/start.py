"""Starts of mixtures: means of k-means, equal weights and unit variance, or the result of plain EM.

The authors' published program has a start of its own, which is plain EM from the labels of k-means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from fairclust.base import initial_centers, is_mapped
from fairclust.kernels.mixture import MixtureTiles, Moments
from fairclust.methods.mixture.fit import Objective, Trace, plain_em
from fairclust.methods.mixture.parameters import Family, Mixture
from fairclust.methods.mixture.rows import Columns
from fairclust.solvers.lloyd import Lloyd

# The most rows of a mapped file that k-means uses.
_START_ROWS = 200_000
_WARM_ROUNDS, _WARM_TOL = 200, 1e-5
# The rounds of plain EM on categories, and its tolerance, in the authors' program.
_CATEGORY_ROUNDS, _CATEGORY_TOL = 6, 1e-2


def start_mixture(
    X: np.ndarray,
    columns: Columns,
    tiles: MixtureTiles,
    family: Family,
    n_clusters: int,
    init: Any,
    rng: np.random.RandomState,
    *,
    reference: bool,
) -> Mixture:
    """Parameters to start from: the means of `init`, or of k-means if it is a string, and plain EM from them for "em".

    Of rows that are mapped from a file, k-means uses 200,000 at most. Plain EM with `reference` is that of the authors'
    program, and k-means with `reference` is the start of their paper's text.
    """
    n_numeric = len(columns.numeric)
    means, logits = np.zeros((n_clusters, 0)), rng.uniform(size=(n_clusters, family.n_levels))
    points = np.zeros((0, n_numeric))
    if n_numeric:
        n, most = len(X), max(_START_ROWS, n_clusters)
        few = is_mapped(X) and n > most
        points = columns.points(X[np.sort(rng.choice(n, most, replace=False))] if few else X)
        if isinstance(init, str):
            centers = initial_centers(points, n_clusters, "k-means++", rng).astype(points.dtype)
            means = Lloyd(n_clusters, init=centers, n_init=1, copy_x=False).fit(points).cluster_centers_
        else:
            given = X[:0, columns.numeric]
            means = (initial_centers(given, n_clusters, init, rng) - columns.shift) / columns.unit
        if not reference:
            logits = np.zeros_like(logits)
    log_sd = np.zeros((1, 1) if family.shared else (n_clusters, n_numeric))
    mixture = Mixture(family, np.zeros(n_clusters), means, np.maximum(log_sd, family.min_log_sd), logits)
    if not (isinstance(init, str) and init == "em"):
        return mixture
    if reference:
        return _start_of_program(tiles, mixture, points, rng)
    if not n_numeric:
        return _warm(tiles, mixture)[0]
    # Plain EM uses only the numeric columns. With the categories, its components could separate by them, and with them
    # by group, and later steps may not undo this.
    bare, _ = _warm(*_numeric_part(tiles, mixture))
    return replace(bare, family=family, logits=logits)


def _warm(
    tiles: MixtureTiles, mixture: Mixture, max_iter: int = _WARM_ROUNDS, tol: float = _WARM_TOL
) -> tuple[Mixture, bool]:
    """Plain EM, and whether it converged."""
    trace = Trace()
    return plain_em(Objective(tiles), mixture, trace, max_iter=max_iter, tol=tol), trace.converged


def _numeric_part(tiles: MixtureTiles, mixture: Mixture) -> tuple[MixtureTiles, Mixture]:
    family = replace(mixture.family, sizes=())
    bare = replace(mixture, family=family, logits=np.zeros((mixture.n_clusters, 0)))
    rows = tiles.rows._replace(codes=tiles.rows.codes[:, :0])
    return replace(tiles, rows=rows, members=np.zeros((1, 1), np.int32)), bare


def _start_of_program(
    tiles: MixtureTiles, mixture: Mixture, points: np.ndarray, rng: np.random.RandomState
) -> Mixture:
    """Plain EM of the numeric columns from hard labels, and of the categories from random parameters.

    Of the categories only the weights are kept, and averaged with those of the numeric columns. The probabilities are
    equal.
    """
    family, n_clusters = mixture.family, mixture.n_clusters
    weights = []
    if mixture.means.shape[1]:
        numeric, bare = _numeric_part(tiles, mixture)
        bare = bare.maximum(
            _moments_of_labels(points, pairwise_distances_argmin(points, bare.means), bare.means)
        )
        bare, converged = _warm(numeric, bare)
        if converged:
            # The program finishes the round in which it finds that EM has converged.
            bare = bare.maximum(Objective(numeric).expect(bare)[0])
        mixture = replace(mixture, means=bare.means, log_sd=bare.log_sd)
        weights.append(np.exp(bare.log_weights))
    if family.sizes:
        only = replace(family, shared=True, min_log_sd=0.0)
        drawn = rng.standard_normal((n_clusters, 1 + family.n_levels))
        free = Mixture(only, drawn[:, 0], np.zeros((n_clusters, 0)), np.zeros((1, 1)), drawn[:, 1:])
        codes = replace(tiles, rows=tiles.rows._replace(points=tiles.rows.points[:, :0]))
        free, _ = _warm(codes, free, _CATEGORY_ROUNDS, _CATEGORY_TOL)
        weights.append(np.exp(free.log_weights))
    return replace(mixture, eta=np.log(np.mean(weights, axis=0)), logits=np.zeros_like(mixture.logits))


def _moments_of_labels(points: np.ndarray, labels: np.ndarray, means: np.ndarray) -> Moments:
    n_clusters, n = len(means), len(points)
    away = points - means[labels]
    first, second = (
        np.stack([np.bincount(labels, column, n_clusters) for column in values.T], axis=1) / n
        for values in (away, away**2)
    )
    weight = np.bincount(labels, minlength=n_clusters) / n
    return Moments(weight, first, second, np.zeros((n_clusters, 0)))
