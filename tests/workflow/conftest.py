from multiprocessing import forkserver, resource_tracker

import psutil
import pytest

from working_folder import workers_in


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind(tmp_path_factory):
    yield
    # Python's own helper processes end with this process. They may have been started in the folder of a test.
    helpers = {resource_tracker._resource_tracker._pid, forkserver._forkserver._forkserver_pid}
    running = [
        process for process in workers_in(tmp_path_factory.getbasetemp()) if process.pid not in helpers
    ]
    _, left = psutil.wait_procs(running, timeout=2)
    lines = [f"{process.pid}: {' '.join(process.cmdline())}" for process in left]
    for process in left:
        process.kill()
    assert not lines, "processes outlive the tests:\n" + "\n".join(lines)
