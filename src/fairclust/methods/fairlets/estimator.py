"""Clustering by fairlets: cut the data into small balanced sets, then cluster their centres."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from fairclust.base import COUNT, Diverged, FairClusterer, NotSupported, record
from fairclust.kernels.assignment import SquaredDistances
from fairclust.kernels.fairlets import fairlet_medoids
from fairclust.methods.fairlets.fairlets import cluster_medoids, resolve_balance
from fairclust.metrics import balance, contingency
from fairclust.solvers.lloyd import Lloyd


@dataclass(eq=False, repr=False)
class FairletClusterer(FairClusterer):
    """Base of the fairlet methods: `_decompose` makes the fairlets, then `_fit` clusters their centres."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "balance": [StrOptions({"auto"}), "array-like"],
        "clustering": [StrOptions({"kmedoids", "kmeans"})],
        "max_exact": COUNT,
    }

    _one = False

    @property
    def _power(self) -> int:  # type: ignore[override]
        return 2 if self.clustering == "kmeans" else 1

    n_clusters: int = 8
    _: KW_ONLY
    balance: Any = "auto"
    clustering: str = "kmedoids"
    max_exact: int = 6000
    random_state: Any = None

    @abstractmethod
    def _decompose(
        self, X: np.ndarray, codes: np.ndarray, p: int, q: int, rng: np.random.RandomState
    ) -> np.ndarray:
        """Fairlet of every point, numbered from 0, shape (n_samples,). Every fairlet is (p, q)-balanced."""

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        sizes = np.bincount(codes)
        if len(sizes) > 2:
            raise NotSupported(f"fairlets are made for two groups, found {len(sizes)}")
        if len(sizes) == 1:
            # With one group every clustering is fair, so every point is a fairlet.
            self.balance_, self.fairlet_labels_ = (1, 1), np.arange(len(X))
        else:
            self.balance_ = resolve_balance(self.balance, sizes, one=self._one)
            self.fairlet_labels_ = self._decompose(X, codes, *self.balance_, rng)
        members = np.argsort(self.fairlet_labels_, kind="stable")
        counts = np.bincount(self.fairlet_labels_)
        ends = np.cumsum(counts)
        medians = self.clustering == "kmedoids"
        if medians:
            rows = fairlet_medoids(X, members, ends)
            centers = X[rows]
        else:
            centers = np.add.reduceat(X[members], ends - counts, axis=0, dtype=float) / counts[:, None]
        self.fairlet_cost_ = self._cost(X, centers[self.fairlet_labels_])
        if not np.isfinite(self.fairlet_cost_):
            raise Diverged(f"the fairlets cost {self.fairlet_cost_}")
        fairness = float(balance(contingency(self.fairlet_labels_, codes)))
        self.history_ = [record(1, begin, self.fairlet_cost_, self.fairlet_cost_, fairness)]

        begin = perf_counter()
        n_clusters = min(self.n_clusters, len(centers))
        if n_clusters < self.n_clusters:
            warnings.warn(
                f"the data have only {n_clusters} fairlets of balance {self.balance_[0]}/{self.balance_[1]}, "
                f"and so only {n_clusters} of {self.n_clusters} clusters",
                ConvergenceWarning,
                stacklevel=3,
            )
        self._center_rows: np.ndarray | None = None
        if medians:
            found = cluster_medoids(centers, n_clusters, self.max_exact, rng)
            self.cluster_centers_, self._center_rows = centers[found], rows[found]
            labels = SquaredDistances(centers, self.cluster_centers_).nearest()[0]
        else:
            model = Lloyd(n_clusters, n_init=10, random_state=rng)
            labels = model.fit(centers, sample_weight=counts.astype(float)).labels_
            self.cluster_centers_ = model.cluster_centers_
        self.labels_ = labels[self.fairlet_labels_]
        self.cost_ = self._cost(X, self.cluster_centers_[self.labels_])
        self.n_iter_ = 2
        fairness = float(balance(contingency(self.labels_, codes)))
        self.history_.append(record(2, begin, self.cost_, self.cost_, fairness))

    def _restore(self, X: np.ndarray) -> None:
        super()._restore(X)
        if self._center_rows is not None:
            self.cluster_centers_ = X[self._center_rows]

    def _cost(self, X: np.ndarray, centers: np.ndarray) -> float:
        squares = ((X - centers) ** 2).sum(axis=1, dtype=float)
        return float((squares if self.clustering == "kmeans" else np.sqrt(squares)).sum())
