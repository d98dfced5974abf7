"""Fair k-medians by group prices: exact bounds on shares and sizes, with a certificate."""

from __future__ import annotations

from dataclasses import dataclass

from fairclust.methods._prototypes import MedoidClusterer
from fairclust.methods.price.price_kmeans import PriceFairKMeans


@dataclass(eq=False, repr=False, kw_only=True)
class PriceFairKMedians(MedoidClusterer, PriceFairKMeans):
    """K-medians in which every cluster keeps a bound on its group shares, its balance or its gap.

    `PriceFairKMeans` with Euclidean distances, and with rows of X, the medoids of the clusters, as centres.

    Parameters
    ----------
    n_clusters : int, default=8
    n_init, search : int, default=3, bool, default=False
        As in `PriceFairKMeans`, with other defaults, because medoids take longer than means.
    tolerance, min_balance, max_gap, target, size_min, size_max, crossed, bins, mean_tolerance : optional
        As in `PriceFairKMeans`.
    max_cost, max_cost_increase : optional
        As in `PriceFairKMeans`.
    init, metric, max_iter, tol, precision, verbose, random_state : optional
        As in `PriceFairKMeans`.

    Attributes
    ----------
    labels_, cluster_centers_, n_iter_, history_, groups_, scale_, offset_, converged_, n_rounded_
    cost_, lower_bound_, gap_, violation_, certificate_, spread_, n_finished_, tolerance_,
    tolerance_bound_
        As in `PriceFairKMeans`, with distances instead of squared ones.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The row of X of every centre; -1 for a centre that was never moved.
    medoid_gap_ : float
        As in `VariationalFairKMedians`.
    """

    n_init: int = 3
    search: bool = False
