"""Fits for a grid of weights `lam` from the same starting centres, and the smallest `lam` that is fair enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from fairclust.methods._variational import Start, VariationalClusterer
from fairclust.metrics.counts import contingency
from fairclust.metrics.fairness import fairness_error as fairness_error_of
from fairclust.solvers.alternation import Prototypes


@dataclass(frozen=True)
class LamPath:
    """Fits along a grid of `lam`.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
        Ascending.
    estimators : list
        The fitted estimators, one for each `lam`.
    fairness_errors : ndarray of shape (n_lams,)
        ``sum_k KL(U || P_k)`` of the labels of each fit.
    best : int or None
        Index of the smallest `lam` whose fairness error is within the bound. None if there is none, or if no
        bound was given.
    """

    lams: np.ndarray
    estimators: list[VariationalClusterer]
    fairness_errors: np.ndarray
    best: int | None


def lam_path(
    estimator: VariationalClusterer,
    X: Any,
    lams: Sequence[float],
    *,
    sensitive_features: Any,
    fairness_error: float | None = None,
    warm_start: bool = False,
) -> LamPath:
    """Fit a clone of `estimator` for every `lam`, as the paper does to choose its trade-off.

    All fits share the packed rows and the starting centres.

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
    start: Start | None = None
    models: list[VariationalClusterer] = []
    errors = []
    for lam in grid:
        model = clone(estimator).set_params(lam=float(lam))
        rows, codes = model._check_input(X, sensitive_features)
        start = model._start(rows, codes) if start is None else start
        if warm_start and models:
            before = models[-1]
            # A cluster that runs empty keeps its medoid, and so needs the row of it.
            prototypes = Prototypes(before.cluster_centers_, getattr(before, "medoid_indices_", None))
            prices = None if model.match_reference else before.offset_
            start = start._replace(prototypes=prototypes, prices=prices)
        model._fit_from(start, codes)
        models.append(model)
        table = contingency(model.labels_, codes, model.n_clusters, len(model.groups_))
        errors.append(fairness_error_of(table, model.target_))
    fair = np.flatnonzero(np.array(errors) <= (-1.0 if fairness_error is None else fairness_error))
    return LamPath(grid, models, np.array(errors), int(fair[0]) if len(fair) else None)
