"""SciPy's programs solved by HiGHS, without what HiGHS writes to the standard output of the process."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Any

from scipy import optimize

_lock = Lock()


def _silent(solve: Callable[..., Any]) -> Callable[..., Any]:
    """Some versions of HiGHS print lines for their developers, whatever SciPy asks of them."""

    @wraps(solve)
    def solved(*args: Any, **kwargs: Any) -> Any:
        if os.name != "posix":
            return solve(*args, **kwargs)
        with _lock:
            sys.stdout.flush()
            try:
                kept = os.dup(1)
            except OSError:
                # There is no standard output to keep clean.
                return solve(*args, **kwargs)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 1)
            try:
                return solve(*args, **kwargs)
            finally:
                # The lines wait in the C library's buffer, which would write them later.
                ctypes.CDLL(None).fflush(None)
                os.dup2(kept, 1)
                os.close(kept)
                os.close(nowhere)

    return solved


linprog = _silent(optimize.linprog)
milp = _silent(optimize.milp)
