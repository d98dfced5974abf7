"""Scalable fair clustering by fairlets on a quadtree (Backurs et al., ICML 2019)."""

from __future__ import annotations

import numpy as np

from fairclust.methods.fairlets.estimator import FairletClusterer, quadtree_fairlets


class FairletTreeClustering(FairletClusterer):
    """Fairlets on a randomly shifted quadtree, then clusters of their centres; SFC in the papers' tables.

    Every cluster is a union of fairlets and therefore has at least their balance: its smaller group has at least p / q
    times as many points as the larger one. The time is nearly linear in the number of points. There can be at most two
    groups.

    Parameters
    ----------
    n_clusters : int, default=8
    balance : (p, q) or "auto", default="auto"
        Whole numbers. p / q must not be above the balance of the data. "auto" takes the largest balance that
        the data allow with q <= 10. The nearer it is to the balance of the data, the larger are the fairlets and the
        cost.
    clustering : {"kmedoids", "kmeans"}, default="kmedoids"
        "kmedoids" runs FasterPAM on the medoids of the fairlets, which all have the same weight, as in the paper.
        "kmeans" runs k-means, with ten starts, on the means of the fairlets, weighted by their numbers of points.
    max_exact : int, default=6000
        The medoids are the best of five random starts. With more fairlets, each start has a sample of `max_exact` of
        them (CLARA). The distances of a sample take ``4 * max_exact**2`` bytes.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, groups_
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Medoids, which are rows of X, or weighted means. If there are fewer fairlets than clusters, there are as many
        centres as fairlets, and `fit` warns of it. New points have no fairlet, so there is no `predict`.
    balance_ : (int, int)
        The pair (p, q) in lowest terms.
    fairlet_labels_ : ndarray of shape (n_samples,)
        Number of every point's fairlet.
    fairlet_cost_, cost_ : float
        Sum of the points' distances to the centres of their fairlets, and to those of their clusters; of squared
        distances with "kmeans".
    n_iter_ : int
        2, for the decomposition and the clustering.
    history_ : list of dict
        One record for each of the two. The objective is the cost. The fairness term is the least balance of the
        fairlets, or of the clusters.

    Notes
    -----
    The paper does not say which points of a group leave a cell. Here they are the last ones in the order of the data.
    The tree ends after 16 halvings of a box that is twice as wide as the data's largest range.

    References
    ----------
    Backurs, Indyk, Onak, Schieber, Vakilian, Wagner: Scalable Fair Clustering, ICML 2019.
    """

    def _decompose(
        self, X: np.ndarray, codes: np.ndarray, p: int, q: int, rng: np.random.RandomState
    ) -> np.ndarray:
        return quadtree_fairlets(X, codes, p, q, rng)
