"""What every script does before and after its work: environment, log, and the end of a job."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from fairclust.pipeline.script import BASELINE, end_of_last_attempt, job
from working_folder import wait_for_end, wait_until


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """Return a job of Snakemake's, as scripts get it. The environment is put back after the test."""
    monkeypatch.setattr("fairclust.pipeline.script.die_with", lambda parent: None)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", list(sys.path))
    resources = {"attempt": 1, "mem_mb": 2000, "runtime": 60}
    log = [tmp_path / "logs/fit/a.log"]
    return SimpleNamespace(rule="fit", threads=3, config={}, log=log, resources=resources)


def test_a_job_has_its_threads_the_baseline_and_a_log(asked):
    with job(asked):
        print("said")
        print("complained", file=sys.stderr)
        assert os.environ["OMP_NUM_THREADS"] == os.environ["NUMBA_NUM_THREADS"] == "3"
        if os.uname().machine == "x86_64":
            assert os.environ["NUMBA_CPU_NAME"] == BASELINE["NUMBA_CPU_NAME"]
        assert str(Path.cwd()) in sys.path
    lines = asked.log[0].read_text().splitlines()
    assert lines[:3] == ["job begun: fit (attempt=1, mem_mb=2000, runtime=60)", "said", "complained"]
    assert lines[3].startswith("job ended: well after ")


def test_the_processor_is_left_alone_if_the_user_says_so(asked, monkeypatch):
    for name in BASELINE:
        monkeypatch.delitem(os.environ, name, raising=False)
    asked.config["same_digits"] = False
    with job(asked):
        assert not set(BASELINE) & set(os.environ)


@pytest.mark.parametrize(
    "error, message",
    [
        (ValueError("no such key"), "fit: ValueError: no such key\n"),
        (OSError(errno.ENOSPC, "No space left"), "The disk is full. Finished fits are kept: make room"),
        (OSError(errno.EROFS, "Read-only"), "Fix: make the folder of results writable, or set `results`"),
    ],
)
def test_a_failed_job_says_why_and_the_trace_is_in_its_log(asked, error, message):
    with pytest.raises(SystemExit) as ended, job(asked):
        raise error
    assert message in str(ended.value) and f"(full trace: {asked.log[0]})" in str(ended.value)
    text = asked.log[0].read_text()
    assert "Traceback" in text and f"job ended: {type(error).__name__}" in text


def test_logs_are_appended_and_say_how_the_last_attempt_ended(asked):
    log = asked.log[0]
    assert end_of_last_attempt(log) == ""
    for _ in range(2):
        with job(asked):
            pass
    assert end_of_last_attempt(log) == ""
    with pytest.raises(SystemExit), job(asked):
        raise KeyError("x")
    log.unlink()  # as Snakemake does before every attempt
    asked.resources["attempt"] = 2
    with job(asked):
        print(end_of_last_attempt(log))
    assert "KeyError: 'x'" in log.read_text().splitlines()[-2]
    # An attempt that was killed has written no end.
    with log.open("a") as file:
        file.write("job begun: fit (attempt=3, mem_mb=8000)\n[1/9] ok\njob begun: fit (attempt=4)\n")
    assert end_of_last_attempt(log) == (
        "killed without a message, perhaps out of memory or with its machine: fit (attempt=3, mem_mb=8000)"
    )


WAIT = """
import sys, time
from types import SimpleNamespace
from fairclust.pipeline.script import job
with job(SimpleNamespace(rule="fit", threads=1, config={}, log=[sys.argv[1]], resources={})):
    print("works")
    time.sleep(60)
"""


def test_the_signal_of_a_time_limit_is_in_the_log(tmp_path):
    log = tmp_path / "a.log"
    process = subprocess.Popen([sys.executable, "-c", WAIT, log])
    wait_until(lambda: log.exists() and "works" in log.read_text())
    process.terminate()
    assert process.wait(10) == 128 + 15
    end = log.read_text().splitlines()[-1]
    assert end.startswith("job ended: SIGTERM after ") and end.endswith("its time limit, or cancelled")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_job_ends_when_snakemake_is_killed(tmp_path):
    log = tmp_path / "a.log"
    start = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    parent = subprocess.Popen([sys.executable, "-c", start, WAIT, log])
    wait_until(lambda: log.exists() and "works" in log.read_text())
    (child,) = psutil.Process(parent.pid).children()
    parent.kill()
    parent.wait()
    wait_for_end(child, 5)
