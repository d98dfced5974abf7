"""A working folder with its own configuration, in which tests run the repository's Snakefile."""

import atexit
import copy
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import yaml

ROOT = Path(__file__).parents[1]
METHOD = '''
"""A method outside the package."""

import numpy as np

from fairclust.base import FairClusterer


class {name}(FairClusterer):
    _parameter_constraints = {{}}

    def __init__(self, n_clusters=2, *, lam=0.0, random_state=None):
        self.n_clusters = n_clusters
        self.lam = lam
        self.random_state = random_state

    def _fit(self, X, codes):
        # A comment.
        order = np.argsort(X[:, 0] * {factor})
        self.labels_ = np.empty(len(X), int)
        self.labels_[order] = np.arange(len(X)) * self.n_clusters // len(X)
        self.n_iter_ = 1
        self.history_ = []
'''
BLOBS = {"title": "Blobs", "generator": "fairclust.datasets.blobs.make_group_blobs", "n_clusters": 3}
TABLE = "sex,a,b\n" + "".join(f"{'fm'[i % 2]},{i},{i * i % 17}\n" for i in range(40))
"""A small table of a user."""
FAR = {"file": "far/far.csv", "urls": ["https://127.0.0.1:9/x"], "sha256": "unknown", "licence": "none"}
"""A source that no network has."""
QUIET = {"fronts": [], "formats": ["png"], "html": False}
"""Switches the report off, for tests of fits."""


def table_of(source, **more):
    """Return the entry of a data set with the column of groups `sex`."""
    return {"title": str(source), "source": source, "sensitive": {"column": "sex"}, "n_clusters": 2} | more


# Importing Snakemake takes seconds, so all runs of a test process share it.
_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(["snakemake.cli", "fairclust.pipeline.plan"])


def run_snakemake(words, folder):
    """Run the command `snakemake` in a process that has already imported it; exit status and what it prints."""
    env = {**os.environ, "FORCE_COLOR": ""}
    with tempfile.NamedTemporaryFile("r", suffix=".log") as file:
        process = _FORKS.Process(target=_snakemake, args=(words, folder, env, file.name))
        process.start()
        process.join()
        return process.exitcode, file.read()


def _snakemake(words, folder, env, output):
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = words
    from snakemake.cli import main

    try:
        main(words[1:])
    finally:
        atexit._run_exitfuncs()  # a process of multiprocessing does not call them


class Project:
    """A working folder with its configuration and the ways to run Snakemake in it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.config = {
            "run": {"datasets": ["blobs"], "methods": ["random", "stripes"], "seeds": 2},
            "datasets": {"blobs": BLOBS},
            "methods": {
                "random": {"class": "fairclust.methods.RandomLabels"},
                "stripes": {"class": "my_methods.stripes.Stripes", "grid": {"lam": [0, 1]}},
                "other": {"class": "my_methods.other.Other"},
            },
            "report": {"fronts": ["balance"], "formats": ["png"], "html": False},
        }
        (folder / "my_methods").mkdir(exist_ok=True)
        self.write("my_methods/stripes.py", METHOD.format(name="Stripes", factor=1))
        self.write("my_methods/other.py", METHOD.format(name="Other", factor=-1))

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def add_cutter(self):
        """Add a method that takes the graph of nearest neighbours."""
        cutter = {"class": "fairclust.methods.SpectralClustering", "params": {"affinity": "precomputed"}}
        self.config["methods"]["cutter"] = cutter | {"input": "graph"}
        self.config["graph"] = {"n_neighbors": 8}

    def command(self, *arguments, profile="default"):
        """Return the command that runs Snakemake here."""
        command = [
            str(Path(sys.executable).with_name("snakemake")),
            "--snakefile",
            str(ROOT / "workflow/Snakefile"),
        ]
        return [*command, "--workflow-profile", str(ROOT / "profiles" / profile), *arguments]

    def start(self, *arguments, profile="default", env=None):
        """Start Snakemake and do not wait for it."""
        self.write("config/config.yaml", yaml.safe_dump(self.config))
        return subprocess.Popen(
            self.command(*arguments, profile=profile),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "FORCE_COLOR": "", **(env or {})},
        )

    def run(self, *arguments, code=0):
        """Run Snakemake on two cores, check its exit status, and return what it prints."""
        self.write("config/config.yaml", yaml.safe_dump(self.config))
        found, output = run_snakemake(self.command("--cores", "2", *arguments), self.folder)
        assert found == code, output
        return output

    def copy(self, folder):
        """Return a copy of this project with its results."""
        shutil.copytree(self.folder, folder, symlinks=True)
        found = Project.__new__(Project)
        found.folder, found.config = folder, copy.deepcopy(self.config)
        return found

    def fairclust(self, *arguments, code=0):
        """Run the command `fairclust` here, and return what it prints."""
        command = [Path(sys.executable).with_name("fairclust"), *arguments]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr

    @property
    def results(self):
        return self.folder / self.config.get("results", "results")

    def scores(self):
        """Return the bytes of the scores file."""
        return (self.results / "scores/scores.csv").read_bytes()

    def cells(self):
        return pd.read_parquet(self.results / "scores/runs.parquet")


def newly_fitted(now, before):
    """Return the rows of the cells in `now` that were fitted after the cells in `before`."""
    return now[~now.finished.isin(before.finished) & now.finished.notna()]


def jobs_of(output):
    """Return the number of jobs of each rule, from Snakemake's table."""
    found = {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", output, flags=re.MULTILINE)}
    return {name: n for name, n in found.items() if name not in ("total", "all")}


def wait_until(condition, seconds=60, what="it"):
    """Wait until a condition is true, and return its value."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return found


def wait_for_end(process, seconds):
    """Wait until a process has ended. A zombie, whose parent has not yet noticed its end, has ended."""
    with suppress(psutil.NoSuchProcess):
        wait_until(lambda: process.status() == psutil.STATUS_ZOMBIE, seconds, "the end of a process")


def workers_in(folder):
    """Yield the processes that run in a folder or name it in their command, except this one and its parents."""
    mine = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        try:
            place = "\0".join([process.cwd(), *process.cmdline()])
            dead = process.status() == psutil.STATUS_ZOMBIE
        except psutil.Error:
            continue
        if process.pid not in mine and str(folder) in place and not dead:
            yield process
