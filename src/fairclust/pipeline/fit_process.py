"""A process in which fits run within limits of time and memory; after one that exceeds them, there is a new process."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as OverTime
from contextlib import contextmanager
from typing import Any

from pebble import ProcessExpired, ProcessPool

from fairclust.pipeline.script import die_with


class FitEnded(Exception):
    """A call has exceeded its limits, or its process has died: the status of the row, and the reason."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@contextmanager
def fit_process(memory_mb: float) -> Iterator[Callable[..., Any]]:
    """A function that calls others in one process, which the first call starts, and the end of the context ends.

    `memory_mb` limits the data of the process (RLIMIT_DATA), which Linux alone enforces.
    """
    # Forked, because a spawned process would run Snakemake's script again.
    context = multiprocessing.get_context("fork")
    begin = (os.getpid(), memory_mb)
    pool = ProcessPool(max_workers=1, context=context, initializer=_begin, initargs=begin)

    def call(function: Callable[..., Any], *args: Any, seconds: float = 600, limit: str = "") -> Any:
        """The result of a function in the process; FitEnded if it takes longer than `seconds`, or its process dies."""
        try:
            return pool.schedule(function, args=args, timeout=seconds).result()
        except OverTime:
            raise FitEnded("timeout", f"over the limit of {seconds:g} s{limit}") from None
        except MemoryError as error:
            stated = (
                f"over the limit of {memory_mb:.0f} MB (what its job asked for, less what starts the fits)"
            )
            raise FitEnded("error", f"{stated}: {error}") from None
        except ProcessExpired as error:
            why = "; perhaps out of memory" if error.exitcode == -signal.SIGKILL else ""
            reason = f"the fitting process died (exit code {error.exitcode}{why})"
            raise FitEnded("error", reason) from None

    try:
        yield call
    finally:
        pool.stop()
        pool.join()


def _begin(parent: int, memory_mb: float) -> None:
    die_with(parent)
    # The script handles this signal; the process of the fit ends at once.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # What compiled libraries print (HiGHS does) goes to the log, as Python's output does.
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stderr.fileno(), 2)
    if sys.platform == "linux":
        import resource

        most = int(memory_mb * 2**20)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
