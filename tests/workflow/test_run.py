"""Several runs of one project, one after the other, and the files, cells and jobs of each."""

import hashlib
import json
import math
import os
import re
import shutil
from textwrap import dedent
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

import run_crate
from fairclust import cli, metrics
from fairclust.pipeline.cell_store import cell_path, read_labels
from toys import forget_code, write_people
from working_folder import METHOD, Project, jobs_of, newly_fitted, run_snakemake, table_of


def snapshot(project):
    return {
        str(path.relative_to(project.results)): path.read_bytes()
        for folder in ("scores", "tables", "figures", "report")
        for path in (project.results / folder).rglob("*")
        if path.is_file()
    }


def look(project, output):
    """Return the output, cells, files and jobs of the run that has just ended."""
    return SimpleNamespace(
        output=output, cells=project.cells(), files=snapshot(project), jobs=jobs_of(output)
    )


@pytest.fixture(scope="module")
def life(tmp_path_factory):
    """Make all runs of the project, and return what each left behind, by name."""
    project = Project(tmp_path_factory.mktemp("project"))
    project.config["report"]["html"] = True
    seen = SimpleNamespace(project=project)
    seen.first = look(project, project.run())
    seen.card = json.loads((project.results / "data/prepared/blobs/card.json").read_text())

    # Neither a comment nor an unused method in the catalogue is a reason to fit.
    text = (project.folder / "my_methods/stripes.py").read_text()
    project.write("my_methods/stripes.py", text.replace("# A comment.", "# Another, and a longer one."))
    project.config["methods"]["unused"] = {"class": "my_methods.other.Other", "params": {"lam": 3}}
    seen.second = project.run()

    # The grid, the seeds, the data sets and the methods are extended at once.
    write_people(project.folder / "people.csv")
    project.write("my_methods/mine.py", METHOD.format(name="Mine", factor=2))
    project.config["datasets"]["people"] = table_of({"path": "people.csv"}, n_clusters=4)
    project.config["methods"]["mine"] = {"class": "my_methods.mine.Mine", "grid": {"lam": [2]}}
    project.config["methods"]["stripes"]["grid"]["lam"] = [0, 0.5, 1]
    project.config["run"] = {
        "datasets": ["blobs", "people"],
        "methods": ["random", "stripes", "mine"],
        "seeds": 3,
    }
    seen.dry = project.start("-n", "--cores", "2").communicate()[0]
    seen.wide = look(project, project.run())

    # The method is edited, and the data file is replaced by one with an older time stamp.
    project.write("my_methods/mine.py", METHOD.format(name="Mine", factor=3))
    write_people(project.folder / "people.csv", seed=1)
    os.utime(project.folder / "people.csv", (1e9, 1e9))
    seen.edited = look(project, project.run())

    # Tables, figures and page are deleted. The run makes them again, byte by byte, without fitting.
    for folder in ("tables", "figures", "report"):
        shutil.rmtree(project.results / folder)
    seen.again = look(project, project.run())
    seen.forced = project.start("-n", "-R", "fit", "--cores", "2").communicate()[0]
    return seen


def test_a_run_writes_scores_tables_figures_and_a_page_and_prints_where(life):
    scores = pd.read_csv(life.project.folder / "results/scores/scores.csv")
    first = life.first
    assert len(first.cells) == 6
    assert set(first.cells.status) == {"ok"}
    assert set(first.cells[first.cells.method == "stripes"].lam) == {0, 1}
    for name in ("tables/overview.md", "tables/overview.tex", "figures/fronts/blobs.png", "report/index.html",
                 "scores/leaderboard.csv"):  # fmt: skip
        assert len(first.files[name]) > 0
    assert life.card["data_hash"] == scores[scores.dataset == "blobs"].data_hash.iloc[0]
    for words in (
        "6 cells: 6 ok",
        "results/scores/scores.csv",
        "report:  results/report/index.html",
        "fitting",
    ):
        assert words in first.output
    assert (life.project.results / "report.zip").is_file()
    assert (life.project.results / "provenance.json").is_file()
    (seconds,) = life.project.results.glob("logs/fit/*/*.seconds")
    assert seconds.name == "random-k3.seconds" and float(seconds.read_text()) > 0


def test_a_second_run_with_a_comment_and_an_unused_method_more_does_nothing(life):
    assert "Nothing to be done" in life.second


def test_more_settings_seeds_data_and_methods_fit_only_the_new_cells(life):
    fitted = newly_fitted(life.wide.cells, life.first.cells)
    keys = ["dataset", "method", "lam", "seed"]
    asked = {
        ("blobs", "random", None, 2),
        *(("blobs", "stripes", 0.5, seed) for seed in range(3)),
        *(("blobs", "stripes", lam, 2) for lam in (0.0, 1.0)),
        *((data, "mine", 2.0, seed) for data in ("blobs", "people") for seed in range(3)),
        *(("people", "stripes", lam, seed) for lam in (0.0, 0.5, 1.0) for seed in range(3)),
        *(("people", "random", None, seed) for seed in range(3)),
    }
    found = fitted[keys].astype(object).where(fitted[keys].notna(), None)
    assert set(found.itertuples(index=False, name=None)) == asked
    assert len(fitted) == len(asked)
    assert set(fitted.status) == {"ok"}
    assert life.wide.jobs["prepare_dataset"] == 1


