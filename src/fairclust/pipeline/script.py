"""What every script of the workflow does before and after its work: environment, log, and the end with Snakemake.

Nothing heavy is imported here, because threads and processor are set before NumPy and numba are imported.
"""

from __future__ import annotations

import errno
import os
import platform
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
BASELINE = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "",
    "OPENBLAS_CORETYPE": "Haswell",
    "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR",
}
"""The environment in which every x86-64 processor since 2013 executes the same instructions."""

BESIDE_THE_FIT_MB = 500
"""How much of a job's memory is left for the process that starts the fits."""

_FULL = "The disk is full. Finished fits are kept: make room, then run the same command again."
_READ_ONLY = "Fix: make the folder of results writable, or set `results` to another one."
_HINTS = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL)
_HINTS |= dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _READ_ONLY)
_BEGUN, _ENDED, _WELL = "job begun: ", "job ended: ", "well after"


@contextmanager
def job(snakemake: Any) -> Iterator[None]:
    """The environment of a job: its messages go to its log, and what it cannot do ends the script with a reason."""
    die_with(os.getppid())
    os.environ |= dict.fromkeys(_THREADS, str(snakemake.threads))
    if snakemake.config.get("same_digits", True):
        use_baseline()
    sys.path.insert(0, str(Path.cwd()))  # for the user's classes in this folder
    log, began = Path(str(snakemake.log[0])), time.time()
    with _log(log) as file:

        def ended(number: int, _: Any) -> None:
            name = signal.Signals(number).name
            print(
                f"{_ENDED}{name} after {time.time() - began:.0f} s: its time limit, or cancelled", file=file
            )
            os._exit(128 + number)

        asked = {name: snakemake.resources.get(name) for name in ("attempt", "mem_mb", "runtime")}
        stated = ", ".join(f"{name}={value}" for name, value in asked.items() if value is not None)
        signal.signal(signal.SIGTERM, ended)
        try:
            print(f"{_BEGUN}{snakemake.rule} ({stated})", file=file)
            with redirect_stdout(file), redirect_stderr(file):
                yield
        except Exception as error:
            hint = _HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
            message = f"{type(error).__name__}: {error} {hint}".strip()
            with suppress(OSError):  # a full disk has no room for the traceback either
                traceback.print_exc(file=file)
                print(f"{_ENDED}{message.splitlines()[0]}", file=file)
            # The message alone is printed; the traceback is in the log.
            raise SystemExit(f"{snakemake.rule}: {message}\n(full trace: {log})") from None
        with suppress(OSError):
            print(f"{_ENDED}{_WELL} {time.time() - began:.1f} s", file=file)


@contextmanager
def _log(path: Path) -> Iterator[TextIO]:
    """A log that is written line by line, and whose end is lost on a full disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Snakemake removes the log before every attempt, so it is a link to a file that has all of them.
        path.unlink(missing_ok=True)
        path.symlink_to(f".{path.name}")
        file = path.open("a", buffering=1)
    except OSError as error:
        raise SystemExit(f"{error} {_HINTS.get(error.errno or 0, '')}") from None
    try:
        yield file
    finally:
        with suppress(OSError):
            file.close()


def use_baseline() -> None:
    """Let NumPy and numba, which are imported later, execute the same instructions on every x86-64 processor."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        os.environ |= BASELINE


def end_of_last_attempt(log: Path) -> str:
    """How the attempt before this one failed, as its log says; empty if there was none, or it ended well.

    In a submission of several jobs, those behind one that is killed have not begun.
    """
    lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    begun = [number for number, line in enumerate(lines) if line.startswith(_BEGUN)]
    if len(begun) < 2:
        return ""
    last = lines[begun[-2] : begun[-1]]
    said = [line.removeprefix(_ENDED) for line in last if line.startswith(_ENDED)]
    if said and said[-1].startswith(_WELL):
        return ""
    asked = last[0].removeprefix(_BEGUN)
    killed = f"killed without a message, perhaps out of memory or with its machine: {asked}"
    return said[-1] if said else killed


def die_with(parent: int) -> None:
    """End this process when its parent is killed, so that no orphan goes on writing (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_pdeathsig, signal.SIGKILL)
    # The parent may have been killed before this request.
    if os.getppid() != parent:
        os._exit(1)
