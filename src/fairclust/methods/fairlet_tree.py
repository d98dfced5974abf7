"""Scalable fair clustering by fairlets on a quadtree (Backurs et al., ICML 2019)."""

from __future__ import annotations

import numpy as np

from fairclust.methods._fairlets import FairletClusterer
from fairclust.solvers.fairlets import quadtree_fairlets


class FairletTreeClustering(FairletClusterer):
    """Fairlets on a randomly shifted quadtree, then clusters of their centres; SFC in the papers' tables.

    Every cluster is a union of fairlets and so has at least their balance: the smaller of its two groups is
    at least p / q of the larger. Nearly linear in the number of points. Two groups only.

    Parameters
    ----------
    n_clusters : int, default=8
    balance : (p, q) or "auto", default="auto"
        Whole numbers; p / q must not be above the balance of the data. "auto" takes the largest balance that
        the data allow with q <= 10. The nearer to the data's, the larger the fairlets and the cost.
    clustering : {"kmedoids", "kmeans"}, default="kmedoids"
        "kmedoids": FasterPAM on the medoids of the fairlets, which all count alike, as in the paper.
        "kmeans": k-means, of ten starts, on the means of the fairlets, weighted by their numbers of points.
    max_exact : int, default=6000
        With more fairlets than these, medoids are those of the best of five samples of so many fairlets
        (CLARA); their distances take ``4 * max_exact**2`` bytes.
    random_state : int, RandomState or None

    Attributes
    ----------
    labels_, groups_
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Medoids, which are rows of X, or weighted means. Fewer, with a warning, where there are fewer fairlets
        than clusters. New points have no fairlet: there is no `predict`.
    balance_ : (int, int)
        The pair (p, q) in lowest terms.
    fairlet_labels_ : ndarray of shape (n_samples,)
        Number of every point's fairlet.
    fairlet_cost_, cost_ : float
        Sum of the points' distances to the centres of their fairlets, of their clusters; of squared distances
        with "kmeans".
    n_iter_ : int
        2: the decomposition, the clustering.
    history_ : list of dict
        The same two: the objective is the cost, the fairness term the least balance of fairlets, of clusters.

    Notes
    -----
    The paper leaves open which points of a colour leave a cell; here they are the last ones of the order in
    which the data came. The tree ends after 16 halvings of a box of twice the data's largest range.

    References
    ----------
    Backurs, Indyk, Onak, Schieber, Vakilian, Wagner: Scalable Fair Clustering, ICML 2019.
    """

    def _decompose(
        self, X: np.ndarray, codes: np.ndarray, p: int, q: int, rng: np.random.RandomState
    ) -> np.ndarray:
        return quadtree_fairlets(X, codes, p, q, rng)
