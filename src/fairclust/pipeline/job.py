"""A job of a rule as plain data, and the run of its function in the process of the job.

This module and `script` import nothing heavy: thread settings must be in place before NumPy and numba are imported.
"""

from __future__ import annotations

import errno
import json
import math
import os
import pkgutil
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

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
