"""Jobs for the tests of the import server, and a script that asks for them."""

import os
import subprocess
import sys
import time
from pathlib import Path

from fairclust.pipeline.job import ADDRESS, Job, supervise


def job_in(folder, **params):
    return Job("rule", {}, [], params, {}, {}, 1, str(folder / "job.log"), str(folder), {})


def write(job):
    found = {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "threads": os.environ["OMP_NUM_THREADS"],
        "cwd": str(Path.cwd()),
    }
    print("in the log")
    Path("written").write_text(repr(found))


def fail(job):
    raise ValueError("no idea")


def die(job):
    os._exit(3)


def fork_and_die(job):
    forked = os.fork()
    if not forked:
        time.sleep(97)
    Path("forked").write_text(str(forked))
    os._exit(3)


def wait(job):
    """Start a process in a session of its own, and wait."""
    child = subprocess.Popen(["sleep", "97.5"], start_new_session=True)
    Path("waiting").write_text(f"{os.getpid()} {child.pid}")
    time.sleep(97)


def ask(address, job, function):
    """Have the server at an address do a job."""
    os.environ[ADDRESS] = address
    return supervise(job, function)


if __name__ == "__main__":
    address, folder, function = sys.argv[1:]
    print(ask(address, job_in(Path(folder)), f"server_jobs:{function}"), end="")
