"""Which groups are absent from which clusters."""

from __future__ import annotations

from numpy.typing import ArrayLike

from fairclust.metrics.fairness import _table

__all__ = ["absent_groups"]


def absent_groups(labels: ArrayLike, *, sensitive_features: ArrayLike | None = None) -> int:
    """Number of pairs of a group and a cluster with points that has none of that group.

    Parameters
    ----------
    labels : array-like of shape (n_samples,), or of shape (n_groups, n_clusters)
        The cluster of each point, with `sensitive_features`; without them the table of counts n_jk.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
        The group of each point; of several columns the groups are the combinations.

    Returns
    -------
    int
        From 0, lower is fairer: balance is 0 as soon as one group is absent from one cluster, and this says
        how often that happens. Groups without any point do not count.

    Raises
    ------
    ValueError
        If the table is none of counts, or the labels and groups have not one length.
    """
    counts = _table(labels, sensitive_features)
    return int((counts[:, counts.sum(axis=0) > 0] == 0).sum())
