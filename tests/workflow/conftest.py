import pytest

from working_folder import workers_in


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left_behind(tmp_path_factory):
    yield
    left = list(workers_in(tmp_path_factory.getbasetemp()))
    lines = [f"{process.pid}: {' '.join(process.cmdline())}" for process in left]
    for process in left:
        process.kill()
    assert not lines, "processes outlive the tests:\n" + "\n".join(lines)
