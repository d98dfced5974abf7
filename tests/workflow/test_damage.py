"""After files of a finished run are damaged, the next run gives the same results, or names the file and the fix."""

import os
import random
import re
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from a_paper_of_the_user import add_paper
from fairclust.pipeline.cell_store import DamagedFile, cell_path, read_output, write_output
from fairclust.pipeline.prepare_jobs import fetched_file, read_record
from fairclust.pipeline.results_folder import damaged_jobs, tidy

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.spec import SourceSpec
from fairclust.datasets.store import load_graph, load_prepared
from fairclust.pipeline.scores import labels_of
from working_folder import FAR, TABLE, Project, table_of

CASES = int(os.environ.get("FAIRCLUST_DAMAGE_CASES", "10000"))
RUNS = int(os.environ.get("FAIRCLUST_DAMAGE_RUNS", "60"))


def finished_project(folder):
    """Return a finished run with generated, own, downloaded and unpacked data, a graph, a paper and the page."""
    project = Project(folder)
    project.config["sources"] = {"far": FAR}
    project.config["datasets"] |= {"people": table_of({"path": "people.csv"}), "far": table_of("far")}
    project.add_cutter()
    project.config["run"] |= {"datasets": ["people", "far"], "methods": ["random", "cutter"]}
    project.config["report"] |= {"html": True}
    project.config["mirror"] = "mirror"
    project.write("people.csv", TABLE)
    project.write("mirror/far/far.csv", TABLE.replace(",16", ",15"))
    add_paper(project)
    project.run()
    return project


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    project = finished_project(tmp_path_factory.mktemp("whole"))
    return SimpleNamespace(project=project, results=content(project.results))


@pytest.fixture
def project(tmp_path, whole):
    return copy_of(whole.project, tmp_path / "project")


def copy_of(project, folder):
    shutil.copytree(project.folder, folder, symlinks=True)
    copy = Project.__new__(Project)
    copy.folder, copy.config = folder, project.config
    return copy


def content(results):
    """Return the files that must not change, by name: scores and tables, without those that depend on times."""
    files = [*results.glob("tables/**/*.*"), *results.glob("scores/scores.*"), *results.glob("scores/l*.csv")]
    texts = {str(path.relative_to(results)): path.read_bytes() for path in files if path.suffix != ".damaged"}
    # The overview and the leaderboard depend on the seconds of the fits.
    return {
        name: text for name, text in texts.items() if not name.startswith(("tables/overview", "scores/l"))
    }


