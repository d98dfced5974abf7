"""Fairness and clustering metrics: pure functions of labels, groups, points and graphs.

`score_labels` computes them from labels alone, the same way for every method; `METRICS` declares each
metric's range, direction and source. The sources are these papers:

- Abbasi, Bhaskara, Venkatasubramanian 2021: "Fair clustering via equitable group representations"
- Bera, Chakrabarty, Flores, Negahbani 2019: "Fair algorithms for clustering"
- Chierichetti et al. 2017: "Fair clustering through fairlets"
- Dunn 1974: "Well-separated clusters and optimal fuzzy partitions"
- Ghadiri, Samadi, Vempala 2021: "Socially fair k-means clustering"
- Kim et al. 2025 (FCA): "Fair clustering via alignment"
- Kleindessner et al. 2019: "Guarantees for spectral clustering with fairness constraints"
- Pan et al. 2023 (BFKM): "Balanced fair k-means clustering"
- Park et al. (FMC): "Fair model-based clustering"
- Shi and Malik 2000: "Normalized cuts and image segmentation"
- Wang et al. 2023 (s-FairSC): "Scalable spectral clustering with group fairness constraints"
- Ziko et al. 2021 (VFC): "Variational fair clustering"
"""

from fairclust.lazy import members

# The module of each name. It is imported when the name is first used, because Snakemake reads only names and directions
# and should not wait for compiled code.
_MODULE_OF = {
    "METRICS": "table",
    "Metric": "registry",
    "Scored": "table",
    "average_balance": "fairness",
    "awd": "fairness",
    "balance": "fairness",
    "clustering_error": "quality",
    "contingency": "counts",
    "data_balance": "fairness",
    "delta": "fairness",
    "delta_mean": "fairness",
    "dunn_index": "quality",
    "fairness_error": "fairness",
    "fairness_ratio": "fairness",
    "group_codes": "fairness",
    "group_costs": "quality",
    "kmedians_cost": "quality",
    "mean_deviation": "fairness",
    "n_nonempty": "quality",
    "ncut": "quality",
    "score_labels": "table",
    "share_deviation": "fairness",
    "smallest_cluster": "quality",
    "sse": "quality",
}

__all__, __getattr__, __dir__ = members(__name__, _MODULE_OF)
