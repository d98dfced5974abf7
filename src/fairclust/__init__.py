"""fairclust: fair clustering, compared honestly.

Everything public is here, and is imported when it is first used, because compiled code takes its time.
"""

import importlib
from typing import Any

__version__ = "0.2.0"

# No import statement: packages below the methods may import this one for its version.
methods = importlib.import_module(f"{__name__}.methods")

_HOMES = {
    **dict.fromkeys(methods.__all__, "methods"),
    "ChunkError": "chunks",
    "ClusterSharesDisplay": "plot",
    "FairAssignment": "solvers.fair_assignment",
    "FairClusterer": "base",
    "FairCoreset": "coreset",
    "FairnessScorer": "model_selection",
    "FrontDisplay": "plot",
    "NotSupported": "base",
    "OptimalClustering": "solvers.optimum",
    "cheapest_fair": "model_selection",
    "fair_assignment": "solvers.fair_assignment",
    "lam_path": "methods._lam_path",
    "open_chunks": "chunks",
    "optimal_clustering": "solvers.optimum",
}
_MODULES = ("datasets", "methods", "metrics", "model_selection", "plot", "tables")

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
