"""A message for users who wait while Numba compiles. The compiled code is cached, so later runs do not wait."""

from __future__ import annotations

import sys
import time
from threading import Timer
from typing import Any

from numba.core import event

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
