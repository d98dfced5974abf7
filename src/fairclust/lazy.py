"""Packages whose members are imported when they are first used, so that importing the package is fast."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def members(
    package: str, module_of: Mapping[str, str], modules: Sequence[str] = ()
) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """``__all__``, ``__getattr__`` and ``__dir__`` of a package whose members are imported when they are first used.

    `module_of` maps each member to the module of the package that defines it, and `modules` are members themselves.
    """
    names = sorted([*module_of, *modules])

    def getter(name: str) -> Any:
        if name in modules:
            return importlib.import_module(f"{package}.{name}")
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it has {', '.join(names)}")
        return getattr(importlib.import_module(f"{package}.{module_of[name]}"), name)

    return names, getter, lambda: names
