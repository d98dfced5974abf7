"""What every Snakemake script does first: threads, log, and a record of its own seconds.

Imports nothing heavy: the thread settings must be in place before NumPy and numba are imported.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

_FULL = "\nThe disk is full. What is finished is kept: make room, then the same command again."


class JobFailed(SystemExit):
    """Ends a script with the message alone; the traceback is in its log."""


def _process_age() -> float:
    import psutil

    return time.time() - psutil.Process().create_time()


def die_with(parent: int) -> None:
    """End this process when its parent is killed, so that no orphan goes on writing (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def job(snakemake: Any) -> Iterator[None]:
    """Run a script's body under its rule's threads, into its rule's log.

    Parameters
    ----------
    snakemake : object
        The one that Snakemake hands to scripts. The rule, the moment of the end and the seconds since the
        process started are written beside its log, for the summary of the run.

    Raises
    ------
    JobFailed
        For any error of the body, after its traceback went to the log.
    """
    die_with(os.getppid())
    for variable in _THREAD_VARIABLES:
        os.environ[variable] = str(snakemake.threads)
    sys.path.insert(0, str(Path.cwd()))  # classes of the user's own, beside the Snakefile
    log = Path(snakemake.log[0])
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", buffering=1) as file:
            try:
                with redirect_stdout(file), redirect_stderr(file):
                    yield
            except Exception:
                with suppress(OSError):  # a full disk has no room for it either
                    traceback.print_exc(file=file)
                raise
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = _FULL if full else ""
        raise JobFailed(
            f"{snakemake.rule}: {type(error).__name__}: {error}{hint}\n(full trace: {log})"
        ) from None
    record = {"rule": snakemake.rule, "end": time.time(), "seconds": _process_age()}
    with suppress(OSError):  # only for the summary's sake
        Path(str(log) + ".json").write_text(json.dumps(record))
