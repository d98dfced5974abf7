"""An extension of Griffe: docstrings as `help` shows them.

Griffe reads source code. The docstrings of metrics are completed when they are imported, by
`fairclust.metrics.registry.documented`.
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe


class RuntimeDocstrings(griffe.Extension):
    """Replaces the docstrings of functions of `fairclust.metrics`."""

    def on_function(self, *, func: griffe.Function, **kwargs: Any) -> None:
        if func.docstring and func.path.startswith("fairclust.metrics."):
            func.docstring.value = inspect.getdoc(griffe.dynamic_import(func.path)) or ""
