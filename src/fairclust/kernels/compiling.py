"""Where compiled code is kept, and a message for users who wait while Numba compiles.

The compiled code is cached, so later runs do not wait.
"""

from __future__ import annotations

import hashlib
import sys
import time
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

from llvmlite import binding
from numba.core import caching, codegen, config, event

_PATIENCE = 1.0
_MESSAGE = (
    "fairclust: compiling for this machine, which takes some seconds the first time. Later runs read the result "
    "from the cache."
)


def _watched() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


class Announcer(event.Listener):
    """Print once that code of this package is being compiled, when compiling has taken a second altogether.

    Numba sends these events for functions that it compiles, not for functions that it reads from its cache.
    """

    def __init__(self) -> None:
        self._timer: Timer | None = None
        self._depth = 0
        self._since = 0.0
        self._left = _PATIENCE
        self._said = False

    def on_start(self, event: Any) -> None:
        self._depth += 1
        ours = event.data["dispatcher"].py_func.__module__.startswith("fairclust.")
        if ours and self._timer is None and not self._said and _watched():
            self._since = time.monotonic()
            self._timer = Timer(max(self._left, 0.0), self._say)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: Any) -> None:
        # Compiling a function can start the compilation of functions that it calls, so events are nested.
        self._depth -= 1
        if self._timer is not None and self._depth == 0:
            self._timer.cancel()
            self._timer = None
            self._left -= time.monotonic() - self._since

    def _say(self) -> None:
        self._said = True
        print(_MESSAGE, file=sys.stderr, flush=True)


def announce() -> None:
    """Register the listener with Numba's compiler."""
    event.register("numba:compile", Announcer())


@cache
def _processor() -> str:
    """Return the name of the processor that Numba compiles for, with a digest of its features."""
    settings: Any = config
    name = settings.CPU_NAME or binding.get_host_cpu_name()
    features = settings.CPU_FEATURES
    if features is None:
        features = codegen.get_host_cpu_features()
    return f"{name}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"


def _by_processor(locator: Any) -> Any:
    """Return a variant of a locator of Numba that serves this package only, with a folder for each processor."""

    class ByProcessor(locator):
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            ours = py_func.__module__.startswith("fairclust.")
            return super().from_function(py_func, py_file) if ours else None

        def get_cache_path(self) -> str:
            return str(Path(super().get_cache_path()) / _processor())

    return ByProcessor


def separate_processors() -> None:
    """Keep the compiled code of this package in one folder for each type of processor.

    Numba numbers the files of all processors in one index. If two processors write it at the same time, the second
    one replaces the file of the first one, which then loads code for another processor.
    """
    ours = [_by_processor(locator) for locator in caching.CacheImpl._locator_classes]
    caching.CacheImpl._locator_classes = ours + caching.CacheImpl._locator_classes
