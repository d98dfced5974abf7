"""profiles/slurm on a real SLURM of three nodes: faults, requests, partitions, and the scores of a local run."""

import threading
from collections import Counter

import pandas as pd
import pytest
import yaml
from slurm import ACCOUNT, CPUS, PARTITION, SHORT_PARTITION, end

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
                file.write(f"{self.how} {self.step} {job}\\n")
            if self.how == "hungry":
                np.ones(1100 * 2**17)
            elif self.how == "slow":
                time.sleep(20)
            elif self.how in ("lost", "cancelled"):
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


def of_fit(project, jobs, how):
    """Return the submissions in which fits have begun, in this order. Every fit writes down its job."""
    lines = [line.split() for line in (project.folder / "fits.txt").read_text().splitlines()]
    begun = list(dict.fromkeys(job for own, _, job in lines if own == how))
    return jobs.set_index("JobID").loc[begun].reset_index()


# A submission for each fit job.
APART = ("--group-components", "data=4", "fit=1", "show=20")


def toy_project(folder, *methods):
    """Return a project that fits faulty methods to blobs, with one seed each."""
    project = Project(folder)
    project.write("my_methods/faulty.py", FAULTY)
    for how in methods:
        project.config["methods"][how] = {"class": FAULTY_CLASS, "params": {"how": how}}
    project.config["run"] = {"datasets": ["blobs"], "methods": list(methods), "seeds": 1}
    project.config["jobs"] = {"mem_mb": 1500, "attempts": 3}
    return project


@pytest.fixture(scope="module")
def faults(cluster, tmp_path_factory):
    """Run jobs of which one needs more time, one is on a node that dies, and one is cancelled."""
    methods = ("hungry", "slow", "lost", "cancelled")
    project, local = (toy_project(tmp_path_factory.mktemp(name), *methods) for name in ("faults", "local"))
    for one in (project, local):
        one.config["methods"]["slow"] |= {"grid": {"step": [0, 1, 2, 3, 4]}, "jobs": {"runtime": 1}}
        # It has a node for itself: a job that dies beside it would be tried again with more memory and more time.
        one.config["methods"]["lost"] |= {"jobs": {"threads": CPUS}}
    local.run()

    resources = (f"slurm_account={ACCOUNT}", f"slurm_partition={PARTITION}")
    process = on_the_cluster(cluster, project, *APART, "--default-resources", *resources)
    output = []
    reader = threading.Thread(target=lambda: output.extend(process.stdout))
    reader.start()
    lost_node, fits = "", project.folder / "fits.txt"

    def job_of(how):
        text = fits.read_text() if fits.is_file() else ""
        return next((line.split()[2] for line in text.splitlines() if line.startswith(how)), None)

    try:
        job = wait_until(lambda: job_of("cancelled"), 300, "the fit that is cancelled")
        cluster.ask("scancel", job)
        job = wait_until(lambda: job_of("lost"), 300, "the fit that loses its node")
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
    project.local = pd.read_csv(local.results / "scores/scores.csv")
    lines = [line.split() for line in fits.read_text().splitlines()]
    project.fits = Counter((how, step) for how, step, _ in lines)
    project.jobs = submissions(cluster, project)
    assert process.returncode == 0, project.output
    return project


def test_after_all_faults_the_scores_are_those_of_a_local_run(faults):
    """Only the fit that needs too much memory has no scores: it is a row with the reason."""
    scores = pd.read_csv(faults.results / "scores/scores.csv")
    hungry = scores.method == "hungry"
    expected = faults.local[faults.local.method != "hungry"]
    pd.testing.assert_frame_equal(scores[~hungry], expected, check_dtype=False)
    assert scores[hungry].status.tolist() == ["error"]
    assert "over the limit of 1000 MB" in scores[hungry].reason.iloc[0]
    assert faults.fits["hungry", "0"] == 1


def test_a_job_over_its_time_is_tried_again_with_more_and_keeps_its_finished_fits(faults):
    jobs = of_fit(faults, faults.jobs, "slow")
    timeouts = jobs.State.str.startswith("TIMEOUT").sum()
    assert timeouts, jobs
    assert list(jobs.TimelimitRaw)[:2] == ["1", "2"]
    again = [step for (how, step), times in faults.fits.items() if how == "slow" and times > 1]
    assert len(again) <= timeouts, "only a fit in flight is made again"
    assert {step for how, step in faults.fits if how == "slow"} == set("01234")


@pytest.mark.parametrize(("how", "state"), [("lost", "NODE_FAIL"), ("cancelled", "CANCELLED")])
def test_a_job_whose_node_dies_or_that_is_cancelled_is_submitted_again(faults, how, state):
    jobs = of_fit(faults, faults.jobs, how)
    assert jobs.State.iloc[0].startswith(state) and jobs.State.iloc[-1] == "COMPLETED", jobs
    assert faults.fits[how, "0"] == 2


def test_tables_are_made_without_fits_whose_job_always_dies(cluster, tmp_path):
    project = toy_project(tmp_path, "fine", "deadly")
    project.config["methods"]["other"] = project.config["methods"]["deadly"]
    project.config["run"]["methods"].append("other")
    project.config["jobs"]["attempts"] = 1
    output = run_on_the_cluster(cluster, project, code=1)
    status = project.cells().groupby("method").status.unique().map(list).to_dict()
    assert status == {"fine": ["ok"], "deadly": ["error"], "other": ["error"]}, output
    assert (project.folder / "results/scores/leaderboard.csv").is_file()
    assert "error: blobs, deadly (1): killed without a message" in output


def test_jobs_get_the_resources_that_their_methods_ask_for(cluster, tmp_path):
    """No account and no partition are given, so the cluster's defaults are used."""
    project = toy_project(tmp_path, "asking", "plain")
    project.config["methods"]["asking"]["jobs"] = {"threads": 2, "mem_mb": 1700, "runtime": 7}
    run_on_the_cluster(cluster, project, *APART, "--", "results/scores/scores.parquet")
    jobs = submissions(cluster, project)
    columns = ["Partition", "ReqMem", "TimelimitRaw", "ReqCPUS"]
    found = {how: of_fit(project, jobs, how) for how in ("asking", "plain")}
    assert found["asking"][columns].to_numpy().tolist() == [[PARTITION, "1700M", "7", "2"]]
    assert found["plain"][columns].to_numpy().tolist() == [[PARTITION, "1500M", "60", "1"]]


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
    assert (project.folder / "results/scores/leaderboard.csv").is_file()
    jobs = submissions(cluster, project)
    assert PARTITION in set(jobs.Partition) and SHORT_PARTITION in set(jobs.Partition)
    # Both data sets are one submission, and so are up to eight fit jobs: there are fewer submissions than fit jobs.
    assert 3 <= len(jobs) < len(list((project.folder / "results/fits").rglob("*.parquet")))
