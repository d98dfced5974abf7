"""A job of a rule as plain data, and the run of its function in a process whose fits the script of the rule watches.

The process is forked by the import server (see `import_server`) or by the script itself. A fit that exceeds its limits
of time or memory, or ends its process, becomes a record, and another process goes on with the job.

Nothing heavy is imported here: thread settings must be in place before NumPy and numba are imported.
"""

from __future__ import annotations

import errno
import json
import math
import multiprocessing
import os
import pkgutil
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
from typing import Any, NamedTuple

from fairclust.outputs import is_alive

ADDRESS = "FAIRCLUST_IMPORT_SERVER"
"""The environment variable with the name of the server. A run that finds it set starts no server of its own."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

_POLL_SECONDS = 0.25
# Reading data and compiling happen before the clock of a cell starts, so they have their own limit.
_PREPARATION_SECONDS = 600.0
# What a job tells when it turns to a fit, and when the fit itself begins and ends; at last it tells "scored".
_FITTING = ("fit", "started", "fitted")

_FORCED = "FAIRCLUST_FORCED"
_FULL = "\nThe disk is full. Finished fits are kept: make room, then run the same command again."
_READ_ONLY = "\nFix: make the folder of results writable, or set `results` to another one."
_HINTS = dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL)
_HINTS |= dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), _READ_ONLY)


@dataclass(frozen=True)
class Watch:
    """The connection of a job's process to the script that watches its fits."""

    connection: Connection | None = None  # None if nobody watches
    # Cells whose fit has ended an earlier process of the job, by key: what their records say.
    ended: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    # When the first process of the job began, in seconds since the epoch. Its fits are not tried again.
    began: float = math.inf

    def tell(self, *message: Any) -> None:
        if self.connection is not None:
            self.connection.send(message)


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
        named = {
            name: [str(path) for path in ([value] if isinstance(value, str | Path) else value)]
            for name, value in snakemake.input.items()
        }
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


def remember_forced(workflow: Any) -> None:
    """Tell the processes of all jobs what the user forces, in an environment variable, also on other machines.

    Only Snakemake's main process knows `--forcerun`, `--force` and `--forceall`, once it builds the graph of jobs. As
    a parameter of the rule, what is forced would let the next run without these options fit every cell again.
    """
    asked = workflow.dag_settings
    if _FORCED in os.environ or asked is None or not workflow.is_main_process:
        return
    names = set(asked.forcerun) | (set(asked.targets) if asked.forcetargets else set())
    forced = {"since": time.time(), "all": bool(asked.forceall), "names": sorted(map(str, names))}
    os.environ[_FORCED] = json.dumps(forced)


def forced_since(rule: str, output: str) -> float:
    """The time from which on the job of a rule with this output counts cells as finished; 0 if it is not forced."""
    asked = json.loads(os.environ.get(_FORCED, '{"all": false, "names": []}'))
    names = {os.path.normpath(name) for name in asked["names"]}
    is_forced = asked["all"] or names & {rule, os.path.normpath(output)}
    return float(asked["since"]) if is_forced else 0.0


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
    os.chdir(job.folder)
    watched = replace(job, watch=replace(job.watch, connection=connection))
    connection.send(("answer", run(watched, function)))


def run(job: Job, function: str) -> str:
    """Run a function for a job in this process; returns what went wrong, empty if nothing did."""
    sys.path.insert(0, job.folder)  # so that classes in the user's working folder can be imported
    log, began = Path(job.log), min(time.time(), job.watch.began)
    try:
        from fairclust.pipeline.results_folder import digest_file, write_digests

        log.parent.mkdir(parents=True, exist_ok=True)
        digest_file(log).unlink(missing_ok=True)
        # If a job is tried again, its log keeps the messages of the earlier attempts.
        is_first = job.resources.get("attempt", 1) == 1 and not job.watch.ended
        with log.open("w" if is_first else "a", buffering=1) as file:
            try:
                with redirect_stdout(file), redirect_stderr(file):
                    pkgutil.resolve_name(function)(job)
                log.with_suffix(".seconds").write_text(f"{time.time() - began:.2f}\n")
                write_digests(job.output, log, job.params.get("remade", 0))
            except Exception:
                with suppress(OSError):  # a full disk has no room for the traceback either
                    traceback.print_exc(file=file)
                raise
    except Exception as error:
        hint = _HINTS.get(error.errno or 0, "") if isinstance(error, OSError) else ""
        return f"{job.rule}: {type(error).__name__}: {error}{hint}\n(full trace: {log})"
    return ""
