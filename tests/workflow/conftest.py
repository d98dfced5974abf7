from multiprocessing import resource_tracker

import psutil
import pytest

from working_folder import workers_in


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind(tmp_path_factory):
    yield
    # Python's own tracker of shared memory lives as long as this process, in the folder where it was first needed.
    tracker = resource_tracker._resource_tracker._pid
    running = [process for process in workers_in(tmp_path_factory.getbasetemp()) if process.pid != tracker]
    _, left = psutil.wait_procs(running, timeout=2)
    lines = [f"{process.pid}: {' '.join(process.cmdline())}" for process in left]
    for process in left:
        process.kill()
    assert not lines, "processes outlive the tests:\n" + "\n".join(lines)
