"""The methods, one file each. A file is imported when its method is first used, so that listing them is fast."""

from fairclust.lazy import members

# The module of each class, and its colour and mark in figures and pages; `config/methods/` states those of its entries.
_MODULE_OF = {
    "BalancedFairKMeans": ("balanced_kmeans", "sky", "square"),
    "BatchProgramKMeans": ("programs.batch_program", "orange", "square"),
    "BeraFairKMeans": ("programs.bera", "green", "triangle"),
    "FairAlignmentKMeans": ("fair_alignment", "pink", "diamond"),
    "FairDen": ("spectral.fair_den", "green", "star"),
    "FairKCenter": ("fair_k_center", "pink", "square"),
    "FairletClustering": ("fairlets.fairlet_flow", "orange", "star"),
    "FairletTreeClustering": ("fairlets.fairlet_tree", "orange", "wedge"),
    "FairMixture": ("mixture.fair_mixture", "sky", "plus"),
    "FairSpectralClustering": ("spectral.fair_spectral", "green", "circle"),
    "InterpolatedTransportClustering": ("interpolated_transport", "yellow", "triangle"),
    "KMeans": ("kmeans", "black", "circle"),
    "MultiStageFlowKMeans": ("programs.multi_stage_flow", "orange", "circle"),
    "PriceFairKMeans": ("price.price_kmeans", "blue", "circle"),
    "PriceFairKMedians": ("price.price_kmedians", "blue", "diamond"),
    "RandomLabels": ("random_labels", "black", "cross"),
    "SociallyFairKMeans": ("socially_fair", "pink", "circle"),
    "SpectralClustering": ("spectral.spectral", "black", "star"),
    "VariationalFairKMeans": ("variational.variational_kmeans", "vermilion", "square"),
    "VariationalFairKMedians": ("variational.variational_kmedians", "vermilion", "triangle"),
    "VariationalFairNCut": ("variational.variational_ncut", "vermilion", "star"),
}
LOOKS = {name: look for name, (_, *look) in _MODULE_OF.items()}

__all__, __getattr__, __dir__ = members(__name__, {name: module for name, (module, *_) in _MODULE_OF.items()})
