"""The methods, one file each. A file is imported when its method is first used, so that listing them is fast."""

from fairclust.lazy import members

_HOMES = {
    "BalancedFairKMeans": "balanced_kmeans",
    "BatchProgramKMeans": "programs.batch_program",
    "BeraFairKMeans": "programs.bera",
    "FairAlignmentKMeans": "fair_alignment",
    "FairDen": "spectral.fair_den",
    "FairKCenter": "centers.fair_k_center",
    "FairletClustering": "fairlets.fairlet_flow",
    "FairletTreeClustering": "fairlets.fairlet_tree",
    "FairMixture": "mixture.fair_mixture",
    "FairSpectralClustering": "spectral.fair_spectral",
    "GreedyCapture": "centers.greedy_capture",
    "IndividuallyFairClustering": "centers.individually_fair",
    "KCenter": "centers.k_center",
    "KMeans": "kmeans",
    "MultiStageFlowKMeans": "programs.multi_stage_flow",
    "PriceFairKMeans": "price.price_kmeans",
    "PriceFairKMedians": "price.price_kmedians",
    "RandomLabels": "random_labels",
    "SociallyFairKMeans": "socially_fair",
    "SpectralClustering": "spectral.spectral",
    "VariationalFairKMeans": "variational.variational_kmeans",
    "VariationalFairKMedians": "variational.variational_kmedians",
    "VariationalFairNCut": "variational.variational_ncut",
}

LOOKS = {
    "BalancedFairKMeans": ("sky", "square"),
    "BatchProgramKMeans": ("orange", "square"),
    "BeraFairKMeans": ("green", "triangle"),
    "FairAlignmentKMeans": ("pink", "diamond"),
    "FairDen": ("green", "star"),
    "FairKCenter": ("pink", "square"),
    "FairletClustering": ("orange", "star"),
    "FairletTreeClustering": ("orange", "wedge"),
    "FairMixture": ("sky", "plus"),
    "FairSpectralClustering": ("green", "circle"),
    "GreedyCapture": ("pink", "star"),
    "IndividuallyFairClustering": ("pink", "triangle"),
    "KCenter": ("black", "triangle"),
    "KMeans": ("black", "circle"),
    "MultiStageFlowKMeans": ("orange", "circle"),
    "PriceFairKMeans": ("blue", "circle"),
    "PriceFairKMedians": ("blue", "diamond"),
    "RandomLabels": ("black", "cross"),
    "SociallyFairKMeans": ("pink", "circle"),
    "SpectralClustering": ("black", "star"),
    "VariationalFairKMeans": ("vermilion", "square"),
    "VariationalFairKMedians": ("vermilion", "triangle"),
    "VariationalFairNCut": ("vermilion", "star"),
}
"""The colour and the mark of each class in figures and pages; `config/methods/` states those of its entries."""

__all__, __getattr__, __dir__ = members(__name__, _HOMES)
