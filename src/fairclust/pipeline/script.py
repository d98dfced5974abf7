"""Every Snakemake script runs a function of this package with its rule's threads and writes into its rule's log.

This module imports nothing heavy: thread settings must be in place before NumPy and numba are imported, and with an
import server (see `import_server`) this process only waits for an answer.
"""

from __future__ import annotations

import errno
import importlib
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from fairclust.temporary import is_alive

ADDRESS = "FAIRCLUST_IMPORT_SERVER"
"""The environment variable with the name of the server. A run that finds it set starts no server of its own."""

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)

_HINTS = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT),
        "\nThe disk is full. Finished fits are kept: make room, then run the same command again.",
    ),
    **dict.fromkeys(
        (errno.EROFS, errno.EACCES, errno.EPERM),
        "\nFix: make the folder of results writable, or set `results` to another one.",
    ),
}


class JobFailed(SystemExit):
    """Ends a script with the message alone; the traceback is in its log."""


class ServerGone(ConnectionError):
    """The server does not answer; the job must be done without it."""


@dataclass(frozen=True)
class Job:
    """A Snakemake job as plain data. Unnamed inputs are under the empty name, and `config` has all layers merged."""

    rule: str
    input: Mapping[str, list[str]]
    output: list[str]
    params: Mapping[str, Any]
    wildcards: Mapping[str, str]
    resources: Mapping[str, Any]
    threads: int
    log: str
    folder: str
    config: Mapping[str, Any]

    @classmethod
    def of(cls, snakemake: Any) -> Job:
        """The job of the object that Snakemake passes to scripts."""
        named = {name: _paths(value) for name, value in snakemake.input.items()}
        n_named = sum(len(paths) for paths in named.values())
        return cls(
            rule=snakemake.rule,
            input={**named, "": [str(path) for path in snakemake.input][: len(snakemake.input) - n_named]},
            output=[str(path) for path in snakemake.output],
            params=dict(snakemake.params.items()),
            wildcards=dict(snakemake.wildcards.items()),
            resources=dict(snakemake.resources.items()),
            threads=snakemake.threads,
            log=str(snakemake.log[0]),
            folder=str(Path.cwd()),
            config=dict(snakemake.config),
        )


def _paths(value: Any) -> list[str]:
    return [str(value)] if isinstance(value, str | Path) else [str(path) for path in value]


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


def kill_family(process: Any) -> None:
    """End a child process that leads a session, if it still runs, with all processes that it has started."""
    import psutil

    if process.is_alive():
        with suppress(psutil.Error):
            for member in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    member.kill()
        # Processes whose parents have ended are no descendants any more, but still in the group.
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
    process.join()


def main(snakemake: Any, function: str) -> None:
    """Run ``package.module:function`` with the `Job` of the object that Snakemake passes to scripts.

    For any error JobFailed is raised, after its traceback went to the log.
    """
    die_with(os.getppid())
    if not _main_process_lives():
        raise JobFailed(1)
    job = Job.of(snakemake)
    address = os.environ.get(ADDRESS)
    if address and job.threads == 1:
        with suppress(ServerGone):
            message = ask(address, job, function)
            if message:
                raise JobFailed(message)
            return
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(job.threads)
    message = run(job, function)
    if message:
        raise JobFailed(message)


def ask(name: str, job: Job, function: str) -> str:
    """Let the server run a function for a job; returns what went wrong. ServerGone if it ended before the job began."""
    try:
        with _connect(name) as connection:
            connection.send((job, function, dict(os.environ)))
            connection.recv()
            try:
                return connection.recv()
            except (EOFError, OSError):
                return f"{job.rule}: the job's process died without an answer (log: {job.log})"
    except (EOFError, OSError) as error:
        raise ServerGone(str(error)) from None


def _connect(name: str) -> Connection:
    """Connect. A server that was just started may need a moment to bind its name, so this tries for 5 seconds."""
    for _ in range(100):
        with socket.socket(socket.AF_UNIX) as found, suppress(ConnectionRefusedError):
            found.connect(f"\0{name}")
            if is_same_user(found):
                return Connection(found.detach())
        time.sleep(0.05)
    raise ServerGone(f"no server listens at {name}")


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end of a connection is this user's. Nothing else protects the name (Linux)."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return user == os.getuid()


def _main_process_lives() -> bool:
    """Whether Snakemake's main process still runs. It may have been killed before `die_with` was called."""
    main_process = os.environ.get("FAIRCLUST_MAIN_PROCESS")
    return main_process is None or is_alive(int(main_process))


def run(job: Job, function: str) -> str:
    """Run a function for a job in this process; returns what went wrong, empty if nothing did."""
    sys.path.insert(0, job.folder)  # so that classes in the user's working folder can be imported
    log, began = Path(job.log), time.perf_counter()
    try:
        from fairclust.pipeline.results_folder import forget_digests, write_digests

        log.parent.mkdir(parents=True, exist_ok=True)
        forget_digests(log)
        # The log of a job that is tried again says why the attempts before have failed.
        with log.open("w" if job.resources.get("attempt", 1) == 1 else "a", buffering=1) as file:
            try:
                with redirect_stdout(file), redirect_stderr(file):
                    module, _, name = function.partition(":")
                    getattr(importlib.import_module(module), name)(job)
                _write_usage(log, time.perf_counter() - began)
                write_digests(job.output, log, job.params.get("remade", 0))
            except Exception:
                with suppress(OSError):  # a full disk has no room for the traceback either
                    traceback.print_exc(file=file)
                raise
    except Exception as error:
        hint = _HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        return f"{job.rule}: {type(error).__name__}: {error}{hint}\n(full trace: {log})"
    return ""


def _write_usage(log: Path, seconds: float) -> None:
    """Write what the job took to ``benchmarks/`` in the results, in the columns of Snakemake's `benchmark:`.

    With an import server the work is done in another process than the script, whose usage Snakemake would measure.
    """
    import resource

    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(of.ru_utime + of.ru_stime for of in found)
    # Kilobytes on Linux, bytes on macOS.
    unit = 2**10 if sys.platform == "linux" else 2**20
    peak = max(of.ru_maxrss for of in found) / unit
    place = next((above for above in log.parents if above.name == "logs"), None)
    if place is not None:
        file = place.with_name("benchmarks") / log.relative_to(place).with_suffix(".tsv")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"s\tmax_rss\tcpu_time\n{seconds:.2f}\t{peak:.1f}\t{cpu:.2f}\n")
