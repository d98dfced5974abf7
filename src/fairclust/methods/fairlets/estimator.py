"""Clustering by fairlets: cut the data into small balanced sets, then cluster their centres."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from fairclust.base import Diverged, FairClusterer, NotSupported, record
from fairclust.kernels.fairlets import fairlet_medoids, swap_medoids
from fairclust.metrics import balance, contingency
from fairclust.solvers.lloyd import Lloyd, nearest_centers

# Largest q that "auto" and the proposals of error messages consider. A fairlet has up to p + q points.
_MOST = 10
# Number of runs and most rows of each, as in CLARA (Kaufman and Rousseeuw 1990). Distances of these rows take 144 MB.
_RUNS, _SAMPLE = 5, 6000


@dataclass(eq=False, repr=False, kw_only=True)
class FairletClusterer(FairClusterer):
    """Base of the fairlet methods: `_decompose` makes the fairlets, then `_fit` clusters their centres.

    Parameters
    ----------
    clustering : {"kmedoids", "kmeans"}, default="kmedoids"
        "kmedoids" runs FasterPAM on the medoids of the fairlets. "kmeans" runs k-means, with ten starts, on the means
        of the fairlets, weighted by their numbers of points.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Medoids, which are rows of X, or weighted means. If there are fewer fairlets than clusters, there are as many
        centres as fairlets, and `fit` warns of it. New points have no fairlet, so there is no `predict`.
    balance_ : (int, int)
        The pair (p, q) in lowest terms.
    fairlet_labels_ : ndarray of shape (n_samples,)
        Number of every point's fairlet.
    fairlet_cost_, cost_ : float
        Sum of the points' distances to the centres of their fairlets, and to those of their clusters; of squared
        distances with "kmeans".
    n_iter_ : int
        2, for the decomposition and the clustering.
    history_ : list of dict
        One record for each of the two. The objective is the cost. The fairness term is the least balance of the
        fairlets, or of the clusters.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "balance": [StrOptions({"auto"}), "array-like"],
        "clustering": [StrOptions({"kmedoids", "kmeans"})],
    }

    _one = False

    @property
    def _power(self) -> int:  # type: ignore[override]
        return 2 if self.clustering == "kmeans" else 1

    balance: Any = "auto"
    clustering: str = "kmedoids"

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
            self._complain(
                f"the data have only {n_clusters} fairlets of balance {self.balance_[0]}/{self.balance_[1]}, "
                f"and so only {n_clusters} of {self.n_clusters} clusters"
            )
        self._center_rows = None
        if medians:
            medoids = cluster_medoids(centers, n_clusters, rng)
            self.cluster_centers_, self._center_rows = centers[medoids], rows[medoids]
            labels = nearest_centers(centers, self.cluster_centers_)[0]
        else:
            model = Lloyd(n_clusters, n_init=10, random_state=rng)
            labels = model.fit(centers, sample_weight=counts.astype(float)).labels_
            self.cluster_centers_ = model.cluster_centers_
        self.labels_ = labels[self.fairlet_labels_]
        self.cost_ = self._cost(X, self.cluster_centers_[self.labels_])
        self.n_iter_ = 2
        fairness = float(balance(contingency(self.labels_, codes)))
        self.history_.append(record(2, begin, self.cost_, self.cost_, fairness))

    def _cost(self, X: np.ndarray, centers: np.ndarray) -> float:
        squares = ((X - centers) ** 2).sum(axis=1, dtype=float)
        return float((squares if self.clustering == "kmeans" else np.sqrt(squares)).sum())


def resolve_balance(wanted: Any, sizes: np.ndarray, *, one: bool = False) -> tuple[int, int]:
    """The pair (p, q) in lowest terms; "auto" takes the largest balance that the data allow with q <= 10, else (1, q).

    It is a ValueError if `one` is set and p is not 1, and `NotSupported` if p / q is above the balance of the data. The
    message then proposes the nearest pair below.
    """
    least, most = int(sizes.min()), int(sizes.max())

    def below(largest: int) -> tuple[int, int]:
        """The largest fraction p / q <= least / most with q <= largest; (1, q) with a larger q if there is none."""
        best = 0 if one else max(Fraction(least * q // most, q) for q in range(1, largest + 1))
        return (best.numerator, best.denominator) if best else (1, -(-most // least))

    if isinstance(wanted, str):
        return below(_MOST)
    numbers = np.asarray(wanted).tolist()
    if (
        not isinstance(numbers, list)
        or len(numbers) != 2
        or not all(isinstance(v, Integral) or (isinstance(v, float) and v.is_integer()) for v in numbers)
        or not 1 <= numbers[0] <= numbers[1]
    ):
        raise ValueError(f"balance must be 'auto' or whole numbers (p, q) with 1 <= p <= q, found {wanted!r}")
    ratio = Fraction(int(numbers[0]), int(numbers[1]))
    p, q = ratio.numerator, ratio.denominator
    if one and p != 1:
        raise ValueError(f"balance must be (1, q) here, found {wanted!r}")
    if p * most > q * least:
        raise NotSupported(
            f"balance {p}/{q} is above that of the data, {least}/{most} = {least / most:.4g}: no clustering "
            f"can reach it; the nearest feasible pair is {below(max(q, _MOST))}"
        )
    return p, q


def cluster_medoids(points: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Rows of the medoids of `points`, the best of five runs of FasterPAM on at most `_SAMPLE` random rows each."""
    # Far from the origin, single precision would be too coarse to tell points apart.
    shift = points.mean(axis=0, dtype=np.float64)

    def fit(rows: np.ndarray) -> np.ndarray:
        sample = points[rows] - shift
        distances = np.empty((len(rows), len(rows)), np.float32)
        for begin in range(0, len(rows), 1000):
            distances[begin : begin + 1000] = cdist(sample[begin : begin + 1000], sample)
        if n_clusters == 1:
            return rows[[distances.sum(axis=1, dtype=float).argmin()]]
        # With a generator of its own, the start does not change which rows are drawn for the next sample.
        start = np.random.default_rng(rng.randint(np.iinfo(np.int32).max))
        return rows[swap_medoids(distances, start.choice(len(rows), n_clusters, replace=False))]

    size = min(len(points), max(_SAMPLE, n_clusters))
    tried = [fit(np.sort(rng.choice(len(points), size, replace=False))) for _ in range(_RUNS)]
    costs = [np.sqrt(nearest_centers(points, points[rows])[1]).sum() for rows in tried]
    return tried[int(np.argmin(costs))]
