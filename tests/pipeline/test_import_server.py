"""The import server: jobs run in its children, and none of them outlives script, server or Snakemake."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
from server_jobs import ask, job_in

from fairclust.outputs import is_alive
from fairclust.pipeline import import_server, job
from fairclust.pipeline.job import ServerGone, run
from working_folder import wait_until

HERE = Path(__file__).parent
BESIDE_THE_TESTS = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the server is for Linux")


def waiting_in(folder):
    """Return the numbers of the processes of a job that waits, as soon as it does."""
    file = folder / "waiting"
    return [int(pid) for pid in wait_until(lambda: file.is_file() and file.read_text()).split()]


@pytest.fixture(scope="module")
def server():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", BESIDE_THE_TESTS)
        found = import_server.start()
        yield SimpleNamespace(process=found, address=os.environ["FAIRCLUST_IMPORT_SERVER"])
        import_server.stop(found)
        assert found.poll() is not None
        assert "FAIRCLUST_IMPORT_SERVER" not in os.environ


def start_script(server, folder, function):
    command = [sys.executable, str(HERE / "server_jobs.py"), server.address, str(folder), function]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_a_job_runs_in_a_child_with_one_thread_in_its_folder_and_log(tmp_path, server):
    assert ask(server.address, job_in(tmp_path), "server_jobs:write") == ""
    found = ast.literal_eval((tmp_path / "written").read_text())
    assert found["parent"] == server.process.pid
    assert found["threads"] == "1"
    assert found["cwd"] == str(tmp_path)
    assert (tmp_path / "job.log").read_text() == "in the log\n"


def test_an_error_is_reported_with_the_log_and_the_server_goes_on(tmp_path, server):
    message = ask(server.address, job_in(tmp_path), "server_jobs:fail")
    assert message.startswith("rule: ValueError: no idea")
    assert "Traceback" in (tmp_path / "job.log").read_text()
    assert "no_such_module" in ask(server.address, job_in(tmp_path), "no_such_module:write")
    assert "died without an answer" in ask(server.address, job_in(tmp_path), "server_jobs:die")
    assert ask(server.address, job_in(tmp_path), "server_jobs:write") == ""


def test_noise_does_not_stop_the_server(tmp_path, server):
    import socket

    for noise in (b"", b"\x05\0\0\0\0\0\0\0ab", b"x"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"\0{server.address}")
            connection.sendall(noise)
    assert ask(server.address, job_in(tmp_path), "server_jobs:write") == ""


def test_a_killed_script_ends_its_job_and_all_processes_of_the_job(tmp_path, server):
    asking = start_script(server, tmp_path, "wait")
    pids = waiting_in(tmp_path)
    assert all(map(is_alive, pids))
    asking.kill()
    asking.wait()
    wait_until(lambda: not any(map(is_alive, pids)), 10)
    assert ask(server.address, job_in(tmp_path), "server_jobs:write") == ""


def test_a_job_that_dies_is_noticed_and_what_it_has_forked_ends(tmp_path, server):
    """The forked process keeps the connection and the sentinel of its parent open."""
    begin = time.monotonic()
    assert "died without an answer" in ask(server.address, job_in(tmp_path), "server_jobs:fork_and_die")
    assert time.monotonic() - begin < 60
    forked = int((tmp_path / "forked").read_text())
    wait_until(lambda: not is_alive(forked), 10)


STARTER = """
import sys, time
from fairclust.pipeline import import_server
server = import_server.start()
import os
print(os.environ["FAIRCLUST_IMPORT_SERVER"], server.pid, flush=True)
time.sleep(90)
"""


def test_server_and_jobs_end_when_snakemake_is_killed(tmp_path):
    environment = {**os.environ, "PYTHONPATH": BESIDE_THE_TESTS}
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTER], stdout=subprocess.PIPE, text=True, env=environment
    )
    address, server = parent.stdout.readline().split()
    asking = start_script(SimpleNamespace(address=address), tmp_path, "wait")
    job, _ = waiting_in(tmp_path)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_until(lambda: not is_alive(int(server)) and not is_alive(job), 5)
    output, _ = asking.communicate(timeout=20)
    assert "died without an answer" in output
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", "97.5"]:
            process.kill()  # the job's child survives, because it has a session of its own


def snakemake_of(folder, function="server_jobs:write"):
    class Named(list):
        def items(self):
            return []

    return SimpleNamespace(
        rule="rule", input=Named(), output=[], params={"function": function}, wildcards={}, resources={}, threads=1,
        log=[str(folder / "job.log")], config={},
    )  # fmt: skip


def test_a_script_works_without_a_server(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(job, "die_with", lambda parent: None)
    for variable in job.THREAD_VARIABLES:
        monkeypatch.setenv(variable, "7")
    for address in (None, str(tmp_path / "nobody")):
        if address is None:
            monkeypatch.delenv("FAIRCLUST_IMPORT_SERVER", raising=False)
        else:
            monkeypatch.setenv("FAIRCLUST_IMPORT_SERVER", address)
        job.main(snakemake_of(tmp_path))
        assert ast.literal_eval((tmp_path / "written").read_text())["parent"] == os.getpid()
        (tmp_path / "written").unlink()
    with pytest.raises(ServerGone):
        job.ask("nobody", job_in(tmp_path), "server_jobs:write")
    with pytest.raises(job.JobFailed, match=r"ValueError: no idea\n\(full trace: "):
        job.main(snakemake_of(tmp_path, "server_jobs:fail"))


def test_a_script_of_a_run_that_was_killed_does_nothing(tmp_path, monkeypatch):
    gone = subprocess.Popen(["true"])
    gone.wait()
    monkeypatch.setattr(job, "die_with", lambda parent: None)
    monkeypatch.setenv("FAIRCLUST_MAIN_PROCESS", str(gone.pid))
    with pytest.raises(job.JobFailed):
        job.main(snakemake_of(tmp_path))
    assert not (tmp_path / "written").exists()


def test_the_message_says_that_the_disk_is_full(tmp_path, monkeypatch):
    def full(job):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("server_jobs.write", full)
    message = run(job_in(tmp_path), "server_jobs:write")
    assert "The disk is full. Finished fits are kept: make room, then run the same command again." in message


def test_classes_where_the_server_was_started_do_not_hide_those_of_the_jobs_folder(tmp_path, monkeypatch):
    for folder in ("started", "job"):
        (tmp_path / folder / "my_methods").mkdir(parents=True)
    # Python prefers such a folder to one without this file, in any order of the path.
    (tmp_path / "started/my_methods/__init__.py").write_text("")
    (tmp_path / "job/my_methods/stripes.py").write_text("def write(job):\n    print('mine')\n")
    monkeypatch.chdir(tmp_path / "started")
    started = import_server.start()
    try:
        message = ask(os.environ[import_server.ADDRESS], job_in(tmp_path / "job"), "my_methods.stripes:write")
    finally:
        import_server.stop(started)
    assert message == ""
    assert (tmp_path / "job/job.log").read_text() == "mine\n"


def test_the_checkout_is_not_searched_for_the_classes_of_tests(root):
    assert root not in [Path(path).resolve() for path in sys.path]
