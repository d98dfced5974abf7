"""SIGKILL at any moment: the documented way to continue gives the scores of an undisturbed run."""

import json
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from working_folder import METHOD, Project

SEEDS = 6
COUNTING = """
        import os, time
        with open("fits.txt", "a") as file:
            file.write(f"{self.lam} {self.random_state} {len(X)}\\n")
        time.sleep(0.2)
        while os.path.exists("hold"):
            time.sleep(0.05)
"""


def new_project(folder):
    """Two fit jobs of six cells each in one store, which write down what they fit."""
    project = Project(folder)
    text = METHOD.format(name="Stripes", factor=1).replace("        # A comment.\n", COUNTING)
    project.write("my_methods/stripes.py", text)
    stripes = {"class": "my_methods.stripes.Stripes", "grid": {"lam": [0, 1]}}
    project.config["methods"]["stripes"] = stripes
    run = {"datasets": ["blobs"], "methods": ["stripes"], "seeds": SEEDS, "parts": {"blobs": 2}}
    project.config["run"] = run
    project.config["report"] = {}
    return project


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("undisturbed"))
    project.run()
    return project.scores(), project


def finished_cells(project):
    """Moments at which the cells in the store were finished; reads them all."""
    records = []
    for file in project.folder.glob("results/cells/*/*/*/*.npz"):
        # While a run goes on, cells move into packs.
        with suppress(FileNotFoundError), np.load(file) as cell:
            records.append(json.loads(cell["record"].tobytes()))
    for file in project.folder.glob("results/cells/*/*/*/*.parquet"):
        records += map(json.loads, pq.read_table(file)["record"].to_pylist())
    # A fit whose process is killed is finished as well, as an error, and is tried again.
    good = [record for record in records if record["status"] == "ok"]
    return {(r["dataset"], r["params"]["lam"], r["seed"]): r["finished"] for r in good}


def kill(process, whom, chance):
    """SIGKILL Snakemake, or as soon as there is one a process that works for it."""
    if whom == "snakemake":
        process.kill()
        return
    while process.poll() is None:
        workers = psutil.Process(process.pid).children(recursive=True)
        if workers:
            chance.choice(workers).send_signal(signal.SIGKILL)
            return
    raise AssertionError("the run ended before there was anybody to kill")


def fits_begun(project):
    """Fits so far, by parameters; without those that only have the code compiled."""
    file = project.folder / "fits.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line for line in lines if line.endswith(" 600"))


def continue_and_compare(project, undisturbed, process):
    """What the README says after a kill, then every promise."""
    output, _ = process.communicate()
    kept = finished_cells(project)
    project.run("--unlock")
    output += project.run()
    assert project.scores() == undisturbed
    now = finished_cells(project)
    assert {cell: now[cell] for cell in kept} == kept, "a finished cell was fitted again"
    assert "cannot be read" not in output
    assert not list(project.folder.rglob("*.corrupt"))
    logs = "".join(log.read_text() for log in project.folder.glob("results/logs/**/*.log"))
    assert "cannot be read" not in logs
    return fits_begun(project)


@pytest.mark.parametrize("whom", ["snakemake", "worker"])
def test_a_kill_in_the_middle_of_the_fits(tmp_path, undisturbed, whom):
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    while len(list(project.folder.glob("results/cells/*/*/*/*.npz"))) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    kill(process, whom, random.Random(0))
    fits = continue_and_compare(project, undisturbed[0], process)
    # Two values of lambda; at most a cell in flight in each of two jobs is fitted twice.
    assert sum(fits.values()) <= 2 * SEEDS + 2


def mount(*options, at):
    """Mount something, or skip the test where that is not allowed."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(at)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_a_full_disk_says_so_and_the_same_command_goes_on_when_there_is_room(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    results = project.folder / "results"
    mount("-t", "tmpfs", "-o", "size=110k", "none", at=results)
    try:
        output = project.run("--retries", "0", code=1)
        assert "The disk is full. What is finished is kept" in output
        assert "Traceback" not in output
        kept = finished_cells(project)
        assert kept
        mount("-o", "remount,size=50m", at=results)
        project.run()
        assert project.scores() == undisturbed[0]
        now = finished_cells(project)
        assert {cell: now[cell] for cell in kept} == kept
    finally:
        subprocess.run(["umount", str(results)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_results_that_cannot_be_written_say_so_and_stay_as_they_are(tmp_path, finished):
    project = copy_of(finished, tmp_path / "project")
    results = project.folder / "results"
    before = {path: path.read_bytes() for path in results.rglob("*") if path.is_file()}
    mount("--bind", str(results), at=results)
    try:
        mount("-o", "remount,ro,bind", at=results)
        project.config["run"]["seeds"] = SEEDS + 1
        output = project.run("--retries", "0", code=1)
        assert "Write-protected output files for rule fit_block" in output
    finally:
        subprocess.run(["umount", str(results)], check=True)
    assert {path: path.read_bytes() for path in results.rglob("*") if path.is_file()} == before


@pytest.fixture(scope="module")
def finished(undisturbed):
    return undisturbed[1]


def copy_of(project, folder):
    shutil.copytree(project.folder, folder, symlinks=True)
    return new_project(folder)


def test_damaged_cells_and_tables_are_named_and_made_again(tmp_path, finished):
    project = copy_of(finished, tmp_path / "project")
    results = project.folder / "results"
    first, second = sorted(results.glob("cells/blobs/stripes/k3/pack*.parquet"))
    kept = pq.read_table(second)["key"].to_pylist()
    first.write_bytes(first.read_bytes()[:-30])
    indexes = sorted(results.glob("fits/blobs/stripes/*.jsonl"))
    indexes[0].unlink()
    indexes[1].write_bytes(indexes[1].read_bytes()[:-200])
    output = project.run("--retries", "0", code=1)
    assert "k3-2of2.jsonl is damaged" in output
    assert "Fix: delete it and run again; finished cells are kept" in output
    indexes[1].unlink()
    output = project.run()
    assert (
        f"damaged, set aside, its cells computed again: {first.relative_to(project.folder)}.corrupt" in output
    )
    assert project.scores() == finished.scores()
    runs = [one.cells().set_index("key").finished[kept] for one in (finished, project)]
    assert (runs[0] == runs[1]).all()


def test_a_second_run_in_the_same_folder_is_refused_and_disturbs_nothing(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    hold = project.write("hold", "")
    first = project.start("--cores", "2")
    while not (project.folder / "fits.txt").exists():
        assert first.poll() is None
        time.sleep(0.05)
    output = project.run(code=1)
    hold.unlink()
    assert "cannot be locked" in output
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert project.scores() == undisturbed[0]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_a_random_moment(tmp_path, undisturbed, number):
    chance = random.Random(number)
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    # Most of the time goes into starting programs; so the moment is drawn among the fits, each as likely.
    moment = chance.randrange(2 * SEEDS)
    while sum(fits_begun(project).values()) < moment:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.5 if moment else 5))
    whom = ["snakemake", "worker"][number % 2]
    kill(process, whom, chance)
    done = len(finished_cells(project))
    fits = continue_and_compare(project, undisturbed[0], process)
    print(f"killed: {whom} after {done} cells; {sum(fits.values())} fits for {2 * SEEDS} cells")
    assert sum(fits.values()) <= 2 * SEEDS + 2
