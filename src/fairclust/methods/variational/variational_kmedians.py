"""Variational fair clustering (Ziko et al., AAAI 2021) for k-medians."""

from __future__ import annotations

from dataclasses import dataclass

from fairclust.methods._prototypes import MedoidClusterer
from fairclust.methods.variational.variational_kmeans import VariationalFairKMeans


@dataclass(eq=False, repr=False)
class VariationalFairKMedians(MedoidClusterer, VariationalFairKMeans):
    """K-medians with the Kullback-Leibler fairness penalty.

    Minimises ``sum_pk s_pk ||x_p - c_k|| + lam * sum_k KL(U || P_k)`` (equation 2 with the Euclidean
    distance, Table 1), where every centre c_k is a row of X, the medoid of its cluster.

    Parameters
    ----------
    n_clusters : int, default=8
    lam, max_fairness_error, min_balance, max_gap, relative_weights : optional
    match_reference, lipschitz, target, init, max_iter, tol : optional
    max_restarts, precision, verbose, random_state : optional
        As in `VariationalFairKMeans`. `lam` = 0 alternates nearest medoids and new medoids.

    Attributes
    ----------
    labels_, cluster_centers_, n_iter_, history_, groups_, scale_, offset_, target_
    n_inner_iter_, n_restarts_, n_energy_rises_, converged_, lam_, path_
        As in `VariationalFairKMeans`.
    medoid_indices_ : ndarray of shape (n_clusters,)
        The row of X of every centre; -1 for a centre of `init` that was never moved.
    medoid_gap_ : float
        When `cluster_centers_` were found, the sum of distances to the medoids was larger than that to exact medoids by
        at most this fraction; 0 if all medoids are exact.

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021, Algorithm 1 and Table 1.
    """
