"""Fairness and clustering metrics: pure functions of labels, groups, points and graphs.

`score_labels` computes them from labels alone, the same way for every method; `METRICS` declares each
metric's range, direction and source.
"""

from fairclust.metrics.contingency import cluster_sizes, contingency, soft_contingency
from fairclust.metrics.fairness import (
    additive_gap,
    average_balance,
    awd,
    balance,
    data_balance,
    delta,
    delta_max_pair,
    fairness_error,
    fairness_ratio,
    share_deviation,
)
from fairclust.metrics.quality import (
    clustering_error,
    dunn_index,
    kmedians_bounds,
    kmedians_cost,
    largest_cluster,
    n_nonempty,
    ncut,
    smallest_cluster,
    sse,
)
from fairclust.metrics.table import METRICS, Metric, score_labels

__all__ = [
    "METRICS",
    "Metric",
    "additive_gap",
    "average_balance",
    "awd",
    "balance",
    "cluster_sizes",
    "clustering_error",
    "contingency",
    "data_balance",
    "delta",
    "delta_max_pair",
    "dunn_index",
    "fairness_error",
    "fairness_ratio",
    "kmedians_bounds",
    "kmedians_cost",
    "largest_cluster",
    "n_nonempty",
    "ncut",
    "score_labels",
    "share_deviation",
    "smallest_cluster",
    "soft_contingency",
    "sse",
]
