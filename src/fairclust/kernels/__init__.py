"""Compiled array functions, how Numba keeps them, and a message for users who wait while it compiles them."""

from __future__ import annotations

import hashlib
import sys
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
    """Print once that code of this package is being compiled.

    Numba sends these events for functions that it compiles, not for functions that it reads from its cache.
    """

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__.startswith("fairclust.")
        if ours and not self._said and _watched():
            self._said = True
            print(_MESSAGE, file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """The other method that Numba asks of a listener."""


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
