"""The methods, one file each; imported when first used, so that listing them costs nothing."""

import importlib
from typing import Any

_HOMES = {
    "BalancedFairKMeans": "balanced_kmeans",
    "BeraFairKMeans": "bera",
    "FairAlignmentKMeans": "fair_alignment",
    "FairletClustering": "fairlet_flow",
    "FairletTreeClustering": "fairlet_tree",
    "FairMixture": "fair_mixture",
    "FairSpectralClustering": "fair_spectral",
    "KMeans": "kmeans",
    "PriceFairKMeans": "price_kmeans",
    "PriceFairKMedians": "price_kmedians",
    "RandomLabels": "random_labels",
    "SpectralClustering": "spectral",
    "VariationalFairKMeans": "variational_kmeans",
    "VariationalFairKMedians": "variational_kmedians",
    "VariationalFairNCut": "variational_ncut",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
