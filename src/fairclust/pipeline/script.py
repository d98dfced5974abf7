"""Every Snakemake script runs a function of this package with its rule's threads and writes into its rule's log.

This module imports nothing heavy: thread settings must be in place before NumPy and numba are imported, and with an
import server (see `import_server`) this process only waits for an answer.
"""

from __future__ import annotations

import errno
import importlib
import multiprocessing
import os
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
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

_POLL_SECONDS = 0.25
# Reading data and compiling happen before the clock of a cell starts, so they have their own limit.
_PREPARATION_SECONDS = 600.0

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
class Watch:
    """The connection of a job's process to the script that watches its fits."""

    connection: Connection | None = None  # None if nobody watches
    # Cells whose fit has ended an earlier process of the job, by key: what their records say.
    ended: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def tell(self, *message: Any) -> None:
        if self.connection is not None:
            self.connection.send(message)

    @contextmanager
    def of_fit(self, key: str, seconds: float, memory_mb: float) -> Iterator[dict[str, Any] | None]:
        """Have a fit watched, or give the end of its record if it has ended an earlier process of the job."""
        ended = self.ended.get(key)
        if ended is None:
            self.tell("fit", key, os.getpid(), seconds, memory_mb)
        yield None if ended is None else dict(ended)
        self.tell("scored")


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
    watch: Watch = field(default_factory=Watch)

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

    The function runs in another process, whose fits this process watches. For any error JobFailed is raised, after its
    traceback went to the log.
    """
    die_with(os.getppid())
    if not _main_process_lives():
        raise JobFailed(1)
    message = supervise(Job.of(snakemake), function)
    if message:
        raise JobFailed(message)


def supervise(job: Job, function: str) -> str:
    """Have a function run for a job in another process; returns what went wrong, empty if nothing did.

    If a fit exceeds its limits or its process dies, the next process is told so and goes on with the other fits.
    """
    ended: dict[str, dict[str, Any]] = {}
    while True:
        with _process_for(replace(job, watch=Watch(ended=ended)), function) as (connection, process):
            try:
                return _watch(connection, process, job)
            except _FitEnded as end:
                if end.key in ended:
                    raise
                ended[end.key] = end.record


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
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(job.threads)
    # A fork is safe, because this process has no threads: it imports nothing heavy.
    context = multiprocessing.get_context("fork")
    connection, theirs = context.Pipe()
    arguments = (theirs, [connection], job, function, dict(os.environ), os.getpid())
    process = context.Process(target=work, args=arguments)
    process.start()
    theirs.close()
    try:
        yield connection, process
    finally:
        connection.close()
        kill_family(process)


class _FitEnded(Exception):
    """A fit has exceeded its limits, or its process has died."""

    def __init__(
        self, key: str, reason: str, seconds: float, status: str = "error", over_memory: bool = False
    ) -> None:
        super().__init__(reason)
        self.key = key
        self.record = {
            "status": status,
            "reason": reason,
            "over_memory": over_memory,
            "warnings": [],
            "wall_seconds": seconds,
            "cpu_seconds": None,
            "peak_memory_mb": None,
        }


def _watch(connection: Connection, process: Any, job: Job) -> str:
    """Wait for a job's answer. _FitEnded if a fit must be ended, or has ended the process."""
    died = f"{job.rule}: the job's process died without an answer (log: {job.log})"
    key, pid, most_seconds, most_mb = "", 0, 0.0, 0.0
    told = begun = time.perf_counter()
    state = ""
    while True:
        try:
            message = connection.recv() if connection.poll(_POLL_SECONDS) else ("",)
        except (EOFError, OSError):
            if process is None:  # the server was killed
                return died
            process.join(5)
            message = ("died", process.exitcode)
        now = time.perf_counter()
        seconds = now - begun if state in ("started", "fitted") else 0.0
        if message[0] == "answer":
            return message[1]
        if message[0] == "died":
            if not state:
                return died
            reason = f"the fitting process died (exit code {message[1]}; -9: perhaps out of memory)"
            raise _FitEnded(key, reason, seconds)
        if message[0] == "fit":
            state, told = "fit", now
            key, pid, most_seconds, most_mb = message[1:]
        elif message[0] == "started":
            state, begun = "started", now
        elif message[0] == "fitted":
            state = "fitted"
        elif message[0] == "scored":
            state = ""
        elif state == "fit" and now - told > _PREPARATION_SECONDS:
            reason = f"no fit begun {_PREPARATION_SECONDS:g} s after the process was started"
            raise _FitEnded(key, reason, seconds, "timeout")
        elif state == "started" and seconds > most_seconds:
            reason = f"over the limit of {most_seconds:g} s (limits.cell_seconds)"
            raise _FitEnded(key, reason, seconds, "timeout")
        elif state and (memory := _memory_of(pid)) > most_mb:
            reason = (
                f"{memory:.0f} MB, over the limit of {most_mb:.0f} MB (limits.cell_memory_mb, else what the job asked "
                "for)"
            )
            raise _FitEnded(key, reason, seconds, over_memory=True)


def _memory_of(pid: int) -> float:
    """The resident megabytes of a process and its descendants."""
    import psutil

    try:
        process = psutil.Process(pid)
        family = [process, *process.children(recursive=True)]
        return sum(member.memory_info().rss for member in family) / 2**20
    except psutil.Error:
        return 0.0


def ask(name: str, job: Job, function: str) -> Connection:
    """Let the server fork a process for a job; returns the connection to it. ServerGone if the job has not begun."""
    try:
        connection = _connect(name)
        connection.send((job, function, dict(os.environ)))
        connection.recv()
    except (EOFError, OSError) as error:
        raise ServerGone(str(error)) from None
    return connection


def work(
    connection: Connection,
    others: Iterable[Any],
    job: Job,
    function: str,
    environment: Mapping[str, str],
    parent: int,
) -> None:
    """What the process of a job does. `others` are connections of other processes that it has inherited."""
    os.setsid()
    die_with(parent)
    # A keyboard interrupt reaches all processes of the terminal; the script decides which of them end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # If this process held them open, their scripts would not notice the end of their own processes.
    for other in others:
        other.close()
    os.environ.clear()
    os.environ.update(environment)
    os.environ.pop(ADDRESS, None)
    os.chdir(job.folder)
    watched = replace(job, watch=Watch(connection, job.watch.ended))
    connection.send(("answer", run(watched, function)))


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
        is_first = job.resources.get("attempt", 1) == 1 and not job.watch.ended
        with log.open("w" if is_first else "a", buffering=1) as file:
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
