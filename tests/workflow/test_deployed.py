"""One project with a paper of the user: run here, as a module, deployed, and from a read-only checkout."""

import json
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from a_paper_of_the_user import add_paper

from fairclust.datasets.store import load_prepared, write_skipped
from working_folder import FAR, QUIET, ROOT, TABLE, Project, run_snakemake, table_of

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
COMMAND = [str(Path(sys.executable).with_name("snakemake")), "--cores", "2"]


def configured(folder):
    """Return a project with generated, own and downloaded data, a graph, and a paper, that has not run yet."""
    project = Project(folder)
    project.config["sources"] = {"far": FAR}
    project.config["datasets"] |= {"people": table_of({"path": "people.csv"}), "far": table_of("far")}
    project.add_cutter()
    project.config["run"] |= {"datasets": ["people", "far"], "methods": ["random", "cutter"], "seeds": 1}
    project.config |= {"report": QUIET | {"html": True}, "mirror": "mirror"}
    project.write("people.csv", TABLE)
    project.write("mirror/far/far.csv", TABLE.replace(",16", ",15"))
    add_paper(project)
    project.write("config/config.yaml", yaml.safe_dump(project.config))
    return project


@pytest.fixture(scope="module")
def direct(tmp_path_factory):
    project = configured(tmp_path_factory.mktemp("direct"))
    project.run()
    return project


def content(results):
    """Return the files that must not change, by name: scores and tables."""
    files = [*results.glob("tables/*/*.*"), results / "scores/scores.csv", results / "tables/scoreboard.csv"]
    return {str(path.relative_to(results)): path.read_bytes() for path in files}


def test_a_paper_of_the_user_has_tables_figures_claims_and_a_place_on_the_page(direct):
    results = direct.results
    assert len(pd.read_csv(results / "tables/doe/table1.evidence.csv")) == 8
    text = (results / "tables/doe/table1.md").read_text()
    assert "Synthetic" in text and "207.8" in text
    for name in ("doe/table1.tex", "doe/claims.md", "scoreboard.md"):
        assert (results / "tables" / name).stat().st_size > 0
    for name in ("fig1.png", "fig2.png"):
        assert (results / "figures/doe" / name).stat().st_size > 1000
    # A figure of the points shows them unscaled.
    scaled, plane = (load_prepared(results / f"data/{kind}/synthetic").X for kind in ("prepared", "unscaled"))
    np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 1)
    assert np.ptp(np.linalg.norm(plane, axis=1)) > 0.1
    page = (results / "report/index.html").read_text()
    assert "Fair Clustering of Everything" in page and "Fair K-means" in page


def test_snakemakes_report_lists_every_table_once(direct, tmp_path):
    direct.run("--report", str(tmp_path / "report.zip"))
    with zipfile.ZipFile(tmp_path / "report.zip") as archive:
        shown = [Path(name).name for name in archive.namelist() if "/data/raw/" in name]
    assert " ".join(sorted(shown)) == "claims.csv fig1.png fig2.png index.html scoreboard.csv table1.csv"


# Damaged files


