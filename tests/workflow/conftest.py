import os

import psutil
import pytest


def workers_in(folder):
    """Processes that run in a folder, or name it in their command; none of this process' own line."""
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        if process.pid in mine:
            continue
        try:
            place = f"{process.cwd()}\0{chr(0).join(process.cmdline())}"
        except psutil.Error:
            continue
        if str(folder) in place and process.status() != psutil.STATUS_ZOMBIE:
            yield process


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind(tmp_path_factory):
    yield
    left = list(workers_in(tmp_path_factory.getbasetemp()))
    lines = [f"{process.pid}: {' '.join(process.cmdline())}" for process in left]
    for process in left:
        process.kill()
    assert not lines, "processes outlive the tests:\n" + "\n".join(lines)
