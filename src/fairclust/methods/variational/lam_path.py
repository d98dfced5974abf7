"""Fits for a grid of weights `lam` from the same starting centres, and the smallest `lam` that is fair enough."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fairclust.methods._levels import LEVELS
from fairclust.methods.variational.variational_kmeans import VariationalFairKMeans
from fairclust.metrics.counts import contingency
from fairclust.metrics.fairness import fairness_error as fairness_error_of


@dataclass(frozen=True)
class LamPath:
    """Fits along a grid of `lam`: the ascending `lams`, the fitted `estimators` and their `fairness_errors`.

    A fairness error is ``sum_k KL(U || P_k)`` of the labels. `best` is the index of the smallest `lam` whose fairness
    error is within the bound. It is None if there is none, or if no bound was given.
    """

    lams: np.ndarray
    estimators: list[VariationalFairKMeans]
    fairness_errors: np.ndarray
    best: int | None


def lam_path(
    estimator: VariationalFairKMeans,
    X: Any,
    lams: Sequence[float],
    *,
    sensitive_features: Any,
    fairness_error: float | None = None,
    warm_start: bool = False,
) -> LamPath:
    """Fit a clone of `estimator` for every `lam`, as the paper does to choose its trade-off.

    All fits use the same packed rows and, without `warm_start`, the same starting centres.

    Parameters
    ----------
    estimator : VariationalFairKMeans or VariationalFairKMedians
        Its own `lam` is ignored.
    X : array-like of shape (n_samples, n_features)
    lams : sequence of float
        Sorted before use.
    sensitive_features : array-like of shape (n_samples,)
        The group of every row.
    fairness_error : float, optional
        Largest fairness error that the fit `best` may have.
    warm_start : bool, default=False
        Start each fit from the centres and prices of the one before. The paper does not.

    Returns
    -------
    LamPath

    Raises
    ------
    ValueError
        As for `fit` of the estimator.

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021.
    """
    grid = np.sort(np.asarray(lams, dtype=float))
    plain = clone(estimator).set_params(lam=0.0, **dict.fromkeys(LEVELS))
    X, codes = plain._check_input(X, sensitive_features)
    plain._frame = plain._framing(X)
    rows = plain._frame.into(X)
    start = first = plain._start(rows, codes)
    plain._set_target(codes)
    models: list[VariationalFairKMeans] = []
    errors = []
    for lam in grid:
        model = copy(plain).set_params(lam=float(lam))
        model._fit_from(start, codes, model._framed_weight(float(lam), rows.shape[0]))
        model._complain_of_moving()
        start = model._warmed(first) if warm_start else first
        model._restore(X)
        models.append(model)
        table = contingency(model.labels_, codes, model.n_clusters, len(model.groups_))
        errors.append(fairness_error_of(table, model.target_))
    fair = np.flatnonzero(np.array(errors) <= (-1.0 if fairness_error is None else fairness_error))
    return LamPath(grid, models, np.array(errors), int(fair[0]) if len(fair) else None)
