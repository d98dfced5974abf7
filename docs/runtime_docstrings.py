"""An extension of Griffe: docstrings as `help` shows them.

Griffe reads source code. The docstrings of metrics and of methods are completed when they are imported, by
`fairclust.metrics.registry.documented` and by `fairclust.base.FairClusterer`.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe


class RuntimeDocstrings(griffe.Extension):
    """Replaces the docstrings of functions and classes of `fairclust.metrics` and `fairclust.methods`."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if func.docstring and func.path.startswith(("fairclust.metrics.", "fairclust.methods.")):
            func.docstring.value = inspect.getdoc(griffe.dynamic_import(func.path)) or ""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        if cls.docstring and cls.path.startswith("fairclust.methods."):
            cls.docstring.value = inspect.getdoc(griffe.dynamic_import(cls.path)) or ""
