"""Fairness and clustering metrics: pure functions of labels, groups, points and graphs.

`score_labels` computes them from labels alone, the same way for every method; `METRICS` declares each
metric's range, direction and source.
"""

from fairclust.lazy import members

# The module of each name. It is imported when the name is first used, because Snakemake reads only names and directions
# and should not wait for compiled code.
_HOMES = {
    "METRICS": "table",
    "Audit": "card",
    "Metric": "registry",
    "Scored": "table",
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

__all__, __getattr__ = members(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
