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
    lam : float, optional
        As for `VariationalFairKMeans`, but a suitable number grows with the unit of the data and not with its square.
        0 alternates nearest medoids and new medoids.

    References
    ----------
    Ziko, Yuan, Granger, Ben Ayed: Variational Fair Clustering, AAAI 2021, Algorithm 1 and Table 1.

    Examples
    --------
    >>> from fairclust import VariationalFairKMedians
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = VariationalFairKMedians(2, lam=10.0, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
