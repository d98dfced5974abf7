"""The methods, one file each. A file is imported when its method is first used, so that listing them is fast."""

from fairclust.lazy import members

_HOMES = {
    "BalancedFairKMeans": "balanced_kmeans",
    "BatchProgramKMeans": "batch_program",
    "BeraFairKMeans": "bera",
    "FairAlignmentKMeans": "fair_alignment",
    "FairDen": "fair_den",
    "FairKCenter": "fair_k_center",
    "FairletClustering": "fairlet_flow",
    "FairletTreeClustering": "fairlet_tree",
    "FairMixture": "fair_mixture",
    "FairSpectralClustering": "fair_spectral",
    "GreedyCapture": "greedy_capture",
    "IndividuallyFairClustering": "individually_fair",
    "KCenter": "k_center",
    "KMeans": "kmeans",
    "MultiStageFlowKMeans": "multi_stage_flow",
    "PriceFairKMeans": "price_kmeans",
    "PriceFairKMedians": "price_kmedians",
    "RandomLabels": "random_labels",
    "SociallyFairKMeans": "socially_fair",
    "SpectralClustering": "spectral",
    "VariationalFairKMeans": "variational_kmeans",
    "VariationalFairKMedians": "variational_kmedians",
    "VariationalFairNCut": "variational_ncut",
}

__all__, __getattr__ = members(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
