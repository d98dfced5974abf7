"""Silhouettes of the groups: whether the points of one group fit their clusters better than those of another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from fairclust.metrics.centers import finite_points_and_labels, sampled_rows
from fairclust.metrics.counts import group_codes
from fairclust.metrics.registry import metric

__all__ = ["silhouette_gap"]


@metric(
    "Silhouette difference",
    (0.0, 2.0),
    "lower",
    "Rousseeuw 1987; ours",
    needs="X",
    audit=True,
)
def silhouette_gap(
    X: ArrayLike, labels: ArrayLike, *, sensitive_features: ArrayLike, max_rows: int | None = 5_000
) -> float:
    """Largest difference between two groups' mean silhouettes.

    Parameters
    ----------
    max_rows : int or None, default 5,000
        With more rows the silhouettes are computed within a random sample of this size, the same in every call. A group
        without a row in the sample is left out. None for no limit; the time grows with the square of the number of
        rows.

    Returns
    -------
    float
        In [0, 2], lower is fairer; ``nan`` with fewer than two clusters.
    """
    from sklearn.metrics import silhouette_samples

    points, codes = finite_points_and_labels(X, labels)
    groups = group_codes(sensitive_features)
    if groups.shape != codes.shape:
        raise ValueError(f"labels {codes.shape} and sensitive_features {groups.shape} must have one length")
    rows = sampled_rows(codes.size, max_rows)
    points, codes = points[rows].astype(float), codes[rows]
    n_used = np.unique(codes).size
    if n_used < 2:
        return float("nan")
    if n_used == codes.size:
        return 0.0  # the silhouette of a point that is alone in its cluster is 0
    # The points are centred, because scikit-learn computes distances from squared norms, which lose digits far from the
    # origin.
    found = silhouette_samples(points - points.mean(axis=0), codes)
    groups = np.unique(groups[rows], return_inverse=True)[1]
    means = np.bincount(groups, weights=found) / np.bincount(groups)
    return float(means.max() - means.min())
