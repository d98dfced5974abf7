"""Compiled array functions, how Numba keeps them, and a message for users who wait while it compiles them."""

from __future__ import annotations

import hashlib
import sys
import time
from threading import Timer
from typing import Any

from numba.core import caching, event

_MESSAGE = (
    "fairclust: compiling once, about 10 s on an idle machine. Later runs read the result from the cache."
)


def _watched() -> bool:
    """Whether a user waits: in a notebook, at a terminal, or for the command, which states its progress anyway."""
    if "ipykernel" in sys.modules or "fairclust.cli.progress" in sys.modules:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


class Announcer(event.Listener):
    """Print once that code of this package is being compiled, when compiling has taken `patience` seconds altogether.

    Numba sends these events for functions that it compiles, not for functions that it reads from its cache.
    """

    def __init__(self, patience: float = 1.0) -> None:
        self._timer: Timer | None = None
        self._depth = 0
        self._since = 0.0
        self._left = patience
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


def _save(self: Any, key: Any, data: Any) -> None:
    """Name a file of compiled code after the types and the processor that the code is for."""
    # Numba numbers these files. Two processes that save code for other types or processors at the same time give both
    # the same number, and one of them would later run the code of the other. The kernels of a run are compiled by its
    # jobs, so this happens. Files of other packages that this process compiles get such names too. Processes that do
    # not import this package can read all of them, because Numba looks up the name of a file in its index.
    stem = self._index_name.removesuffix(".nbi")
    name = f"{stem}.{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"
    self._save_data(name, data)
    # An entry that another process adds meanwhile is lost, and its code is compiled once more.
    self._save_index({**self._load_index(), key: name})


event.register("numba:compile", Announcer())
caching.IndexDataCacheFile.save = _save  # type: ignore[method-assign]
