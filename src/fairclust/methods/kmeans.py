"""K-means without fairness, with which the fair methods are compared."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from fairclust.base import initial_centers, record
from fairclust.chunks.rows import ChunkedRows
from fairclust.messages import count
from fairclust.methods._prototypes import PrototypeClusterer
from fairclust.solvers.alternation import Alternation, Prototypes, alternate, judge_fall, plain_step
from fairclust.solvers.lloyd import Lloyd
from fairclust.solvers.search import plain_run, plain_search

# A run of the search ends when a step lowers the cost by no more than this fraction. `PriceFairKMeans` has it as `tol`.
_TOL = 1e-5


@dataclass(eq=False, repr=False, kw_only=True)
class KMeans(PrototypeClusterer):
    """scikit-learn's `KMeans` with the interface of this package. The groups may be left out, and change nothing.

    Parameters
    ----------
    n_init : int, default=1
        Number of starts, of which the best is kept. If `init` is an array there is one start.
    search : bool, default=False
        Whether to search on from the best of several starts, as `PriceFairKMeans` does.
    max_iter : int, default=300
    tol : float, default=1e-4

    Attributes
    ----------
    inertia_ : float

    Examples
    --------
    >>> from fairclust import KMeans
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = KMeans(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> round(model.inertia_, 2)
    10.0
    """

    takes_chunks = _takes_lists = True
    _needs_groups = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"search": ["boolean"]}
    init: Any = "k-means++"
    n_init: int = 1
    search: bool = False
    max_iter: int = 300
    tol: float = 1e-4
    verbose: int = 0

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        effort = {"max_iter": self.max_iter, "tol": self.tol, "verbose": self.verbose}
        model = Lloyd.started_as(self, **effort, random_state=self.random_state)
        if self._searches:
            model.set_params(init=self._searched(X), n_init=1)
        model.fit(X)
        if model.n_iter_ == self.max_iter:
            self._complain(
                f"stopped after {count(self.max_iter, 'step')}, perhaps before it converged: raise max_iter or tol"
            )
        self.labels_ = model.labels_
        self.cluster_centers_ = self._centers = model.cluster_centers_
        self.inertia_ = self._paid(X, self.labels_, self.cluster_centers_)
        self.n_iter_ = int(model.n_iter_)
        # scikit-learn does not record its steps, so the history has one record, of the last step.
        self.history_ = [record(self.n_iter_, begin, self.inertia_, self.inertia_, 0.0)]

    def _searched(self, X: np.ndarray) -> np.ndarray:
        """The centres that the search finds from the best starts."""
        rng = check_random_state(self.random_state)
        points = self._points(X, np.zeros(X.shape[0], np.int32), shape=(1, self.n_clusters))
        starts = (initial_centers(X, self.n_clusters, "k-means++", rng) for _ in range(self.n_init))
        runs = [plain_run(points, Prototypes(start), self._update, _TOL) for start in starts]
        return plain_search(points, runs, self._update, _TOL, rng).prototypes.centers

    def _fit_chunks(self, rows: ChunkedRows) -> None:
        alternation = Alternation(plain_step, self._update, partial(judge_fall, tol=self.tol))
        known, (n_rows, *more) = rows.known, rows.samples
        self._frame = self._frame._replace(origin=rows.points.shift, mean=rows.points.shift)
        # This computes the first centres.
        self._fit(self._frame.into(known.X[:n_rows]), known.codes[:n_rows])
        prototypes = Prototypes(self._frame.out_of(self.cluster_centers_.astype(np.float64)))
        for n_rows in more:
            prototypes = alternate(
                alternation, rows.sample(n_rows), prototypes, max_iter=self.max_iter
            ).prototypes
        run = alternate(alternation, rows.points, prototypes, max_iter=self.max_iter, verbose=self.verbose)
        self.labels_, self.inertia_ = run.last.labels, run.last.clustering
        self.cluster_centers_ = self._frame.into(run.prototypes.centers)
        self._centers = self.cluster_centers_.astype(known.X.dtype)
        self.n_iter_, self.history_ = run.n_steps, run.history

    def predict(self, X: Any, sensitive_features: Any = None) -> np.ndarray:
        """Nearest centre of each row. The groups are not needed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        sensitive_features : ignored

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        X = self._new_rows(X)
        rows, centers = self._frame.into(X), self._centers
        shift = (self._frame.mean - self._frame.origin) / self._frame.unit
        if shift.any():
            # Rows that are mapped from a file were not centred before the fit, which centres them itself.
            rows, centers = rows - shift, centers - shift
        # scikit-learn's model predicts only after a fit, which would round the centres.
        model = Lloyd(len(centers), init=centers, n_init=1, max_iter=1)
        with warnings.catch_warnings(action="ignore"):
            model.fit(centers).cluster_centers_ = centers
        # It needs rows and centres of one type.
        return model.predict(rows.astype(centers.dtype, copy=False))
