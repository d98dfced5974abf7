"""fairclust: fair clustering, compared honestly."""

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {"fair_assignment": "solvers.fair_assignment", "lam_path": "methods._lam_path"}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    # Imported when first used: compiled code takes its time.
    if name in _HOMES:
        return getattr(importlib.import_module(f"fairclust.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
