"""Fairness to several sensitive columns: the value of a metric for each column, and the worst value."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairclust.group_encoding import split_columns
from fairclust.metrics import fairness
from fairclust.metrics.table import METRICS

__all__ = ["by_column"]


def by_column(metric: str, labels: Any, *, sensitive_features: Any) -> dict[str, float]:
    """Value of a fairness metric for each sensitive column separately.

    Parameters
    ----------
    metric : str
        Name of a metric of `fairclust.metrics` that needs only the counts of the groups in the clusters, such as
        "balance" or "fairness_ratio".
    labels : array-like of shape (n_samples,)
        The cluster of each point.
    sensitive_features : array-like of shape (n_samples, n_columns), data frame, or mapping
        One or several columns.

    Returns
    -------
    dict
        The value for each column, by its name or its position, and the value of the least fair column as "worst".

    Raises
    ------
    ValueError
        There is no such metric, there is no column, or a column has missing values or not one entry for each label.

    Examples
    --------
    >>> from fairclust.metrics import by_column
    >>> by_column("balance", [0, 0, 1, 1], sensitive_features={"sex": list("fmfm"), "race": list("aabb")})
    {'sex': 1.0, 'race': 0.0, 'worst': 0.0}
    """
    call = getattr(fairness, metric, None)
    if call is None or metric not in METRICS:
        raise ValueError(f"there is no fairness metric {metric!r}")
    named = split_columns(sensitive_features)
    if not named:
        raise ValueError("sensitive_features has no column")
    found = {name: float(call(np.asarray(labels), sensitive_features=cells)) for name, cells in named.items()}
    return {**found, "worst": METRICS[metric].worst(found.values())}
