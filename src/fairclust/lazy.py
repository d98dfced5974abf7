"""Packages whose members are imported when they are first used, so that importing the package is fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def members(package: str, homes: Mapping[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """The names and the ``__getattr__`` of a package whose members are imported when they are first used.

    Parameters
    ----------
    package : str
        Name of the package.
    homes : mapping of str to str
        Member to the module of the package that defines it.

    Returns
    -------
    names : list of str
        For ``__all__``.
    getter : callable
        For ``__getattr__``.
    """
    names = sorted(homes)

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(names)}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return names, getter
