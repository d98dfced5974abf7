"""Few weighted rows whose cost is close to the cost of all rows, for any centres: systematic samples by sensitivity.

Feldman and Langberg, "A unified framework for approximating and clustering data", 2011; Bachem, Lucic, Krause,
"Practical coreset constructions for machine learning", 2017, for the bound on the sensitivity; Madow, "On the theory of
systematic sampling, II", 1949, for the draws.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import kmeans_plusplus

# Number of k-means++ centres for each cluster. With this many, their cost is that of the best centres up to a constant
# factor.
_PICKS = 2


def sensitivity_sample(
    X: np.ndarray, n_rows: int, n_clusters: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows by sensitivity, the largest share of the k-means cost that a row can have: sorted rows and their
    weights.

    The draws are evenly spaced along the rows, sorted so that near rows follow each other. So every region gets its
    share of the draws, and the cost of the sample varies less. A row that is drawn twice has more weight.
    """
    n_samples = len(X)
    if n_rows >= n_samples:
        return np.arange(n_samples), np.ones(n_samples)
    seed = int(rng.randint(np.iinfo(np.int32).max))
    picks = kmeans_plusplus(X, min(_PICKS * n_clusters, n_samples), random_state=seed)[0]
    squares = cdist(X, picks, "sqeuclidean")
    every = np.arange(n_samples)
    nearest = squares.argmin(axis=1)
    paid = squares[every, nearest]
    sizes = np.bincount(nearest, minlength=len(picks))
    mean = paid.mean() or 1.0
    in_cluster = np.bincount(nearest, weights=paid, minlength=len(picks)) / np.maximum(sizes, 1)
    sensitivity = (paid + in_cluster[nearest]) / mean + n_samples / sizes[nearest]
    chance = sensitivity / sensitivity.sum()
    # Near rows have the same nearest and second nearest centre, and about the same distance to the nearest one.
    squares[every, nearest] = np.inf
    order = np.lexsort((paid, squares.argmin(axis=1), nearest))
    limits = chance[order].cumsum()
    drawn = np.searchsorted(limits[:-1], (np.arange(n_rows) + rng.random_sample()) / n_rows)
    rows, draws = np.unique(order[drawn], return_counts=True)
    weights = draws / chance[rows]
    return rows, weights * (n_samples / weights.sum())


def rows_of_groups(sizes: np.ndarray, n_rows: int) -> np.ndarray:
    """Divide a number of rows equally among the groups. Groups that have fewer rows than their part give all rows."""
    found = np.zeros(len(sizes), dtype=np.int64)
    left = min(n_rows, int(sizes.sum()))
    for number, j in enumerate(np.argsort(sizes, kind="stable")):
        found[j] = min(int(sizes[j]), max(1, left // (len(sizes) - number)))
        left -= found[j]
    return found
