"""Fair Interpolated Transport (Ghashti et al. 2026): the groups are moved towards each other, then clustered."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from fairclust.base import FairClusterer, initial_centers, record

# The steps t that are tried.
_STEPS = np.linspace(0, 1, 11)
# The barycentre is found if no row of it moves by more than this fraction of the data's extent, or after these steps.
_BARYCENTER_TOL = 1e-4
_BARYCENTER_STEPS = 30
_FUZZY_TOL = 1e-5
# The largest number of rows, drawn at random, on which the barycentre lies. The program takes all rows, but transport
# plans have as many entries as rows times rows of the barycentre.
_SUPPORT_ROWS = 1000


@dataclass(eq=False, repr=False, kw_only=True)
class InterpolatedTransportClustering(FairClusterer):
    """Fuzzy c-means after the groups have moved along Wasserstein-2 geodesics to a common barycentre.

    Each row x moves to ``(1 - t) x + t T(x)``, where T is the optimal transport of its group to the barycentre of the
    groups. The smallest step t of 0, 0.1, ..., 1 is taken at which the mean memberships of any two groups differ by at
    most `tolerance` in every cluster. The shares in the labels have no bound: each row gets the cluster of its largest
    membership.

    Parameters
    ----------
    tolerance : float, default=0.05
        Largest soft violation, in [0, 1): the largest difference of the mean memberships of two groups in a cluster. If
        no step is within it, `fit` takes the step with the smallest violation and warns.
    fuzziness : float, default=2.0
        Exponent of the memberships, larger than 1. The larger it is, the more equal are the memberships of a row.
    max_iter : int, default=300
        Largest number of steps of fuzzy c-means.

    Attributes
    ----------
    step_ : float
        The step t that was taken.
    violation_ : float
        The soft violation at this step.
    memberships_ : ndarray of shape (n_samples, n_clusters)
    transported_ : ndarray of shape (n_samples, n_features)
        The rows at this step, centred and scaled as in the fit. Any other method can cluster them.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the transported rows.
    n_iter_ : int
        Number of steps t that were tried.
    history_ : list of dict
        One record for each of them: its cost of fuzzy c-means, `step_size`, and the soft violation as fairness.

    References
    ----------
    Ghashti, Hare, Thompson, "Algorithm-agnostic group-fair clustering via fair interpolated transport", 2026, and their
    R package FITclust 1.0.0. Álvarez-Esteban, del Barrio, Cuesta-Albertos, Matrán, "A fixed-point approach to
    barycenters in Wasserstein space", 2016.

    Examples
    --------
    >>> from fairclust import InterpolatedTransportClustering
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1], [9, 9], [9, 8], [8, 9], [8, 8]]
    >>> sex = ["f", "f", "f", "m", "m", "m", "f", "m"]
    >>> model = InterpolatedTransportClustering(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist(), model.step_
    ([1, 1, 1, 1, 0, 1, 0, 1], 1.0)
    """

    _power = 2
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "fuzziness": [Interval(Real, 1, None, closed="neither")],
    }

    tolerance: float = 0.05
    fuzziness: float = 2.0
    max_iter: int = 300

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        begin = perf_counter()
        X = np.asarray(X, float)
        support = X[rng.choice(len(X), min(_SUPPORT_ROWS, len(X)), replace=False)]
        seed = int(rng.randint(np.iinfo(np.int32).max))
        best, self.history_ = np.inf, []
        for step, t in enumerate(_STEPS, 1):
            # The first step moves no row, and the transport takes most of the time, so it is found for the second one.
            if step == 2:
                moved = transport(X, codes, support)
            rows = (1 - t) * X + t * moved if step > 1 else X
            # All steps start from picks with the same random numbers.
            start = initial_centers(rows, self.n_clusters, "k-means++", np.random.RandomState(seed))
            memberships, centers, cost = fuzzy_c_means(rows, start, self.fuzziness, self.max_iter)
            means = np.stack([memberships[codes == j].mean(axis=0) for j in np.unique(codes)])
            violation = float(np.ptp(means, axis=0).max())
            self.history_.append(record(step, begin, cost, cost, violation, step_size=float(t)))
            begin = perf_counter()
            if violation < best:
                best = violation
                self.step_, self.violation_, self.memberships_ = float(t), violation, memberships
                self.transported_, self.cluster_centers_ = rows, centers
            if violation <= self.tolerance:
                break
        else:
            self._complain(
                f"no step is within tolerance={self.tolerance:g}; the smallest soft violation is {best:.3g}, at step "
                f"{self.step_:g}: raise tolerance"
            )
        self.n_iter_ = step
        self.labels_ = self.memberships_.argmax(axis=1)


def transport(X: np.ndarray, codes: np.ndarray, support: np.ndarray) -> np.ndarray:
    """Where the optimal transport to the Wasserstein-2 barycentre of the groups moves each row, of the shape of X.

    The weights of the groups are their shares. A row that is split goes to the mean of its parts. `support`, shape
    (n_support, n_features), holds the points from which those of the barycentre start.
    """
    # Imported here, because an extra installs it, and `from fairclust import *` needs none.
    from ot import emd

    groups = [np.flatnonzero(codes == j) for j in np.unique(codes)]
    extent = np.ptp(X, axis=0).max()

    def plans() -> list[np.ndarray]:
        # Masses are whole numbers, so that their sums are equal.
        return [
            emd(
                np.full(len(rows), float(len(support))),
                np.full(len(support), float(len(rows))),
                cdist(X[rows], support, "sqeuclidean"),
                numItermax=10_000_000,
            )
            for rows in groups
        ]

    for _ in range(_BARYCENTER_STEPS):
        solved = plans()
        # The mean over the groups, by their shares, of the mean of the rows that go to each point of the support.
        new = sum(plan.T @ X[rows] for plan, rows in zip(solved, groups, strict=True)) / len(X)
        change = np.abs(new - support).max()
        support = new
        if change <= _BARYCENTER_TOL * extent:
            break
    moved = np.empty_like(X)
    for plan, rows in zip(plans(), groups, strict=True):
        moved[rows] = plan @ support / len(support)
    return moved


def fuzzy_c_means(
    X: np.ndarray, centers: np.ndarray, fuzziness: float, max_iter: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Memberships of shape (n_samples, n_clusters), centres and cost of fuzzy c-means (Bezdek 1981)."""
    memberships = np.zeros((len(X), len(centers)))
    for _ in range(max_iter):
        squares = cdist(X, centers, "sqeuclidean")
        # A row on a centre, or on several, belongs to these alone.
        nearest = np.maximum(squares.min(axis=1, keepdims=True), np.finfo(float).tiny)
        with np.errstate(over="ignore"):
            new = np.maximum(squares / nearest, 1) ** (-1 / (fuzziness - 1))
        new /= new.sum(axis=1, keepdims=True)
        change, memberships = np.abs(new - memberships).max(), new
        weights = memberships**fuzziness
        # A cluster keeps its centre if all its weights are too small for double precision.
        total = weights.sum(axis=0)[:, None]
        centers = np.where(total > 0, weights.T @ X / np.where(total > 0, total, 1), centers)
        if change <= _FUZZY_TOL:
            break
    return memberships, centers, float((weights * cdist(X, centers, "sqeuclidean")).sum())
