"""After SIGKILL, on a full disk and in read-only results, the documented way to resume loses only fits in flight."""

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress

import psutil
import pytest

from working_folder import METHOD, QUIET, Project, wait_until, workers_in

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SEEDS = 6
KILLS = int(os.environ.get("FAIRCLUST_KILLS", "5"))
COUNTING = """
        import os, time
        with open("fits.txt", "a") as file:
            file.write(f"{self.lam} {self.random_state} {len(X)}\\n")
        time.sleep(0.2)
"""


def new_project(folder):
    """Return a project with two fit jobs of six fits each. Every fit writes a line into a file."""
    project = Project(folder)
    text = METHOD.format(name="Stripes", factor=1).replace("        # A comment.\n", COUNTING)
    project.write("my_methods/stripes.py", text)
    stripes = "my_methods.stripes.Stripes"
    project.config["methods"] = {
        "low": {"class": stripes, "params": {"lam": 0}},
        "high": {"class": stripes, "params": {"lam": 1}},
    }
    project.config["run"] = {"datasets": ["blobs"], "methods": ["low", "high"], "seeds": SEEDS}
    project.config["report"] = QUIET
    return project


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("undisturbed"))
    project.run()
    return project


def fits_begun(project):
    """Count the fits so far, by parameters, without the small ones that only compile the code."""
    file = project.folder / "fits.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line for line in lines if line.endswith(" 600"))


def start_until(project, number):
    """Start a run, and return it as soon as a number of fits has begun."""
    process = project.start("--cores", "2")
    while fits_begun(project).total() < number:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    return process


def resume(project, undisturbed, lost):
    """Run again. The scores are those of an undisturbed run, and at most the fits in flight were made twice."""
    project.run()
    assert project.scores() == undisturbed.scores()
    assert 2 * SEEDS <= fits_begun(project).total() <= 2 * SEEDS + lost
    assert not [path for path in project.folder.rglob("*.tmp") if ".parquet" in path.name]


@pytest.mark.parametrize("number", range(KILLS))
def test_a_kill_at_a_random_moment_leaves_no_process_and_loses_only_fits_in_flight(
    tmp_path, undisturbed, number
):
    """Snakemake is killed, or one of its jobs. Orphans would go on writing."""
    chance = random.Random(number)
    project = new_project(tmp_path / "project")
    # Starting programs takes most of the time, so a fit is drawn, and the kill comes at a moment during it.
    moment = chance.randrange(2 * SEEDS)
    process = start_until(project, moment)
    time.sleep(chance.uniform(0, 0.5 if moment else 5))
    victims = psutil.Process(process.pid).children(recursive=True)
    if number % 2 == 0 or not victims:
        process.kill()
        wait_until(lambda: not list(workers_in(project.folder)), 2, "the end of every process")
    else:
        with suppress(psutil.Error):
            chance.choice(victims).send_signal(signal.SIGKILL)
    process.communicate()
    project.run("--unlock")
    resume(project, undisturbed, lost=2)


def test_an_interrupt_ends_the_run_and_the_same_command_resumes_it(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    # Processes that a shell starts in the background ignore the signal, and so do their children without this line.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = start_until(project, 2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not (project.results / "scores").exists()
    resume(project, undisturbed, lost=2)


def mount(*options, at):
    """Mount something, or skip the test where that is not allowed."""
    at.mkdir(exist_ok=True)
    if shutil.which("mount") is None:
        pytest.skip("needs mount")
    done = subprocess.run(["mount", *options, str(at)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def test_a_full_disk_is_reported_and_the_same_command_resumes_when_there_is_room(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    results = project.folder / "results"
    mount("-t", "tmpfs", "-o", "size=100k", "none", at=results)
    try:
        output = project.run("--retries", "0", code=1)
        assert "The disk is full. Finished fits are kept" in output and "Traceback" not in output
        mount("-o", "remount,size=50m", at=results)
        project.run()
        assert project.scores() == undisturbed.scores()
    finally:
        subprocess.run(["umount", str(results)], check=True)


def test_results_that_cannot_be_written_stay_as_they_are(tmp_path, undisturbed):
    project = undisturbed.copy(tmp_path / "project")
    results = project.folder / "results"
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    mount("--bind", str(results), at=results)
    try:
        mount("-o", "remount,ro,bind", at=results)
        project.config["run"]["seeds"] = SEEDS + 1
        output = project.run("--retries", "0", code=1)
    finally:
        subprocess.run(["umount", str(results)], check=True)
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before
    assert "Write-protected output files" in output and "Traceback" not in output
    assert re.search(r"^fit +2$", project.run("-n"), re.M)