def keep_time(path, change):
    stat = path.stat()
    change(path)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def flip(path):
    whole = bytearray(path.read_bytes())
    whole[len(whole) // 2] ^= 4
    path.write_bytes(whole)


def test_a_paper_of_the_user_has_tables_figures_claims_and_a_place_on_the_page(whole):
    results = whole.project.results
    evidence = pd.read_csv(results / "tables/doe/table1.evidence.csv")
    assert (evidence.role == "paper").sum() == 4
    text = (results / "tables/doe/table1.md").read_text()
    assert "Synthetic" in text and "207.8" in text
    for name in ("doe/table1.tex", "doe/claims.md", "scoreboard.md"):
        assert (results / "tables" / name).stat().st_size > 0
    for name in ("fig1.png", "fig2.png"):
        assert (results / "figures/doe" / name).stat().st_size > 1000
    # A figure of the points shows them unscaled.
    scaled, plane = (np.load(results / f"data/{kind}/synthetic/X.npy") for kind in ("prepared", "plane"))
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    assert np.ptp(np.linalg.norm(plane, axis=1)) > 0.1
    page = (results / "report/index.html").read_text()
    assert "Fair Clustering of Everything" in page and "Fair K-means" in page


def test_damaged_outputs_are_named_and_made_again(project, whole):
    """The time stamps stay, as when a disk fails. A file is lost, too, and a killed page job left a temporary file."""
    damaged = ["scores/scores.csv", "tables/doe/table1.md", "figures/doe/fig1.png", "report/index.html"]
    for name in damaged:
        keep_time(project.results / name, flip)
    (project.results / "tables/doe/claims.tex").unlink()
    gone = subprocess.Popen(["true"])
    gone.wait()
    left = project.write(
        f"results/report/.index.html.{gone.pid}@{os.uname().nodename}.{'0' * 32}.tmp", "<html>"
    )
    output = project.run()
    for name in damaged:
        said = f"results/{name} is damaged or was changed; a copy lies in results/{name}.damaged, and it is made again"
        assert said in output
    assert "results/tables/doe/claims.tex is missing; it is made again" in output
    assert not left.exists()
    assert content(project.results) == whole.results
    assert "Nothing to be done" in project.run()


@pytest.mark.parametrize("look", ["--summary", "--dag", "--unlock", "-n"])
def test_looking_changes_nothing(project, look):
    table = project.results / "tables/doe/table1.md"
    table.write_text(table.read_text() + "A remark of mine.\n")
    before = {path: path.read_bytes() for path in project.results.rglob("*") if path.is_file()}
    project.run(look, code=None)
    assert {path: path.read_bytes() for path in project.results.rglob("*") if path.is_file()} == before


def test_time_stamps_of_the_future(project, whole):
    for path in [*project.results.glob("fits/*/*"), *project.results.glob("data/*/*/.snakemake_timestamp")]:
        os.utime(path, (time.time() + 7200,) * 2)
    (project.results / "scores/scores.parquet").unlink()
    output = project.run()
    assert "ahead of this machine's clock; they count as made now" in output
    assert content(project.results) == whole.results
    # The time stamp of a user's own file is reported and not changed.
    os.utime(project.write("people.csv", TABLE.replace(",16", ",14")), (time.time() + 7200,) * 2)
    output = project.run(code=1)
    assert "people.csv has a time stamp ahead of this machine's clock" in output
    assert "Fix: correct the clock, or run `touch people.csv`" in output
    assert "Traceback" not in output and "run the same command again" not in output
    assert (project.results / "scores/scores.csv").exists()


def test_verify_accepts_intact_results_and_finds_every_false_record(project):
    assert project.results.rename(project.folder / "theirs")
    output = project.fairclust("verify", "theirs")
    assert "all digests match" in output and re.search(r"(\d+) of \d+ cells scored again", output)[1] == "20"
    theirs = project.folder / "theirs"
    # These records have false metrics, but their digests match them.
    torn, path = sorted(theirs.glob("fits/*/*.cells"))
    records = [{**one, "metrics": {**one["metrics"], "sse": 1.0}} for one in read_output(path)]
    write_output(path, records)
    known = [one["key"] for one in records if one["dataset"] == "synthetic"][-1]
    flip(theirs / "tables/doe/table1.csv")
    flip(theirs / "data/prepared/people/X.npy")
    flip(theirs / "data/graphs/far/graph.npz")
    flip(theirs / "data/raw/far/far/far.csv")
    flip(torn)
    broken = next(iter(sorted(theirs.glob("cells/*/*.cell"))))
    flip(broken)
    output = project.fairclust("verify", "theirs", "--sample", "1000", code=2)
    assert "Traceback" not in output
    for words in (
        "theirs/tables/doe/table1.csv is damaged or missing",
        "'theirs/data/prepared/people/X.npy' is damaged",
        "'theirs/data/graphs/far/graph.npz' is damaged",
        "'theirs/data/raw/far' does not hold the file that was downloaded",
        f"{torn.relative_to(project.folder)} is damaged",
        f"{broken.relative_to(project.folder)} is damaged",
        "theirs/scores/scores.parquet: the row of the cell",
        f"{cell_path(Path('theirs'), known)}: sse is",
    ):
        assert words in output, words
    output = project.fairclust("verify", "papers", code=2)
    assert output == "fairclust verify: papers is no folder of results\n"


def test_status_never_ends_in_a_traceback(project):
    for number, path in enumerate(
        sorted([*project.results.glob("fits/*/*.cells"), *project.results.glob("cells/*/*")])
    ):
        [flip, Path.unlink, lambda path: path.write_bytes(bytes(99))][number % 3](path)
    (project.results / "data/prepared/people/card.json").write_text("{")
    flip(project.results / "data/graphs/far/graph.npz")
    output = project.fairclust("status")
    assert "Traceback" not in output
    assert "to go" in output


# Thousands of single faults


def damage(path, chance):
    """Put one random fault into a file, and return its kind. In half of the cases the time stamp is kept."""
    stat, whole = path.stat(), bytearray(path.read_bytes())
    kind = chance.choice(["flip", "flip", "flip", "truncate", "zero", "delete"])
    if kind == "delete" or not whole:
        path.unlink()
        return "delete"
    if kind == "flip":
        whole[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
    path.write_bytes(
        {"flip": whole, "truncate": whole[: chance.randrange(len(whole))], "zero": bytes(len(whole))}[kind]
    )
    if chance.random() < 0.5:
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return kind


def reads(results):
    """Yield every file and folder of a finished run that jobs read, each with a function that reads it."""
    for path in results.glob("fits/*/*.cells"):
        yield path, lambda path=path: read_output(path)
    # Each cell is read by a job that knows its key, and here all of them with the same output.
    output = results / "fits/blobs/none.cells"
    for path in results.glob("cells/*/*.cell"):
        yield path, lambda path=path: labels_of(output, path.stem)
    for folder in [*results.glob("data/prepared/*"), *results.glob("data/plane/*")]:
        yield folder, lambda folder=folder: vars(load_prepared(folder))
    for folder in results.glob("data/graphs/*"):
        yield folder, lambda folder=folder: (load_graph(folder)[0].toarray(), load_graph(folder)[1])
    spec = SourceSpec.model_validate(FAR)
    for folder in results.glob("data/raw/*"):
        yield folder, lambda at=folder: fetched_file(at, "far", spec, read_record(at)).read_bytes()


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(100))
def test_reading_after_a_fault_gives_the_written_content_or_an_error(tmp_path, whole, part):
    chance = random.Random(1000 + part)
    origin = whole.project.results
    expected = {place.relative_to(origin): read() for place, read in reads(origin)}
    files = [path for path in origin.rglob("*") if path.is_file() and path.suffix != ".seconds"]
    files = sorted(path.relative_to(origin) for path in files)
    results = tmp_path / "results"
    shutil.copytree(origin, results)
    for _ in range(CASES // 100):
        name = chance.choice(files)
        case = f"{damage(results / name, chance)} {name}"
        said = "\n".join(tidy(results))
        for place, read in list(reads(results)):
            if place not in ((results / name), *(results / name).parents):
                continue
            try:
                np.testing.assert_equal(read(), expected[place.relative_to(results)], case)
            except (DamagedFile, DatasetError) as error:
                said += str(error)
                assert "Fix: " in said, case
        jobs = damaged_jobs(results).values()
        again = {str(path.relative_to(results)) for _, damaged in jobs for path in damaged}
        left = {other: text for other, text in content(results).items() if other not in again}
        assert all(left[other] == whole.results[other] for other in left), case
        # `tidy` prints what the next run has to make again, unless all outputs of a job were deleted.
        if set(left) != set(whole.results):
            assert str(results) in said or name.suffix == ".sha256" or not (results / name).exists(), case
        for path in [path for path in results.rglob("*") if path.is_file()]:
            if path.relative_to(results) not in files and path.suffix != ".seconds":
                path.unlink()
        for path in files:
            there = results / path
            if (
                path == name
                or not there.exists()
                or there.stat().st_mtime_ns != (origin / path).stat().st_mtime_ns
            ):
                shutil.copy2(origin / path, there)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(30))
def test_no_single_fault_changes_results_silently(tmp_path, whole, part):
    chance = random.Random(part)
    files = [path for path in whole.project.results.rglob("*") if path.is_file()]
    files += list((whole.project.folder / ".snakemake/metadata").rglob("*"))
    files = sorted(path.relative_to(whole.project.folder) for path in files if path.is_file())
    for _ in range(RUNS // 30):
        project = copy_of(whole.project, tmp_path / "project")
        name = chance.choice(files)
        kind = damage(project.folder / name, chance)
        if again := chance.random() < 0.3:  # so that fits are read again
            shutil.rmtree(project.results / "scores", ignore_errors=True)
        case = f"{kind} {name}, scores made again: {again}"
        code, output = project.attempt("--retries", "0")
        for _ in range(3):
            if code == 0:
                break
            # The message names the file, or its folder, and what to do.
            fix = re.search(
                r"Fix: (delete the folder '([^']+)' and run again|run the same command again|.*, run `(mkdir [^`]+)`)",
                output,
            )
            assert fix, f"{case}\n{output}"
            assert any(str(place) in output for place in (name, name.parent)), f"{case}\n{output}"
            if fix[2]:
                shutil.rmtree(project.folder / fix[2])
            if fix[3]:
                subprocess.run(fix[3], shell=True, check=True, cwd=project.folder)
            code, output = project.attempt("--retries", "0")
        assert code == 0, f"{case}\n{output}"
        assert "Traceback" not in output, f"{case}\n{output}"
        assert content(project.results) == whole.results, f"{case}\n{output}"
        shutil.rmtree(project.folder)
