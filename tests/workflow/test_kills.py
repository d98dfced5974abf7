"""SIGKILL at any moment: the documented way to continue gives the scores of an undisturbed run."""

import json
import random
import signal
import time
from collections import Counter

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from working_folder import METHOD, Project

SEEDS = 6
COUNTING = """
        import time
        with open("fits.txt", "a") as file:
            file.write(f"{self.lam} {self.random_state} {len(X)}\\n")
        time.sleep(0.2)
"""


def new_project(folder):
    """Two fit jobs of twelve cells each, which write down what they fit."""
    project = Project(folder)
    text = METHOD.format(name="Stripes", factor=1).replace("        # A comment.\n", COUNTING)
    project.write("my_methods/stripes.py", text)
    stripes = {"class": "my_methods.stripes.Stripes", "grid": {"lam": [0, 1]}}
    project.config["methods"]["stripes"] = stripes
    project.config["datasets"]["others"] = {**project.config["datasets"]["blobs"], "params": {"seed": 1}}
    project.config["run"] = {"datasets": ["blobs", "others"], "methods": ["stripes"], "seeds": SEEDS}
    project.config["report"] = {"tables": ["overview"]}
    return project


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("undisturbed"))
    begin = time.monotonic()
    project.run()
    return project.scores(), time.monotonic() - begin


def finished_cells(project):
    """Moments at which the cells in the store were finished; reads them all."""
    records = []
    for file in project.folder.glob("results/cells/*/*/*/*.npz"):
        with np.load(file) as cell:
            records.append(json.loads(cell["record"].tobytes()))
    for file in project.folder.glob("results/cells/*/*/*/*.parquet"):
        records += map(json.loads, pq.read_table(file)["record"].to_pylist())
    return {(r["dataset"], r["params"]["lam"], r["seed"]): r["finished"] for r in records}


def kill(process, whom, chance):
    """SIGKILL Snakemake, or a process that works for it; says whom."""
    if whom == "worker":
        workers = psutil.Process(process.pid).children(recursive=True)
        if not workers:
            return "nobody"
        worker = chance.choice(workers)
        worker.send_signal(signal.SIGKILL)
        return "worker"
    process.kill()
    return "snakemake"


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
    fits = [line.split() for line in (project.folder / "fits.txt").read_text().splitlines()]
    return Counter(tuple(fit) for fit in fits if fit[2] == "600")


@pytest.mark.parametrize("whom", ["snakemake", "worker"])
def test_a_kill_in_the_middle_of_the_fits(tmp_path, undisturbed, whom):
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    while len(list(project.folder.glob("results/cells/*/*/*/*.npz"))) < 3:
        assert process.poll() is None
        time.sleep(0.05)
    kill(process, whom, random.Random(0))
    fits = continue_and_compare(project, undisturbed[0], process)
    # Two data sets, two values of lambda; at most a cell in flight in each of two jobs is fitted twice.
    assert sum(fits.values()) <= 2 * 2 * SEEDS + 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_a_random_moment(tmp_path, undisturbed, number):
    chance = random.Random(number)
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    time.sleep(chance.uniform(0, undisturbed[1]))
    whom = kill(process, ["snakemake", "worker"][number % 2], chance)
    fits = continue_and_compare(project, undisturbed[0], process)
    print(f"killed: {whom}; {sum(fits.values())} fits for {4 * SEEDS} cells")
    assert sum(fits.values()) <= 2 * 2 * SEEDS + 2
