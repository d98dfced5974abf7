"""profiles/slurm on a real SLURM of three nodes: faults, requests, partitions, and the scores of a local run."""

import threading
from collections import Counter

import pandas as pd
import pytest
import yaml
from slurm import ACCOUNT, PARTITION, SHORT_PARTITION, end

from working_folder import Project, wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

# The faults of these methods happen only on the cluster, so a local run gives the scores to compare with.
FAULTY = '''
"""A method that needs more memory or time than its job has, loses its node, or kills its job."""

import os
import signal
import time
from pathlib import Path

import numpy as np

from fairclust.base import FairClusterer


class Faulty(FairClusterer):
    _parameter_constraints = {}

    def __init__(self, n_clusters=2, *, how="", step=0, random_state=None):
        self.n_clusters = n_clusters
        self.how = how
        self.step = step
        self.random_state = random_state

    def _fit(self, X, codes):
        job = os.environ.get("SLURM_JOB_ID")
        if job and len(X) == 600:  # and not a warm-up
            with open("fits.txt", "a") as file:
                file.write(f"{self.how} {self.step} {job} {'FAIRCLUST_IMPORT_SERVER' in os.environ}\\n")
            if self.how == "hungry":
                ballast = np.ones(1100 * 2**17)
                time.sleep(4)
            elif self.how == "slow":
                time.sleep(20)
            elif self.how == "lost":
                while not Path("go").exists():
                    time.sleep(0.2)
            elif self.how == "deadly":
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(60)
        rank = np.argsort(np.argsort(X[:, 0]))
        self.labels_ = (rank * self.n_clusters // len(X) + self.step) % self.n_clusters
        self.n_iter_ = 1
        self.history_ = []
'''
FAULTY_CLASS = "my_methods.faulty.Faulty"


def on_the_cluster(cluster, project, *arguments):
    """Start Snakemake with the unchanged profile, except that the status of jobs is checked more often."""
    given = ("--latency-wait", "5", "--slurm-init-seconds-before-status-checks", "4")
    return project.start(*given, *arguments, profile="slurm", env=cluster.env)


def run_on_the_cluster(cluster, project, *arguments, code=0):
    """Run Snakemake to its end, and return what it prints."""
    process = on_the_cluster(cluster, project, *arguments)
    try:
        output, _ = process.communicate()
    finally:
        end(process)
    assert code in (None, process.returncode), output
    return output


def submissions(cluster, project):
    """Return a row for each allocation of a project, and for each task of an array."""
    columns = "JobID,State,Partition,ReqMem,TimelimitRaw,ReqCPUS,ReqTRES,Comment,WorkDir"
    lines = cluster.ask("sacct", "-X", "-n", "-P", "-S", "now-2hours", "-o", columns).splitlines()
    found = pd.DataFrame([line.split("|") for line in lines], columns=columns.split(","))
    return found[found.WorkDir == str(project.folder)].reset_index(drop=True)


def of_fit(jobs, method):
    """Return the submissions for the fits of a method."""
    return jobs[jobs.Comment.str.startswith("rule_fit") & jobs.Comment.str.contains(method)]


def toy_project(folder, *methods):
    """Return a project that fits faulty methods to blobs, with one seed each and in a job for each."""
    project = Project(folder)
    project.write("my_methods/faulty.py", FAULTY)
    for number, how in enumerate(methods):
        project.config["methods"].setdefault(how, {"class": FAULTY_CLASS, "params": {"how": how}})
        project.config["methods"][how]["jobs"] = {"mem_mb": 1500 + number}
    project.config["run"] = {"datasets": ["blobs"], "methods": list(methods), "seeds": 1}
    project.config["jobs"] = {"mem_mb": 1500, "attempts": 3}
    return project


@pytest.fixture(scope="module")
def faults(cluster, tmp_path_factory):
    """Run jobs of which one needs more memory, one needs more time, and one is on a node that dies."""
    methods = ("hungry", "slow", "lost")
    project, local = (toy_project(tmp_path_factory.mktemp(name), *methods) for name in ("faults", "local"))
    for one in (project, local):
        one.config["methods"]["slow"] |= {"grid": {"step": [0, 1, 2, 3, 4]}, "jobs": {"runtime": 1}}
    local.run()

    resources = (f"slurm_account={ACCOUNT}", f"slurm_partition={PARTITION}")
    process = on_the_cluster(cluster, project, "--default-resources", *resources)
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout))
    reader.start()
    lost_node = ""
    try:
        fits = project.folder / "fits.txt"
        wait_until(
            lambda: fits.is_file() and "lost 0 " in fits.read_text(), 300, "the fit that loses its node"
        )
        job = next(line.split()[2] for line in fits.read_text().splitlines() if line.startswith("lost"))
        lost_node = cluster.ask("squeue", "-h", "-j", job, "-o", "%N").strip()
        cluster.lose_node(lost_node)
        (project.folder / "go").write_text("")
        wait_until(lambda: process.poll() is not None, 600, "the run's end")
    finally:
        end(process)
        reader.join()
        if lost_node:
            cluster.start_node(lost_node)
    project.output = "".join(output)
    project.local_scores = local.scores()
    lines = [line.split() for line in fits.read_text().splitlines()]
    project.fits = Counter((how, step) for how, step, *_ in lines)
    project.servers = {server for *_, server in lines}
    project.jobs = submissions(cluster, project)
    assert process.returncode == 0, project.output
    return project


