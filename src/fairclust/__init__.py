"""fairclust: fair clustering, compared honestly."""

import importlib
from typing import Any

__version__ = "0.1.0"
__all__ = ["fair_assignment"]


def __getattr__(name: str) -> Any:
    # Imported when first used: compiled code takes its time.
    if name in __all__:
        return getattr(importlib.import_module("fairclust.solvers.fair_assignment"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
