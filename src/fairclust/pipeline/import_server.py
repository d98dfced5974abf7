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
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fairclust.pipeline.script import ADDRESS, SIZE, THREAD_VARIABLES, Job, die_with, run
from fairclust.temporary import is_alive

# Modules that nearly every job needs.
_PRELOADED = (
    "fairclust.pipeline.fit_block",
    "fairclust.base",
    "fairclust.metrics.table",
    "fairclust.pipeline.scores",
)


def start() -> subprocess.Popen[bytes]:
    """Start a server as a child of this process, and tell the scripts of this process where it is.

    It ends with this process, or when `stop` is called.
    """
    _remove_sockets_of_the_dead()
    folder = tempfile.mkdtemp(prefix=f"fairclust-{os.getpid()}-")
    address = str(Path(folder) / "socket")
    environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, "1")}
    # With -P this folder is not searched for modules, so that its classes cannot hide those of a job's own folder.
    server = subprocess.Popen(
        [sys.executable, "-P", "-m", "fairclust.pipeline.import_server", address, str(os.getpid())],
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    os.environ[ADDRESS] = address
    return server


def _remove_sockets_of_the_dead() -> None:
    """A server that was killed leaves its socket behind."""
    for folder in Path(tempfile.gettempdir()).glob("fairclust-*-*"):
        pid = folder.name.split("-")[1]
        if pid.isdigit() and not is_alive(int(pid)):
            with contextlib.suppress(OSError):  # it is another user's
                (folder / "socket").unlink(missing_ok=True)
                folder.rmdir()


def stop(server: subprocess.Popen[bytes] | None) -> None:
    """End a server, if there is one."""
    if server is None:
        return
    os.environ.pop(ADDRESS, None)
    server.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(timeout=5)


def _read_request(connection: socket.socket) -> dict[str, Any] | None:
    data = b""
    connection.settimeout(10)
    try:
        while len(data) < SIZE.size or len(data) < SIZE.size + SIZE.unpack_from(data)[0]:
            part = connection.recv(1 << 16)
            if not part:
                return None
            data += part
    except OSError:
        return None
    # Only scripts of the same user can connect: the socket lies in a folder of mode 0700.
    return pickle.loads(data[SIZE.size :])


class _Server:
    def __init__(self, address: str) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(address)
        self._listener.listen(128)
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, socket.socket] = {}
        # A pipe that wakes the loop when a child ends.
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._wake, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj == self._wake:
                    os.read(self._wake, 1 << 12)
                elif isinstance(key.fileobj, socket.socket):
                    self._hang_up(key.fileobj)
            self._bury()

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        request = _read_request(connection)
        if request is None:
            connection.close()
            return
        function = request["function"]
        with contextlib.suppress(Exception):  # the child says what is wrong
            importlib.import_module(function.partition(":")[0])
        connection.setblocking(True)
        connection.sendall(b"+")
        server = os.getpid()
        child = os.fork()
        if child == 0:
            self._child(connection, request, server)
        self._children[child] = connection
        self._selector.register(connection, selectors.EVENT_READ)

    def _child(self, connection: socket.socket, request: dict[str, Any], server: int) -> None:
        code = 1
        try:
            os.setsid()
            die_with(server)
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._listener.close()
            for other in self._children.values():
                other.close()
            self._selector.close()
            job: Job = request["job"]
            os.environ.clear()
            os.environ.update(request["environment"])
            os.environ.pop(ADDRESS, None)
            for variable in THREAD_VARIABLES:
                os.environ[variable] = "1"
            os.chdir(job.folder)
            message = run(job, request["function"])
            connection.sendall(message.encode() + b"\0")
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _hang_up(self, connection: socket.socket) -> None:
        """Kill the child of a script that has ended, with all processes that the child has started."""
        self._selector.unregister(connection)
        for child, own in self._children.items():
            if own is connection:
                _kill_family(child)

    def _bury(self) -> None:
        while self._children:
            try:
                child, _ = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not child:
                return
            connection = self._children.pop(child, None)
            if connection is not None:
                with contextlib.suppress(KeyError):
                    self._selector.unregister(connection)
                connection.close()


def _kill_family(pid: int) -> None:
    """Kill a process and all of its descendants, including those that lead their own sessions."""
    import psutil

    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for member in [*process.children(recursive=True), process]:
            with contextlib.suppress(psutil.Error):
                member.kill()


def _main(address: str, parent: int) -> None:
    def leave(*_: object) -> None:
        # Not by sys.exit: unloading all modules in order takes seconds, and there is nothing to save.
        with contextlib.suppress(OSError):
            Path(address).unlink()
            Path(address).parent.rmdir()
        os._exit(0)

    die_with(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, leave)
    server = _Server(address)
    try:
        for module in _PRELOADED:
            importlib.import_module(module)
        server.serve()
    except BaseException:
        import traceback

        traceback.print_exc()
        leave()


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]))
