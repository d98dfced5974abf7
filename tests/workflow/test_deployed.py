"""The workflow as a module of another one, and deployed as by `snakedeploy deploy-workflow`."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from a_paper_of_the_user import add_paper
from test_damage import content

from working_folder import QUIET, ROOT, TABLE, Project, run_snakemake, table_of

# The Snakefile that `snakedeploy deploy-workflow` writes, with the path of a clone where that names a host.
DEPLOYED = """
from snakemake.utils import min_version

min_version("6.10.0")

configfile: "config/config.yaml"

module fairclust:
    snakefile:
        "{snakefile}"
    config:
        config

use rule * from fairclust
"""
MODULE = """
configfile: "config/config.yaml"

module fairclust:
    snakefile: "{snakefile}"
    config: config
    prefix: "fair"

use rule * from fairclust as fc_*

rule count_lines:
    input: "fair/results/scores/scores.csv"
    output: "lines.txt"
    shell: "wc -l < {{input}} > {{output}}"

rule all:
    default_target: True
    input: rules.fc_all.input, "lines.txt"
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Return a folder with the tracked files that a clone of the repository has."""
    folder = tmp_path_factory.mktemp("clone")
    places = ("workflow", "config", "src")
    listed = subprocess.check_output(["git", "ls-files", "-z", *places], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name, follow_symlinks=False)
    return folder


COMMAND = [str(Path(sys.executable).with_name("snakemake")), "--cores", "2"]


def snakemake(folder, *arguments, fails=False):
    """Run the Snakefile of a folder without a profile, as its own author would, and return what it prints."""
    code, output = run_snakemake([*COMMAND, *arguments], folder)
    assert (code != 0) == fails, output
    return output


def snakemake_apart(folder):
    """Run it in a process that has imported nothing, and return what it prints."""
    env = {**os.environ, "FORCE_COLOR": ""}
    return subprocess.check_output(COMMAND, cwd=folder, env=env, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    """A finished run with a data set and a paper of the user's own."""
    project = Project(tmp_path_factory.mktemp("direct"))
    project.config["report"] = QUIET
    project.config["datasets"]["people"] = table_of({"path": "people.csv"})
    project.config["run"]["datasets"] = ["blobs", "people"]
    write_own_files(project)
    project.run()
    return project


def write_own_files(project):
    project.write("people.csv", TABLE)
    add_paper(project)


def another_workflow(direct, folder, snakefile, text, place="Snakefile"):
    """Write a workflow that has the configuration and the methods of a project and uses fairclust as a module."""
    project = Project(folder)
    project.config = direct.config
    write_own_files(project)
    project.write("config/config.yaml", yaml.safe_dump(direct.config))
    project.write(place, text.format(snakefile=snakefile))
    return project


def same_files(results, expected):
    """Compare the bytes of scores and tables, and the names of the blocks, whose own bytes contain times."""
    assert content(results) == content(expected)
    assert "tables/doe/table1.md" in content(results)
    ours = sorted(path.relative_to(expected) for path in (expected / "fits").rglob("*.cells"))
    assert ours == sorted(path.relative_to(results) for path in (results / "fits").rglob("*.cells"))


@pytest.fixture(scope="module", params=["beside", "installed"])
def module(request, direct, clone, tmp_path_factory):
    """A finished run of a workflow that has fairclust as a module, whose package is beside it or installed."""
    source, folder = request.param, tmp_path_factory.mktemp(request.param)
    repository = folder / "repository"
    shutil.copytree(clone, repository, symlinks=True)
    package = repository / "src/fairclust/__init__.py"
    if source == "installed":
        shutil.rmtree(repository / "src")
    else:
        package.write_text(package.read_text() + "\nprint('imported beside the workflow')\n")
    project = another_workflow(direct, folder / "other", repository / "workflow/Snakefile", MODULE)
    output = snakemake_apart(project.folder)
    assert ("imported beside the workflow" in output) == (source == "beside")
    return project


def test_a_module_with_a_prefix_gives_the_same_bytes(module, direct):
    same_files(module.folder / "fair/results", direct.results)
    assert not (module.folder / "results").exists()
    assert int((module.folder / "lines.txt").read_text()) > 1


@pytest.mark.parametrize("module", ["installed"], indirect=True)
def test_in_a_module_a_changed_table_is_kept_and_a_second_run_is_refused(module, direct):
    project, results = module, module.folder / "fair/results"
    table = results / "tables/doe/table1.md"
    mine = table.read_text() + "A remark of mine.\n"
    table.write_text(mine)
    with (results / "logs/.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = snakemake(project.folder, fails=True)
        assert "another run is using fair/results. Fix: wait until it has ended" in output
        assert "Traceback" not in output
        assert "fc_doe" in snakemake(project.folder, "-n")
    assert table.read_text() == mine and not list(results.rglob("*.damaged"))
    snakemake(project.folder)
    assert table.with_name("table1.md.damaged").read_text() == mine
    same_files(results, direct.results)


def test_a_deployed_workflow_gives_the_same_bytes(direct, clone, tmp_path):
    project = another_workflow(
        direct, tmp_path, clone / "workflow/Snakefile", DEPLOYED, place="workflow/Snakefile"
    )
    snakemake(project.folder)
    same_files(project.results, direct.results)
    assert "Nothing to be done" in snakemake(project.folder)


def test_the_quickstart_of_a_deployed_workflow_is_planned(clone, tmp_path):
    # `snakedeploy deploy-workflow` copies the folder of configurations.
    shutil.copytree(clone / "config", tmp_path / "config")
    (tmp_path / "workflow").mkdir()
    (tmp_path / "workflow/Snakefile").write_text(DEPLOYED.format(snakefile=clone / "workflow/Snakefile"))
    output = snakemake(tmp_path, "-n", "--configfile", "config/quickstart.yaml")
    assert "fit" in output and "scores" in output
