"""Fair k-medians by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from typing import Any, ClassVar

from fairclust.base import COUNT, at_least
from fairclust.methods._price import PriceClusterer
from fairclust.methods._prototypes import MedoidClusterer


class PriceFairKMedians(MedoidClusterer, PriceClusterer):
    """K-medians in which every cluster keeps a bound on its group shares, its balance or its gap.

    `PriceFairKMeans` with Euclidean distances, and with rows of X, the medoids of the clusters, as centres.

    Parameters
    ----------
    n_clusters : int, default=8
    exact_size, max_evaluations : int, default=20_000, 100
        As in `VariationalFairKMedians`.
    n_init : int, default=3
        As in `PriceFairKMeans`. The default is lower, because medoids take longer than means.
    tolerance, min_balance, max_gap, target, size_min, size_max, crossed, bins, mean_tolerance : optional
        As in `PriceFairKMeans`.
    max_cost, max_cost_increase : optional
        As in `PriceFairKMeans`.
    init, max_iter, tol, precision, verbose, random_state : optional
        As in `PriceFairKMeans`.

    Attributes
    ----------
    labels_, cluster_centers_, n_iter_, history_, groups_, scale_, offset_, converged_, n_rounded_
    cost_, lower_bound_, gap_, violation_, certificate_, tolerance_, tolerance_bound_
        As in `PriceFairKMeans`, with distances instead of squared ones.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The row of X of every centre; -1 for a centre that was never moved.
    medoid_gap_ : float
        As in `VariationalFairKMedians`.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PriceClusterer._parameter_constraints,
        "exact_size": at_least(0),
        "max_evaluations": COUNT,
    }

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        exact_size: int = 20_000,
        max_evaluations: int = 100,
        tolerance: Any = 0.0,
        min_balance: Any = None,
        max_gap: Any = None,
        target: Any = None,
        size_min: Any = None,
        size_max: Any = None,
        crossed: bool = False,
        bins: Any = None,
        mean_tolerance: Any = None,
        max_cost: float | None = None,
        max_cost_increase: float | None = None,
        init: Any = "k-means",
        n_init: int = 3,
        max_iter: int = 100,
        tol: float = 1e-5,
        precision: str = "single",
        verbose: int = 0,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_clusters,
            tolerance=tolerance,
            min_balance=min_balance,
            max_gap=max_gap,
            target=target,
            size_min=size_min,
            size_max=size_max,
            crossed=crossed,
            bins=bins,
            mean_tolerance=mean_tolerance,
            max_cost=max_cost,
            max_cost_increase=max_cost_increase,
            init=init,
            n_init=n_init,
            max_iter=max_iter,
            tol=tol,
            precision=precision,
            verbose=verbose,
            random_state=random_state,
        )
        self.exact_size = exact_size
        self.max_evaluations = max_evaluations
