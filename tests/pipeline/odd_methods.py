"""Methods that misbehave, outside the package, for the tests of limits and statuses."""

import os
import subprocess
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from fairclust.base import Diverged, FairClusterer, NotSupported

KEEP = []


class Odd(FairClusterer):
    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self, n_clusters=2, *, how="ok", random_state=None):
        self.n_clusters = n_clusters
        self.how = how
        self.random_state = random_state

    def _fit(self, X, codes):
        self.labels_ = np.random.default_rng(self.random_state).integers(self.n_clusters, size=len(X))
        self.n_iter_ = 1
        self.history_ = [{"step": 1, "objective": 2.5, "clustering": 2.5, "fairness": 0.0, "seconds": 0.0}]
        if self.how == "global":
            self.labels_ = np.random.randint(self.n_clusters, size=len(X))  # noqa: NPY002
        elif self.how == "ever new":
            self.labels_ = np.random.default_rng().integers(self.n_clusters, size=len(X))
        elif self.how == "history":
            self.history_ = [np.float32(1.0)]
        else:
            self.history_[0]["objective"] = np.float32(2.5)
        if len(X) < 1000:
            return  # the call on a few rows that compiles the code
        if self.how == "slow":
            time.sleep(1)
        elif self.how == "sleep":
            time.sleep(60)
        elif self.how == "memory":
            for _ in range(40):
                KEEP.append(np.ones(2**24))
                time.sleep(0.01)
            time.sleep(60)
        elif self.how == "child":
            subprocess.run(["sleep", "77.25"], check=False)
        elif self.how == "skip":
            raise NotSupported("two groups only")
        elif self.how == "diverge":
            raise Diverged("not finite at step 3")
        elif self.how == "note":
            with Path(os.environ["ODD_NOTES"]).open("a") as file:
                file.write("once\n")
            raise RuntimeError("noted")
        elif self.how == "raise":
            raise RuntimeError("no idea of \ud800")
        elif self.how == "die":
            os._exit(3)
        elif self.how == "fork and die":
            forked = os.fork()
            if not forked:
                time.sleep(60)
            Path(os.environ["ODD_NOTES"]).write_text(str(forked))
            os._exit(3)
        elif self.how == "folder":
            os.chdir("/")
        elif self.how == "leak":
            KEEP.append(np.ones(2**25))
            time.sleep(0.6)
        elif self.how == "labels":
            self.labels_ = self.labels_ + 7
        elif self.how == "shape":
            self.labels_ = self.labels_[:-1]


def fit_with_threads(job):
    """Fit with scikit-learn, whose loops have threads, and print the number of OpenMP's threads."""
    from sklearn.cluster import KMeans

    KMeans(2, n_init=1).fit([[float(i)] for i in range(1000)])
    print(os.environ["OMP_NUM_THREADS"])
