"""A method that misbehaves, outside the package, for the tests of limits and statuses."""

import os
import signal
import time
from pathlib import Path
from typing import ClassVar

import numpy as np

from fairclust.base import Diverged, FairClusterer, NotSupported


def fail(error):
    raise error


ENDS = {
    "sleep": lambda: time.sleep(60),
    "memory": lambda: np.ones(2**40),
    "skip": lambda: fail(NotSupported("two groups only")),
    "diverge": lambda: fail(Diverged("not finite at step 3")),
    "raise": lambda: fail(RuntimeError("no idea of \ud800")),
    "panic": lambda: fail(BaseException("panicked")),
    "die": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


class Odd(FairClusterer):
    _parameter_constraints: ClassVar[dict] = {}

    def __init__(self, n_clusters=2, *, how="ok", random_state=None):
        self.n_clusters = n_clusters
        self.how = how
        self.random_state = random_state

    def _fit(self, X, codes):
        self.labels_ = np.random.default_rng(self.random_state).integers(self.n_clusters, size=len(X))
        self.n_iter_ = 1
        self.history_ = [{"step": 1, "objective": np.float32(2.5), "clustering": 2.5, "fairness": 0.0}]
        if self.how == "global":
            self.labels_ = np.random.randint(self.n_clusters, size=len(X))  # noqa: NPY002
        elif self.how == "history":
            self.history_ = [np.float32(1.0)]
        if len(X) < 1000:  # the call on a few rows that compiles the code
            time.sleep(60 if self.how == "long" else 0)
            return
        if notes := os.environ.get("ODD_NOTES"):
            with Path(notes).open("a") as file:
                file.write(f"{self.how} {self.random_state}\n")
        if self.how in ENDS:
            ENDS[self.how]()
        elif self.how == "labels":
            self.labels_ = self.labels_ + 7
        elif self.how == "shape":
            self.labels_ = self.labels_[:-1]