def flip(path):
    """Change a bit: of a value if the file is Parquet, where checksums cover values and not the footer."""
    whole = bytearray(path.read_bytes())
    whole[whole.index(b"people") if path.suffix == ".parquet" else len(whole) // 2] ^= 4
    path.write_bytes(whole)


def test_a_damaged_file_of_fits_is_named_and_the_fix_makes_it_again_from_the_cache(direct, tmp_path):
    project = direct.copy(tmp_path / "project")
    damaged = project.results / "fits/synthetic/vfc_kmeans.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-9])
    output = project.run("--retries", "0", code=1)
    name = damaged.relative_to(project.folder)
    assert f"{name} is damaged" in output and "Fix: delete it and run again; finished fits are kept" in output
    assert "Traceback" not in output
    damaged.unlink()
    project.run()
    assert set(project.cells().finished) == set(direct.cells().finished)
    assert content(project.results) == content(direct.results)


def test_verify_accepts_intact_results_and_finds_every_kind_of_damage(direct, tmp_path):
    project = direct.copy(tmp_path / "project")
    theirs = project.results.rename(project.folder / "theirs")
    shared = pd.read_parquet(theirs / "fits/people/random.parquet")
    # Two methods can share a fit.
    shared.assign(method="chance").to_parquet(theirs / "fits/people/chance.parquet")
    output = project.fairclust("verify", "theirs")
    assert "all checksums match" in output and "scored again" in output
    frame = pd.read_parquet(theirs / "fits/synthetic/vfc_kmeans.parquet")
    frame.assign(sse=1.0).to_parquet(theirs / "fits/synthetic/vfc_kmeans.parquet")
    scores = pd.read_parquet(theirs / "scores/scores.parquet")
    forged = scores[:1].assign(key=None, sse=0.001)
    pd.concat([scores, forged, scores[1:2]]).to_parquet(theirs / "scores/scores.parquet", index=False)
    write_skipped(theirs / "data/prepared/far", "gone")
    (theirs / "data/raw/hidden").mkdir()
    broken = ("data/prepared/people/arrays.npz", "data/graphs/far/arrays.npz", "data/raw/far/far/far.csv",
              "fits/people/random.parquet")  # fmt: skip
    for name in broken:
        flip(theirs / name)
    output = project.fairclust("verify", "theirs", "--sample", "1000", code=2)
    assert "Traceback" not in output
    for words in (
        "'theirs/data/prepared/people' holds no arrays.npz, or a damaged one",
        "'theirs/data/graphs/far' holds no arrays.npz, or a damaged one",
        "'theirs/data/raw/far' does not hold the file that was downloaded",
        "theirs/fits/people/random.parquet is damaged",
        "theirs/scores/scores.parquet: the row of the fit",
        "theirs/scores/scores.parquet: no file of fits has the fit of ",
        " is there twice",
        "theirs/data/raw/hidden' has no source.json, or a damaged one",
        "cannot be scored again: gone",
        "sse is",
    ):
        assert words in output, words
    output = project.fairclust("verify", "papers", code=2)
    assert output == "fairclust verify: papers is no folder of results\n"


def test_status_and_snakemake_agree(direct, tmp_path):
    """After a file of fits is deleted, and after the scaling of a data set has changed."""
    project = direct.copy(tmp_path / "project")
    for name in ("workflow", "profiles"):
        (project.folder / name).symlink_to(ROOT / name)
    (project.results / "fits/people/random.parquet").unlink()
    project.config["datasets"]["far"]["scale"] = "minmax"
    dry = project.run("-n")
    said = project.fairclust("status")
    assert re.search(r"^fit +3$", dry, re.M) and "2 to go" in said.splitlines()[-2]
    assert "people, random" not in said and "far, random: 0 of 1 fits done, 1 to go" in said


# Other ways to run it


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


def snakemake(folder, *arguments):
    """Run the Snakefile of a folder without a profile, as its own author would, and return what it prints."""
    code, output = run_snakemake([*COMMAND, *arguments], folder)
    assert code == 0, output
    return output


def same_files(results, expected):
    """Compare scores and tables, and the names of the files of fits, whose own bytes contain times."""
    assert content(results) == content(expected)
    fits = [
        sorted(path.relative_to(of) for path in of.rglob("fits/*/*.parquet")) for of in (results, expected)
    ]
    assert fits[0] == fits[1]


def test_a_module_with_a_prefix_gives_the_same_bytes(direct, clone, tmp_path):
    package = clone / "src/fairclust/__init__.py"
    plain = package.read_text()
    project = configured(tmp_path)
    project.write("Snakefile", MODULE.format(snakefile=clone / "workflow/Snakefile"))
    try:
        package.write_text(plain + "\nprint('imported beside the workflow')\n")
        # In a process that has imported nothing yet.
        done = subprocess.run(COMMAND, cwd=tmp_path, capture_output=True, text=True)
    finally:
        package.write_text(plain)
    assert done.returncode == 0, done.stderr
    assert "imported beside the workflow" in done.stdout
    same_files(tmp_path / "fair/results", direct.results)
    assert not (tmp_path / "results").exists()
    assert int((tmp_path / "lines.txt").read_text()) > 1
    project.config["datasets"]["far"]["scale"] = "minmax"
    project.write("config/config.yaml", yaml.safe_dump(project.config))
    assert re.search(r"fit +2$", snakemake(tmp_path, "-n"), re.M)


def test_a_deployed_workflow_with_an_installed_package_gives_the_same_bytes(direct, clone, tmp_path):
    shutil.copytree(clone, tmp_path / "clone", symlinks=True)
    shutil.rmtree(tmp_path / "clone/src")
    project = configured(tmp_path / "project")
    project.write("workflow/Snakefile", DEPLOYED.format(snakefile=tmp_path / "clone/workflow/Snakefile"))
    snakemake(project.folder)
    same_files(project.results, direct.results)
    assert "Nothing to be done" in snakemake(project.folder)


def test_a_read_only_checkout_runs_in_another_directory(clone, tmp_path):
    checkout = tmp_path / "Prüfstand nur zum Lesen"
    shutil.copytree(clone, checkout, symlinks=True)
    project = configured(tmp_path / "work")
    before = {path: path.stat().st_mtime_ns for path in checkout.rglob("*")}
    for path in [*before, checkout]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        target = "results/fits/people/random.parquet"
        snakemake(checkout, "--directory", str(project.folder), target)
        assert json.loads((project.results / "data/prepared/people/card.json").read_text())["rows"] == 40
        assert (project.folder / target).is_file()
        # The superuser may write there nevertheless: nothing but compiled code is new.
        new = {path for path in checkout.rglob("*") if path not in before and path.is_file()}
        assert not [path for path in new if "__pycache__" not in path.parts]
    finally:
        for path in [checkout, *checkout.rglob("*")]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o755)
