"""profiles/slurm on a real SLURM of three nodes: batches, faults, and the scores of a local run."""

import threading
import time
from collections import Counter

import pytest
import yaml
from slurm import ACCOUNT, PARTITION, end, wait_until

from working_folder import Project

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

# Its faults happen on the cluster only, so that a local run gives the scores to compare with.
FAULTY = '''
"""A method that needs more memory or time than its job has, or a long time on the first node."""

import os
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
                file.write(f"{self.how} {self.step} {job}\\n")
            if self.how == "hungry":
                ballast = np.ones(1100 * 2**17)
                time.sleep(4)
            elif self.how == "slow":
                time.sleep(20)
            elif self.how == "lost":
                while not Path("go").exists():
                    time.sleep(0.2)
        rank = np.argsort(np.argsort(X[:, 0]))
        self.labels_ = (rank * self.n_clusters // len(X) + self.step) % self.n_clusters
        self.n_iter_ = 1
        self.history_ = []
'''


def on_the_cluster(cluster, project, *arguments):
    """Start Snakemake with the profile as it is, and with what a user gives: an account and a partition."""
    resources = (f"slurm_account={ACCOUNT}", f"slurm_partition={PARTITION}")
    given = ("--default-resources", *resources, "--cores", "2", "--latency-wait", "5")
    return project.start(*given, *arguments, profile="slurm", env=cluster.env)


def submissions(cluster, began):
    """Allocations since a moment: id, state, memory, minutes."""
    since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began))
    lines = cluster.ask("sacct", "-X", "-n", "-P", "-S", since, "-o", "JobID,State,ReqMem,TimelimitRaw")
    return [line.split("|") for line in lines.splitlines()]


@pytest.fixture(scope="module")
def faults(cluster, tmp_path_factory):
    """A run in which a job wants more memory, another more time, and a node dies under a third."""
    project = Project(tmp_path_factory.mktemp("faults"))
    project.write("my_methods/faulty.py", FAULTY)
    faulty = "my_methods.faulty.Faulty"
    project.config["methods"] |= {
        "hungry": {"class": faulty, "params": {"how": "hungry"}},
        "slow": {"class": faulty, "params": {"how": "slow"}, "grid": {"step": [0, 1, 2, 3, 4]}},
        "lost": {"class": faulty, "params": {"how": "lost"}},
    }
    project.config["run"] = {
        "datasets": ["blobs"],
        "methods": ["hungry", "slow", "lost"],
        "seeds": 1,
    }
    # As many jobs as there are nodes, and a job goes to the node that has least to do.
    project.config["resources"] = {"mem_mb": 1500, "runtime": 1}
    local = Project(tmp_path_factory.mktemp("local"))
    local.write("my_methods/faulty.py", FAULTY)
    local.config = project.config
    local.run()

    project.began = time.time()
    process = on_the_cluster(cluster, project, "--group-components", "fit_{dataset}=1")
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout))
    reader.start()
    try:
        fits = project.folder / "fits.txt"
        wait_until(
            lambda: fits.is_file() and "lost 0 " in fits.read_text(), 300, "the fit that loses its node"
        )
        job = next(line.split()[2] for line in fits.read_text().splitlines() if line.startswith("lost"))
        project.lost_node = cluster.ask("squeue", "-h", "-j", job, "-o", "%N").strip()
        cluster.lose_node(project.lost_node)
        (project.folder / "go").write_text("")
        wait_until(lambda: process.poll() is not None, 600, "the run's end")
    finally:
        end(process)
        reader.join()
        if project.__dict__.get("lost_node"):
            cluster.start_node(project.lost_node)
    project.output = "".join(output)
    project.local_scores = local.scores()
    project.fits = Counter(tuple(line.split()[:2]) for line in fits.read_text().splitlines())
    project.jobs = submissions(cluster, project.began)
    assert process.returncode == 0, project.output
    return project


def test_after_all_faults_the_scores_are_those_of_a_local_run(faults):
    assert faults.scores() == faults.local_scores


def test_a_job_over_its_memory_is_tried_again_with_more(faults):
    logs = "".join(log.read_text() for log in (faults.folder / ".snakemake/slurm_logs").rglob("*.log"))
    assert "Exceeded job memory limit" in logs
    assert faults.fits["hungry", "0"] >= 2
    assert {job[2] for job in faults.jobs} >= {"1500M", "3000M"}


def test_a_job_over_its_time_is_tried_again_with_more_and_keeps_its_finished_cells(faults):
    timeouts = sum(job[1].startswith("TIMEOUT") for job in faults.jobs)
    assert timeouts, faults.jobs
    assert {job[3] for job in faults.jobs} >= {"1", "2"}
    again = [step for (how, step), times in faults.fits.items() if how == "slow" and times > 1]
    assert len(again) <= timeouts, "only a cell in flight is fitted again"
    assert {step for how, step in faults.fits if how == "slow"} == set("01234")


def test_a_node_that_dies_under_a_job_costs_only_that_attempt(faults):
    assert any(job[1].startswith("NODE_FAIL") for job in faults.jobs), faults.jobs
    assert faults.fits["lost", "0"] == 2


def test_batches_of_the_quickstart_have_the_scores_of_a_local_run(cluster, tmp_path, root):
    project, local = Project(tmp_path / "cluster"), Project(tmp_path / "local")
    for one in (project, local):
        one.config = yaml.safe_load((root / "config/config.yaml").read_text())
        one.write("quick.yaml", (root / "config/quickstart.yaml").read_text())
    methods = "[kmeans, random_labels, vfc_kmeans, vfc_ncut, bera]"
    everywhere = f"methods: {methods}, methods_of: {{toy_blobs: {methods}}}"
    run = f"run={{datasets: [synthetic, toy_blobs], {everywhere}, seeds: 1}}"
    arguments = ("--configfile", "quick.yaml", "--config", run)
    began = time.time()
    process = on_the_cluster(cluster, project, *arguments)
    output, _ = process.communicate()
    assert process.returncode == 0, output
    jobs = submissions(cluster, began)
    local.run(*arguments)
    name = "results/quickstart/scores/scores.csv"
    assert (project.folder / name).read_bytes() == (local.folder / name).read_bytes()
    assert (project.folder / "results/quickstart/tables/overview.md").is_file()
    blocks = len(list((project.folder / "results/quickstart/fits").rglob("*.jsonl")))
    assert blocks == 10
    # Fits of a data set are one submission, scores, tables and figures another; besides data and graphs.
    assert len(jobs) < blocks, jobs