def test_after_all_faults_the_scores_are_those_of_a_local_run(faults):
    assert faults.scores() == faults.local_scores


def test_a_fit_over_its_memory_is_tried_again_in_a_larger_job(faults):
    assert faults.fits["hungry", "0"] == 2
    assert list(of_fit(faults.jobs, "hungry").ReqMem) == ["1500M", "3000M"]
    assert set(faults.cells().status) == {"ok"}


def test_a_job_over_its_time_is_tried_again_with_more_and_keeps_its_finished_cells(faults):
    jobs = of_fit(faults.jobs, "slow")
    timeouts = jobs.State.str.startswith("TIMEOUT").sum()
    assert timeouts, jobs
    assert list(jobs.TimelimitRaw)[:2] == ["1", "2"]
    again = [step for (how, step), times in faults.fits.items() if how == "slow" and times > 1]
    assert len(again) <= timeouts, "only a cell in flight is fitted again"
    assert {step for how, step in faults.fits if how == "slow"} == set("01234")


def test_a_node_that_dies_under_a_job_costs_only_that_attempt(faults):
    assert of_fit(faults.jobs, "lost").State.str.startswith("NODE_FAIL").any(), faults.jobs
    assert faults.fits["lost", "0"] == 2


def test_cluster_jobs_do_not_use_an_import_server(faults):
    assert faults.servers == {"False"}


def test_tables_are_made_without_cells_whose_job_always_dies(cluster, tmp_path):
    project = toy_project(tmp_path, "random", "deadly")
    project.config["jobs"]["attempts"] = 1
    output = run_on_the_cluster(cluster, project, code=1)
    status = project.cells().groupby("method").status.unique().map(list).to_dict()
    assert status == {"random": ["ok"], "deadly": ["error"]}, output
    assert (project.folder / "results/tables/overview.md").is_file()
    assert "error: blobs, deadly (1): its job ended without a result 1 times" in output
    # The second submission fits nothing and writes the lost cell.
    assert len(of_fit(submissions(cluster, project), "deadly")) == 2


def test_jobs_get_the_resources_that_their_methods_ask_for(cluster, tmp_path):
    """No account is given, and only one method asks for a partition, so the cluster's defaults are used."""
    project = toy_project(tmp_path, "random", "stripes")
    asked = {"threads": 2, "mem_mb": 1700, "runtime": 7, "partition": SHORT_PARTITION, "gres": "lab:1"}
    project.config["methods"]["random"]["jobs"] = asked
    run_on_the_cluster(cluster, project, "results/scores/scores.parquet")
    jobs = submissions(cluster, project)
    columns = ["Partition", "ReqMem", "TimelimitRaw", "ReqCPUS"]
    assert of_fit(jobs, "random")[columns].to_numpy().tolist() == [[SHORT_PARTITION, "1700M", "7", "2"]]
    assert of_fit(jobs, "stripes")[columns].to_numpy().tolist() == [[PARTITION, "1501M", "60", "1"]]
    assert list(jobs[jobs.ReqTRES.str.contains("gres/lab=1")].index) == list(of_fit(jobs, "random").index)


def test_the_plugin_chooses_partitions_and_the_scores_are_those_of_a_local_run(cluster, tmp_path, root):
    project, local = Project(tmp_path / "cluster"), Project(tmp_path / "local")
    for one in (project, local):
        one.config = yaml.safe_load((root / "config/config.yaml").read_text())
        one.config["catalogues"] = [str(root / folder) for folder in one.config["catalogues"]]
        one.config["run"] = {
            "datasets": ["synthetic", "toy_blobs"],
            "methods": ["kmeans", "vfc_kmeans", "bera"],
            "seeds": 1,
        }
        one.config["jobs"]["runtime"] = 8
        one.config["report"] |= {"fronts": [], "html": False}
    limits = {PARTITION: {"max_runtime": 1000}, SHORT_PARTITION: {"max_runtime": 10}}
    project.write("partitions.yaml", yaml.safe_dump({"partitions": limits}))
    run_on_the_cluster(cluster, project, "--slurm-partition-config", "partitions.yaml")
    local.run()
    assert project.scores() == local.scores()
    assert (project.folder / "results/tables/overview.md").is_file()
    jobs = submissions(cluster, project)
    fits = of_fit(jobs, "")
    assert len(fits) == len(list((project.folder / "results/fits").rglob("*.cells"))) > 0
    assert set(fits.Partition) == {SHORT_PARTITION} and PARTITION in set(jobs.Partition)
    # Both data sets are prepared in one job.
    assert len(jobs) == len(fits) + len(["data", "scores", "board"])
