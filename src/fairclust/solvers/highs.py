"""SciPy's `linprog` and `milp`, without the lines that HiGHS writes to the standard output of the process."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

from scipy import optimize

# Searches for labels are limited by nodes, so that every machine finds the same ones. Single nodes of large programs
# can take minutes, and only then do seconds decide.
SECONDS = 3.0

_lock = Lock()


def _silent(solve: Callable[..., Any]) -> Callable[..., Any]:
    """Discard standard output during `solve`. Some versions of HiGHS print debug lines even with output turned off.

    What other threads write to standard output during a solve is lost as well.
    """

    @wraps(solve)
    def solved(*args: Any, **kwargs: Any) -> Any:
        if os.name != "posix":
            return solve(*args, **kwargs)
        with _lock:
            sys.stdout.flush()
            try:
                kept = os.dup(1)
            except OSError:
                # The process has no standard output, so there is nothing to discard.
                return solve(*args, **kwargs)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            try:
                return solve(*args, **kwargs)
            finally:
                # The lines can still be in the C library's buffer. Flush it before standard output is restored.
                ctypes.CDLL(None).fflush(None)
                os.dup2(kept, 1)
                os.close(kept)
                os.close(nowhere)

    return solved


linprog = _silent(optimize.linprog)
milp = _silent(optimize.milp)
