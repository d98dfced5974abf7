"""Fairness and clustering metrics: pure functions of labels, groups, points and graphs.

`score_labels` computes them from labels alone, the same way for every method; `METRICS` declares each
metric's range, direction and source.
"""

import importlib
from typing import Any

# The module of each name. It is imported when the name is first used, because Snakemake reads only names and directions
# and should not wait for compiled code.
_HOMES = {
    "METRICS": "table",
    "Audit": "card",
    "Metric": "registry",
    "absent_groups": "fairness",
    "additive_gap": "fairness",
    "audit": "card",
    "average_balance": "fairness",
    "awd": "fairness",
    "balance": "fairness",
    "by_column": "columns",
    "cluster_sizes": "counts",
    "clustering_error": "quality",
    "contingency": "counts",
    "data_balance": "fairness",
    "delta": "fairness",
    "delta_max_pair": "fairness",
    "delta_mean": "fairness",
    "dunn_index": "quality",
    "fairness_error": "fairness",
    "fairness_ratio": "fairness",
    "group_codes": "counts",
    "group_cost_changes": "social",
    "group_cost_ratio": "social",
    "group_costs": "social",
    "individual_fairness": "individual",
    "individual_fairness_95": "individual",
    "kmedians_bounds": "quality",
    "kmedians_cost": "quality",
    "largest_cluster": "quality",
    "mean_deviation": "fairness",
    "n_nonempty": "quality",
    "ncut": "quality",
    "neighbourhood_radii": "individual",
    "proportionality": "proportional",
    "score_labels": "table",
    "share_deviation": "fairness",
    "silhouette_gap": "silhouette",
    "smallest_cluster": "quality",
    "sse": "quality",
    "worst_group_cost": "social",
}

__all__ = [
    "METRICS",
    "Audit",
    "Metric",
    "absent_groups",
    "additive_gap",
    "audit",
    "average_balance",
    "awd",
    "balance",
    "by_column",
    "cluster_sizes",
    "clustering_error",
    "contingency",
    "data_balance",
    "delta",
    "delta_max_pair",
    "delta_mean",
    "dunn_index",
    "fairness_error",
    "fairness_ratio",
    "group_codes",
    "group_cost_changes",
    "group_cost_ratio",
    "group_costs",
    "individual_fairness",
    "individual_fairness_95",
    "kmedians_bounds",
    "kmedians_cost",
    "largest_cluster",
    "mean_deviation",
    "n_nonempty",
    "ncut",
    "neighbourhood_radii",
    "proportionality",
    "score_labels",
    "share_deviation",
    "silhouette_gap",
    "smallest_cluster",
    "sse",
    "worst_group_cost",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
