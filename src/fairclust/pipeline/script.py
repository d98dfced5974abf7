"""The script of every rule has a function of this package run by another process, whose fits it watches.

The process is forked by the import server (see `import_server`) or by the script itself. A fit that exceeds its limits
of time or memory, or ends its process, becomes a record, and another process goes on with the job.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from fairclust.outputs import is_alive
from fairclust.pipeline.job import Job, Watch, die_with, work

ADDRESS = "FAIRCLUST_IMPORT_SERVER"
"""The environment variable with the name of the server. A run that finds it set starts no server of its own."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_POLL_SECONDS = 0.25
# Reading data and compiling happen before the clock of a cell starts, so they have their own limit.
_PREPARATION_SECONDS = 600.0
# What a job tells when it turns to a fit, and when the fit itself begins and ends; at last it tells "scored".
_FITTING = ("fit", "started", "fitted")


class JobFailed(SystemExit):
    """Ends a script with the message alone; the traceback is in its log."""


class ServerGone(ConnectionError):
    """The server does not answer; the job must be done without it."""


def main(snakemake: Any) -> None:
    """Run the ``package.module:function`` that a rule names, with the `Job` of the object that Snakemake passes.

    The function runs in another process, whose fits this process watches. For any error JobFailed is raised, after its
    traceback went to the log.
    """
    die_with(os.getppid())
    # Snakemake's main process may have been killed before this.
    main_process = os.environ.get("FAIRCLUST_MAIN_PROCESS")
    if main_process is not None and not is_alive(int(main_process)):
        raise JobFailed(1)
    job = Job.of(snakemake)
    message = supervise(job, job.params["function"])
    if message:
        raise JobFailed(message)


def supervise(job: Job, function: str) -> str:
    """Have a function run for a job in another process; returns what went wrong, empty if nothing did.

    If a fit exceeds its limits or its process dies, the next process is told so and goes on with the other fits.
    """
    watch = Watch(ended={}, began=time.time())
    while True:
        with _process_for(replace(job, watch=watch), function) as (connection, process):
            end = _watch(connection, process, job)
        if isinstance(end, str):
            return end
        # Earlier fits may have left memory in their process, so this one is tried in a process of its own.
        if end.over_memory and not end.is_first:
            continue
        if end.key in watch.ended:  # the process has died again, and not in this fit
            return f"{job.rule}: {end.reason} (log: {job.log})"
        record = {name: getattr(end, name) for name in ("status", "reason", "over_memory", "wall_seconds")}
        record |= {"warnings": [], "cpu_seconds": None, "peak_memory_mb": None}
        watch = replace(watch, ended={**watch.ended, end.key: record})


@contextmanager
def _process_for(job: Job, function: str) -> Iterator[tuple[Connection, Any]]:
    """A process that does a job: a child of the server, which ends it when the connection is closed, or of this one."""
    name = os.environ.get(ADDRESS)
    if name and job.threads == 1:
        with suppress(ServerGone):
            connection = ask(name, job, function)
            with connection:
                yield connection, None
            return
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(job.threads))}
    # A fork is safe, because this process has no threads: it imports nothing heavy.
    context = multiprocessing.get_context("fork")
    connection, theirs = context.Pipe()
    arguments = (theirs, [connection], job, function, environment, os.getpid())
    process = context.Process(target=work, args=arguments)
    process.start()
    theirs.close()
    try:
        yield connection, process
    finally:
        connection.close()
        kill_family(process)


class _FitEnded(NamedTuple):
    """A fit that has exceeded its limits, or whose process has died."""

    key: str
    reason: str
    wall_seconds: float
    status: str = "error"
    over_memory: bool = False
    is_first: bool = True  # whether it was the first fit of its process


def _watch(connection: Connection, process: Any, job: Job) -> str | _FitEnded:
    """Wait for a job's answer, or until a fit must be ended or has ended the process."""
    died = f"{job.rule}: the job's process died without an answer (log: {job.log})"
    key, pid, most_seconds, most_mb, n_fits = "", 0, 0.0, 0.0, 0
    told = begun = time.perf_counter()
    state = "scored"
    while True:
        try:
            what, *more = connection.recv() if connection.poll(_POLL_SECONDS) else ("",)
            # A process that a fit has forked keeps the connection open, also if the job's process has died.
            if not what and process is not None and not process.is_alive() and not connection.poll():
                raise EOFError
        except (EOFError, OSError):
            if process is None:  # the server was killed
                return died
            process.join(5)
            what, more = "died", [process.exitcode]
        now = time.perf_counter()
        seconds = now - begun if state in _FITTING[1:] else 0.0
        if what == "answer":
            return more[0]
        if what == "died":
            if state not in _FITTING:
                return died
            reason = f"the fitting process died (exit code {more[0]}; -9: perhaps out of memory)"
            return _FitEnded(key, reason, seconds)
        if what == "fit":
            key, pid, most_seconds, most_mb = more
            state, told, n_fits = what, now, n_fits + 1
        elif what == "started":
            state, begun = what, now
        elif what in ("fitted", "scored"):
            state = what
        elif state == "fit" and now - told > _PREPARATION_SECONDS:
            reason = f"no fit begun {_PREPARATION_SECONDS:g} s after the process was started"
            return _FitEnded(key, reason, seconds, "timeout")
        elif state == "started" and seconds > most_seconds:
            reason = f"over the limit of {most_seconds:g} s (limits.cell_seconds)"
            return _FitEnded(key, reason, seconds, "timeout")
        elif state in _FITTING and (memory := _memory_of(pid)) > most_mb:
            reason = (
                f"{memory:.0f} MB, over the limit of {most_mb:.0f} MB (limits.cell_memory_mb, else what the job asked "
                "for)"
            )
            return _FitEnded(key, reason, seconds, over_memory=True, is_first=n_fits == 1)


def _memory_of(pid: int) -> float:
    """The resident megabytes of a process and its descendants."""
    import psutil

    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(member.memory_info().rss for member in family) / 2**20
    except psutil.Error:
        return 0.0


def kill_family(process: Any) -> None:
    """End a child process that leads a session, and all processes that it has started, also if it has ended itself."""
    import psutil

    with suppress(psutil.Error):
        for member in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.Error):
                member.kill()
    # Processes whose parents have ended are no descendants any more, but still in the group.
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def ask(name: str, job: Job, function: str) -> Connection:
    """Let the server fork a process for a job; returns the connection to it. ServerGone if the job has not begun."""
    try:
        with socket.socket(socket.AF_UNIX) as found:
            found.connect(f"\0{name}")
            if not is_same_user(found):
                raise ConnectionError(f"{name} is a server of another user")
            connection = Connection(found.detach())
        connection.send((job, function, dict(os.environ)))
        connection.recv()
    except (EOFError, OSError) as error:
        raise ServerGone(str(error)) from None
    return connection


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end of a connection is this user's. Nothing else protects the name (Linux)."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return user == os.getuid()