def test_a_dry_run_is_short_and_says_how_many_cells_it_would_fit(life):
    fitted, every = newly_fitted(life.wide.cells, life.first.cells), life.again.cells
    for said, cells in ((life.dry, fitted), (life.forced, every)):
        lines = said.splitlines()
        assert len(lines) <= 60
        assert re.match(rf"{len(cells)} cells to fit in \d+ jobs: roughly \d+ seconds on 2 cores", lines[-1])


def test_an_edited_method_and_another_file_fit_only_their_own_cells(life):
    fitted = newly_fitted(life.edited.cells, life.wide.cells)
    mine, people = fitted.method == "mine", fitted.dataset == "people"
    assert (mine | people).all()
    assert len(fitted) == 3 + 3 * 5
    assert life.edited.jobs["prepare_dataset"] == 1


def test_tables_figures_and_page_are_made_again_without_a_fit(life):
    assert not {"fit", "prepare_dataset", "scores", "leaderboard"} & set(life.again.jobs)
    assert life.again.jobs == {"fronts": 1, "board": 1, "page": 1, "check": 1}
    assert life.again.files == life.edited.files


def test_publishing_copies_a_finished_run_and_leaves_other_folders_alone(life, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(life.project.folder)
    forget_code()
    out, foreign = tmp_path / "published", tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "mine.txt").write_text("mine")
    assert cli.main(["publish", "--out", str(foreign)])
    assert "holds other files than published results" in capsys.readouterr().err
    assert (foreign / "mine.txt").read_text() == "mine"
    before = snapshot(life.project)
    for place in ("results", "results/tables", "results/../results", "."):
        assert cli.main(["publish", "--out", place])
        said = capsys.readouterr().err
        assert "overlaps results, which is read" in said or "holds other files" in said
    assert snapshot(life.project) == before
    page = tmp_path / "page.md"
    page.write_text("no marks\n")
    assert cli.main(["publish", "--out", str(out), "--readme", str(page)])
    assert "to put the numbers between" in capsys.readouterr().err and not out.exists()
    for _ in range(2):  # the second time into the same folder
        assert not cli.main(["publish", "--out", str(out), "--wall-seconds", "5"])
    origin = json.loads((out / "provenance.json").read_text())
    assert origin["wall_seconds"] == 5
    crate = run_crate.checked(out)
    people = hashlib.sha256((life.project.folder / "people.csv").read_bytes()).hexdigest()
    digest = {"digest of the configuration": origin["config"]["digest"]}
    assert run_crate.inputs_of(crate) == {"people.csv": f"sha256:{people}", **digest}
    assert "license" not in crate["./"]
    assert pd.read_parquet(out / "scores/scores.parquet").key.nunique() == life.again.cells.key.nunique()
    for name in ("tables/overview.md", "report/index.html", "figures/fronts/blobs.png"):
        assert 0 < (out / name).stat().st_size <= len(life.again.files[name])


def test_the_complete_run_has_at_most_150_jobs_and_submits_at_most_80_on_a_cluster(tmp_path, root):
    """The numbers of jobs are those of a dry run, and the groups those of the profile."""
    for name in ("config", "workflow", "Snakefile", "profiles"):
        (tmp_path / name).symlink_to(root / name)
    code, output = run_snakemake(["snakemake", "-n", "--cores", "16"], tmp_path)
    assert code == 0, output
    jobs = jobs_of(output)
    assert sum(jobs.values()) <= 150
    profile = yaml.safe_load((root / "profiles/slurm/config.yaml").read_text())
    grouped = dict(rule.split("=") for rule in profile["groups"])
    assert set(grouped.values()) == {"data"}
    (components,) = profile["group-components"]
    # A graph belongs to the component of its data set.
    n_components = jobs["prepare_dataset"] + jobs["prepare_plane"]
    own = {"download_source", "check", "everything"} | set(grouped)
    submitted = sum(number for rule, number in jobs.items() if rule not in own)
    assert submitted + math.ceil(n_components / int(components.removeprefix("data="))) <= 80


def test_no_more_jobs_run_at_once_than_fit_into_the_memory(tmp_path, root):
    """Three jobs ask for a third of the memory and a little more each, so two of them run at a time."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    (tmp_path / "Snakefile").write_text(
        dedent(
            f"""
            rule all:
                input: expand("{{i}}", i=list("abc"))
            rule job:
                output: "{{i}}"
                resources: mem_mb={machine // 3 + 9}
                shell: "touch {{output}}.on; ls *.on | wc -l > {{output}}; sleep 3; rm {{output}}.on"
            """
        )
    )
    profile = root / "profiles/default"
    code, output = run_snakemake(["snakemake", "--cores", "3", "--workflow-profile", str(profile)], tmp_path)
    assert code == 0, output
    assert max(int((tmp_path / name).read_text()) for name in "abc") <= 2


def test_the_key_of_a_fit_leads_to_its_labels(life):
    results = life.project.results
    scores = pd.read_parquet(results / "scores/scores.parquet")
    row = scores[(scores.dataset == "blobs") & (scores.method == "stripes")].iloc[0]
    X = np.load(results / "data/prepared/blobs/X.npy")
    assert metrics.sse(X, read_labels(cell_path(results, row.key))) == pytest.approx(row.sse)
