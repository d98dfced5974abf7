"""Individually fair k-means and k-medians by local search (Mahabadi and Vakilian, ICML 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from fairclust.base import COUNT, record
from fairclust.methods._prototypes import RowCenterClusterer
from fairclust.metrics import neighbourhood_radii

_METRICS = {"k-means": "sqeuclidean", "k-medians": "euclidean"}
# Number of distances that are computed at a time.
_BLOCK = 2**21


@dataclass(eq=False, repr=False, kw_only=True)
class IndividuallyFairClustering(RowCenterClusterer):
    """K-means or k-medians in which every row has a centre about as near as its n/k nearest rows.

    The radius of a row is that of the smallest ball around it with ``ceil(n/k)`` rows. Some rows have a critical ball
    of `alpha` times their radius. If every critical ball contains a centre, every row is near enough to a centre. A
    local search starts with a centre in each critical ball. It swaps centres for other rows to lower the cost, and
    every critical ball always contains a centre.

    Parameters
    ----------
    n_clusters : int, default=8
        k.
    objective : "k-means" or "k-medians", default="k-means"
        The cost: the sum of squared distances, or of distances, to centres that are rows.
    alpha : float, default=1.0
        At least 1. No row is farther from its centre than ``3 alpha`` times its radius.
    n_candidates : int, default=1_000
        Number of rows that are tried as centres in each pass, drawn at random.
    max_iter : int, default=20
        Largest number of passes.
    tol : float, default=1e-4
        A swap must lower the cost by more than this fraction.
    max_rows : int, default=5_000
        With more rows the radii are estimated from a random sample of this size, and the bound ``3 alpha`` holds for
        the estimated radii.
    random_state : int, RandomState or None
        The seed of the sample, the first centres and the candidates.

    Attributes
    ----------
    history_ : list of dict
        The groups do not change the clustering. The fairness term is `ratio_`.
    cost_ : float
        Sum of the (squared) distances.
    radii_ : ndarray of shape (n_samples,)
        The radius of each row, as a Euclidean distance.
    ratio_ : float
        The largest ratio of a row's distance to its centre and its radius, at most ``3 alpha``; see
        `fairclust.metrics.individual_fairness`.
    n_balls_ : int
        Number of critical balls.

    References
    ----------
    Mahabadi and Vakilian, "Individual fairness for k-clustering", ICML 2020; Jung, Kannan, Lutz, "Service in your
    neighborhood", 2020, for the radii.

    Examples
    --------
    >>> from fairclust import IndividuallyFairClustering
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = IndividuallyFairClustering(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    >>> bool(model.ratio_ <= 1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "objective": [StrOptions(set(_METRICS))],
        "alpha": [Interval(Real, 1, None, closed="left")],
        "n_candidates": COUNT,
        "max_rows": COUNT,
    }

    objective: str = "k-means"
    alpha: float = 1.0
    n_candidates: int = 1_000
    max_iter: int = 20
    tol: float = 1e-4
    max_rows: int = 5_000
    random_state: Any = None

    @property
    def _power(self) -> int:  # type: ignore[override]
        return 2 if self.objective == "k-means" else 1

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        points = X.astype(np.float64)
        sample = points
        if len(points) > self.max_rows:
            sample = points[rng.permutation(len(points))[: max(self.max_rows, self.n_clusters)]]
        self.radii_ = neighbourhood_radii(sample, self.n_clusters, queries=points)
        balls = critical_balls(points, self.radii_, self.alpha)
        self.n_balls_ = len(balls)
        must = np.stack(
            [np.linalg.norm(points - points[p], axis=1) <= self.alpha * self.radii_[p] for p in balls]
        )
        rows, history = swap_search(
            points,
            _filled(points, balls, self.n_clusters, rng),
            must,
            metric=_METRICS[self.objective],
            n_candidates=self.n_candidates,
            max_iter=self.max_iter,
            tol=self.tol,
            rng=rng,
        )
        distances = self._take(X, codes, rows)
        self.cost_ = float((distances**2).sum() if self.objective == "k-means" else distances.sum())
        away = distances > 0
        with np.errstate(divide="ignore"):
            self.ratio_ = float((distances[away] / self.radii_[away]).max(initial=0.0))
        self.history_ = [{**record, "fairness": self.ratio_} for record in history]
        self.n_iter_ = len(self.history_)


def _filled(X: np.ndarray, rows: np.ndarray, n_clusters: int, rng: np.random.RandomState) -> np.ndarray:
    """Add rows until there are `n_clusters`, as k-means++ does.

    The probability of a row is proportional to its squared distance to the nearest row that was chosen before.
    """
    chosen = list(rows)
    nearest = np.min([((X - X[p]) ** 2).sum(axis=1) for p in chosen], axis=0)
    while len(chosen) < n_clusters:
        total = nearest.sum()
        p = int(rng.choice(len(X), p=nearest / total if total > 0 else None))
        chosen.append(p)
        nearest = np.minimum(nearest, ((X - X[p]) ** 2).sum(axis=1))
    return np.array(chosen)


def critical_balls(X: np.ndarray, radii: np.ndarray, alpha: float) -> np.ndarray:
    """Rows, sorted by radius, whose balls must contain a centre, so that every row has one within ``3 * alpha`` radii.

    Their balls of `alpha` times their radius do not overlap. Every other row is within ``2 * alpha`` times its own
    radius of one of them that has no larger radius.
    """
    uncovered = np.ones(len(X), dtype=bool)
    balls = []
    for p in np.argsort(radii, kind="stable"):
        if uncovered[p]:
            balls.append(p)
            # The tolerance covers points exactly at the limit. Otherwise rounding could make too many balls.
            uncovered &= np.linalg.norm(X - X[p], axis=1) > 2 * alpha * radii * (1 + 1e-12)
    return np.array(balls)


def swap_search(
    X: np.ndarray,
    rows: np.ndarray,
    must: np.ndarray,
    *,
    metric: str,
    n_candidates: int,
    max_iter: int,
    tol: float,
    rng: np.random.RandomState,
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """Replace centres by other rows, one at a time, as long as that lowers the cost by more than `tol`, relatively.

    `must` (n_balls, n_samples) says which rows lie in which ball, and every ball always contains a centre. Each pass
    tries `n_candidates` random rows, and the search ends after `max_iter` passes or one without a swap. Returns the
    rows that are centres, and a record for every pass.
    """
    rows = rows.copy()
    distances = cdist(X, X[rows], metric)
    cost = float(distances.min(axis=1).sum())
    height = max(1, _BLOCK // len(X))
    history: list[dict[str, float]] = []
    for step in range(1, max_iter + 1):
        begin, n_swaps = perf_counter(), 0
        tried = rng.permutation(len(X))[:n_candidates]
        for start in range(0, len(tried), height):
            batch = tried[start : start + height]
            to_batch = cdist(X[batch], X, metric)
            totals = _after_swap(distances, to_batch)
            # A swap is allowed if it leaves a centre in every ball.
            held = must[:, rows]
            without = held.sum(axis=1)[:, None] - held
            allowed = ((without[:, None, :] > 0) | must[:, batch][:, :, None]).all(axis=0)
            totals[~allowed] = np.inf
            i, k = np.unravel_index(int(totals.argmin()), totals.shape)
            if totals[i, k] < cost * (1 - tol):
                rows[k], distances[:, k], cost = batch[i], to_batch[i], float(totals[i, k])
                n_swaps += 1
        history.append(record(step, begin, cost, cost, 0.0, swaps=n_swaps))
        if n_swaps == 0:
            break
    return rows, history


def _after_swap(distances: np.ndarray, to_batch: np.ndarray) -> np.ndarray:
    """Cost with each candidate instead of each centre, shape (n_candidates, n_clusters).

    If the centre of a point is swapped for the candidate, the point pays the smaller of its distances to the second
    nearest centre and to the candidate. If another centre is swapped, it pays the smaller of its distances to its own
    centre and to the candidate.
    """
    n_samples, n_clusters = distances.shape
    nearest = distances.argmin(axis=1)
    every = np.arange(n_samples)
    first = distances[every, nearest]
    others = distances.copy()
    others[every, nearest] = np.inf
    kept = np.minimum(to_batch, first)
    lost = np.minimum(to_batch, others.min(axis=1)) - kept
    return kept.sum(axis=1)[:, None] + lost @ (nearest[:, None] == np.arange(n_clusters))
