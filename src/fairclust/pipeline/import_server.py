"""A process that has everything imported and forks a child for each job of one Snakemake run on this machine.

Importing NumPy, SciPy, numba, scikit-learn and pandas takes seconds of processor time, and a run has hundreds of
jobs. The server imports once; a job's script sends what it is to do and waits. The server has one thread, also in
BLAS and numba, so that it can be forked safely; jobs with more threads do not use it.

- The server is a child of Snakemake's main process and dies with it; its children die with the server.
- When a script is killed its connection closes, and the server kills the script's child with all of its processes.
- If the server does not accept a job, the script does the work itself.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import secrets
import signal
import socket
import subprocess
import sys
from multiprocessing.connection import Connection, wait
from typing import Any

from fairclust.pipeline.job import ADDRESS, THREAD_VARIABLES, die_with, is_same_user, kill_family, work

# Modules that nearly every job needs.
_PRELOADED = (
    "fairclust.pipeline.fit_block",
    "fairclust.base",
    "fairclust.metrics.table",
    "fairclust.pipeline.scores",
)


def start() -> subprocess.Popen[bytes]:
    """Start a server as a child of this process, and tell the scripts of this process its name.

    It ends with this process, or when `stop` is called.
    """
    # The name is in Linux's abstract namespace, so that a server which is killed leaves no file.
    name = f"fairclust-{os.getpid()}-{secrets.token_hex(8)}"
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    with socket.socket(socket.AF_UNIX) as listener:
        # Scripts can connect before the server has imported anything, and then wait for it.
        listener.bind(f"\0{name}")
        listener.listen(128)
        numbers = map(str, (listener.fileno(), os.getpid()))
        # With -P this folder is not searched for modules, so that its classes cannot hide those of a job's own folder.
        command = [sys.executable, "-P", "-m", "fairclust.pipeline.import_server", *numbers]
        fds = [listener.fileno()]
        server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, pass_fds=fds)
    os.environ[ADDRESS] = name
    return server


def stop(server: subprocess.Popen[bytes] | None) -> None:
    """End a server, if there is one."""
    if server is None:
        return
    os.environ.pop(ADDRESS, None)
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(timeout=5)


def _serve(listener: socket.socket) -> None:
    jobs: dict[Connection, Any] = {}
    while True:
        # A process that a fit has forked keeps the sentinel from being ready, so the job's process is asked as well.
        ready = wait([listener, *jobs, *(process.sentinel for process in jobs.values())], timeout=1)
        for connection, process in list(jobs.items()):
            # The script has its answer or was killed, or the job's process has ended.
            if connection in ready or process.sentinel in ready or not process.is_alive():
                kill_family(process)
                with contextlib.suppress(OSError):  # the script has ended
                    connection.send(("died", process.exitcode))
                connection.close()
                del jobs[connection]
        if listener in ready:
            _begin(listener, jobs)


def _begin(listener: socket.socket, jobs: dict[Connection, Any]) -> None:
    """Accept a connection, and fork a process for the job of its script."""
    accepted, _ = listener.accept()
    known = is_same_user(accepted)
    connection = Connection(accepted.detach())
    try:
        if not known or not connection.poll(10):
            raise EOFError
        job, function, environment = connection.recv()
        with contextlib.suppress(Exception):  # the child says what is wrong
            importlib.import_module(function.partition(":")[0])
        connection.send("begun")
        environment |= dict.fromkeys(THREAD_VARIABLES, "1")
        arguments = (connection, [listener, *jobs], job, function, environment, os.getpid())
        process = multiprocessing.get_context("fork").Process(target=work, args=arguments)
        process.start()
    # It is no script of this run, the script was killed, or the machine has no memory for another process.
    except Exception:
        connection.close()
        return
    jobs[connection] = process


if __name__ == "__main__":
    die_with(int(sys.argv[2]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=int(sys.argv[1])) as found:
        for module in _PRELOADED:
            importlib.import_module(module)
        _serve(found)
