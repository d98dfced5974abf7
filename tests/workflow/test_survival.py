"""After SIGKILL at any moment, the documented way to resume gives the scores of an undisturbed run."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress

import psutil
import pytest
from fairclust.pipeline.cell_store import cell_path, read_output, read_record

from working_folder import METHOD, QUIET, Project, workers_in

SEEDS = 6
KILLS = int(os.environ.get("FAIRCLUST_KILLS", "40"))
COUNTING = """
        import os, time
        with open("fits.txt", "a") as file:
            file.write(f"{self.lam} {self.random_state} {len(X)}\\n")
        time.sleep(0.2)
        while os.path.exists("hold"):
            time.sleep(0.05)
"""


def new_project(folder):
    """Return a project with two fit jobs of six cells each. Every fit writes a line into a file."""
    project = Project(folder)
    text = METHOD.format(name="Stripes", factor=1).replace("        # A comment.\n", COUNTING)
    project.write("my_methods/stripes.py", text)
    project.config["methods"] = {
        name: {"class": "my_methods.stripes.Stripes", "params": {"lam": lam}}
        for name, lam in (("low", 0), ("high", 1))
    }
    # Other memory than the default's gives the method a job of its own.
    project.config["methods"]["high"]["jobs"] = {"mem_mb": 1000}
    project.config["run"] = {"datasets": ["blobs"], "methods": ["low", "high"], "seeds": SEEDS}
    project.config["report"] = QUIET
    return project


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("undisturbed"))
    project.run()
    return project


def finished_cells(project):
    """Return the time at which each cell was finished, from the store."""
    records = filter(None, map(read_record, project.folder.glob("results/cells/*/*.cell")))
    # A fit whose process is killed has a record, too. Its status is `error`, and it is tried again.
    good = [record for record in records if record["status"] == "ok"]
    return {(r["dataset"], r["params"]["lam"], r["seed"]): r["finished"] for r in good}


def fits_begun(project):
    """Count the fits so far, by parameters, without the small ones that only compile the code."""
    file = project.folder / "fits.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(line for line in lines if line.endswith(" 600"))


def kill(process, whom, chance):
    """Kill Snakemake, or one of its child processes as soon as there is one, by SIGKILL."""
    if whom == "snakemake":
        process.kill()
        return
    while process.poll() is None:
        with suppress(psutil.Error):
            workers = psutil.Process(process.pid).children(recursive=True)
            if workers:
                chance.choice(workers).send_signal(signal.SIGKILL)
                return
    raise AssertionError("the run ended before there was anybody to kill")


def resume(project, undisturbed):
    """Run again. The scores are those of an undisturbed run, and no finished cell is fitted again."""
    kept = finished_cells(project)
    output = project.run()
    assert project.scores() == undisturbed.scores()
    now = finished_cells(project)
    assert {cell: now[cell] for cell in kept} == kept
    return output


def continue_and_compare(project, undisturbed, process):
    """Resume a killed run as the documentation says, check everything that it promises, and return the fits."""
    output, _ = process.communicate()
    project.run("--unlock")
    assert "damaged" not in output + resume(project, undisturbed)
    left = [path.name for path in project.folder.rglob("*") if path.name.endswith((".damaged", ".tmp"))]
    assert not [name for name in left if ".cell" in name]
    logs = "".join(log.read_text() for log in project.folder.glob("results/logs/**/*.log"))
    assert "damaged" not in logs
    return fits_begun(project)


def start_until(project, number):
    """Start a run, and return it as soon as a number of cells is finished."""
    process = project.start("--cores", "2")
    while len(finished_cells(project)) < number:
        assert process.poll() is None
        time.sleep(0.05)
    return process


def start_and_hold(project):
    """Start a run, and return it and the file that keeps its first fit from ending."""
    hold = project.write("hold", "")
    process = project.start("--cores", "2")
    while not (project.folder / "fits.txt").exists():
        assert process.poll() is None
        time.sleep(0.05)
    return process, hold


@pytest.mark.slow
def test_a_kill_leaves_no_process_and_the_same_command_resumes_the_run(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    process = start_until(project, 3)
    family = psutil.Process(process.pid).children(recursive=True)
    assert len(family) > 3
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=2)
    assert not [one for one in alive if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]
    assert not list(workers_in(project.folder))
    fits = continue_and_compare(project, undisturbed, process)
    # There are two jobs, and in each at most the cell in flight is fitted twice.
    assert sum(fits.values()) <= 2 * SEEDS + 2


@pytest.mark.slow
def test_a_worker_that_is_killed_is_replaced(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    process = start_until(project, 3)
    kill(process, "worker", random.Random(0))
    fits = continue_and_compare(project, undisturbed, process)
    assert sum(fits.values()) <= 2 * SEEDS + 2


@pytest.mark.slow
def test_an_interrupt_ends_at_once_and_makes_no_tables(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    # Processes that a shell starts in the background ignore the signal, and so do their children without this line.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    process = start_until(project, 2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "To resume, run the same command again" in output
    assert not (project.results / "scores").exists()
    resume(project, undisturbed)


def mount(*options, at):
    """Mount something, or skip the test where that is not allowed."""
    at.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(at)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_a_full_disk_is_reported_and_the_same_command_resumes_when_there_is_room(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    results = project.folder / "results"
    mount("-t", "tmpfs", "-o", "size=60k", "none", at=results)
    try:
        output = project.run("--retries", "0", code=1)
        assert "The disk is full. Finished fits are kept" in output
        mount("-o", "remount,size=50m", at=results)
        resume(project, undisturbed)
    finally:
        subprocess.run(["umount", str(results)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("mount") is None, reason="needs mount")
def test_results_that_cannot_be_written_stay_as_they_are(tmp_path, undisturbed):
    project = copy_of(undisturbed, tmp_path / "project")
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
    assert "results cannot be written" in output and "Fix: make it writable, or set" in output
    assert "Traceback" not in output


def copy_of(project, folder):
    shutil.copytree(project.folder, folder, symlinks=True)
    return new_project(folder)


def test_damaged_files_are_named_and_only_damaged_cells_are_fitted_again(tmp_path, undisturbed):
    project = copy_of(undisturbed, tmp_path / "project")
    torn, flipped = (project.results / f"fits/blobs/{name}-k3.cells" for name in ("low", "high"))
    before = finished_cells(project)
    bad = read_output(torn)[2]
    cell = cell_path(project.results, bad["key"])
    cell.write_bytes(cell.read_bytes()[:-1])
    torn.write_bytes(torn.read_bytes()[:-9])
    content = bytearray(flipped.read_bytes())
    content[-20] ^= 1
    flipped.write_bytes(content)
    output = project.run()
    for file in (torn, flipped):
        assert f"{file.relative_to(project.folder)} is damaged or was changed" in output
    assert project.scores() == undisturbed.scores()
    now = finished_cells(project)
    assert {at for at in now if now[at] != before[at]} == {("blobs", 0, bad["seed"])}


@pytest.mark.slow
def test_a_second_run_in_the_same_folder_is_refused_and_disturbs_nothing(tmp_path, undisturbed):
    project = new_project(tmp_path / "project")
    first, hold = start_and_hold(project)
    output = project.run(code=1)
    hold.unlink()
    assert "another run is using results" in output and "Traceback" not in output
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert project.scores() == undisturbed.scores()


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(20))
def test_a_kill_at_a_random_moment(tmp_path, undisturbed, number):
    chance = random.Random(number)
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    # Starting programs takes most of the time, so a fit is drawn, and the kill comes at a moment during it.
    moment = chance.randrange(2 * SEEDS)
    while sum(fits_begun(project).values()) < moment:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(chance.uniform(0, 0.5 if moment else 5))
    whom = ["snakemake", "worker"][number % 2]
    kill(process, whom, chance)
    done = len(finished_cells(project))
    fits = continue_and_compare(project, undisturbed, process)
    print(f"killed: {whom} after {done} cells; {sum(fits.values())} fits for {2 * SEEDS} cells")
    assert sum(fits.values()) <= 2 * SEEDS + 2


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", range(KILLS))
def test_no_process_outlives_a_killed_run_by_two_seconds(tmp_path, number):
    """Half of the kills happen within a tenth of a second after a script has started."""
    chance = random.Random(number)
    project = new_project(tmp_path / "project")
    process = project.start("--cores", "2")
    if number % 2:
        scripts = chance.randrange(1, 5)
        seen = set()
        while len(seen) < scripts and process.poll() is None:
            for worker in psutil.Process(process.pid).children(recursive=True):
                with suppress(psutil.Error):
                    if ".snakemake/scripts" in " ".join(worker.cmdline()):
                        seen.add(worker.pid)
        time.sleep(chance.uniform(0, 0.1))
    else:
        time.sleep(chance.uniform(0, 12))
    # `communicate` comes later, so that the process is a zombie meanwhile and its number is still taken.
    process.kill()
    begin = time.monotonic()
    left = [True]
    while left and time.monotonic() < begin + 2:
        time.sleep(0.05)
        left = list(workers_in(project.folder))
    assert not left
    process.communicate()


APART = ["unshare", "--pid", "--fork", "--mount-proc", "--net", "--uts"]


@pytest.mark.slow
def test_a_second_machine_with_the_same_results_folder_is_refused(tmp_path, undisturbed):
    """Each has its own processes and working folder, so Snakemake's lock does not see the other run."""
    if shutil.which("unshare") is None or subprocess.run([*APART, "true"], check=False).returncode:
        pytest.skip("no namespaces can be made here")
    projects = [new_project(tmp_path / name) for name in ("one", "two")]
    for project in projects:
        project.config["results"] = str(tmp_path / "results")
        project.command = lambda *given, own=project.command, **more: [*APART, *own(*given, **more)]
    first, hold = start_and_hold(projects[0])
    second = projects[1].start("--cores", "2")
    output, _ = second.communicate()
    assert second.returncode == 1, output
    assert f"another run is using {tmp_path}/results" in output and "Fix: wait until it has ended" in output
    assert "Traceback" not in output
    hold.unlink()
    output, _ = first.communicate()
    assert first.returncode == 0, output
    assert (tmp_path / "results/scores/scores.csv").read_bytes() == undisturbed.scores()
    again = projects[1].start("--cores", "2")
    output, _ = again.communicate()
    assert again.returncode == 0, output
    assert projects[1].scores() == undisturbed.scores()
