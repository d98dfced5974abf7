"""Fair k-center (Harb and Lam, NeurIPS 2020): the smallest radius with bounded group shares."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from fairclust.base import FairClusterer, record
from fairclust.kernels.tiles import distinct_rows
from fairclust.metrics import contingency
from fairclust.solvers.criteria import share_bounds
from fairclust.solvers.programs import Program, sums, whole_numbers


@dataclass(eq=False, repr=False, kw_only=True)
class FairKCenter(FairClusterer):
    """K-center in which every cluster keeps bounds on its group shares, with the smallest radius for given centres.

    The first centre is a random row, and each other centre the row that is farthest from those before it (Gonzalez
    1985). In every cluster the share of group j must lie between ``mu_j (1 - tolerance)`` and ``mu_j / (1 -
    tolerance)``, mu_j being the group's share of the data. A linear program finds the smallest radius within which
    fractions of points can be assigned within these bounds, and its solution is rounded to whole points.

    Parameters
    ----------
    tolerance : float, default=0.2
        In [0, 1), as in `BeraFairKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Rows of X. There is no `predict`.
    center_indices_ : ndarray of shape (n_clusters,)
        The rows that are centres.
    radius_ : float
        The largest distance of a row to its centre. It is at most four times the smallest radius of any centres
        with any assignment within the bounds.
    plain_radius_ : float
        The radius if every row goes to the nearest of the same centres.
    violation_ : float
        The largest number of points by which any group exceeds or misses its bounds in any cluster; below 2.

    References
    ----------
    Harb and Lam, "KFC: a scalable approximation algorithm for k-center fair clustering", NeurIPS 2020; Bera et
    al., "Fair algorithms for clustering", NeurIPS 2019, for the factor.

    Examples
    --------
    >>> from fairclust import FairKCenter
    >>> X = [[0, 0], [0, 1], [0, 2], [0, 3], [9, 0], [9, 1], [9, 2], [9, 3]]
    >>> sex = ["f", "f", "f", "m", "f", "m", "m", "m"]
    >>> model = FairKCenter(2, random_state=0).fit(X, sensitive_features=sex)
    >>> model.labels_.tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    >>> round(model.radius_, 2)
    3.0
    """

    _power = 1

    tolerance: float = 0.2

    def _fit(self, X: np.ndarray, codes: np.ndarray) -> None:
        begin = perf_counter()
        rng = check_random_state(self.random_state)
        rows = _farthest_first(X, self.n_clusters, int(rng.randint(len(X))))
        self.center_indices_ = self._center_rows = rows
        self.cluster_centers_ = X[rows].astype(np.float64)
        distances = cdist(X, X[rows])
        self.plain_radius_ = float(distances.min(axis=1).max())
        shares = np.bincount(codes) / len(codes)
        lower, upper = shares * (1 - self.tolerance), shares / (1 - self.tolerance)
        self.labels_, self.radius_ = least_radius_assignment(distances, codes, lower=lower, upper=upper)
        table = contingency(self.labels_, codes, self.n_clusters)
        self.violation_ = float(share_bounds(lower, upper).excess(table).max())
        self.n_iter_ = 1
        self.history_ = [record(1, begin, self.radius_, self.radius_, self.violation_)]
        if n_empty := self.n_clusters - len(np.unique(self.labels_)):
            self._complain(
                f"{n_empty} of {self.n_clusters} clusters have no rows, because no rows near their centres have the "
                "shares that the bounds require: raise tolerance, take fewer clusters or another random_state"
            )


class _Kinds(NamedTuple):
    """Kinds of points. Points of one kind are in the same group and have the same centres within the radius."""

    of_point: np.ndarray  # (n_samples,)
    sizes: np.ndarray  # (n_kinds,)
    groups: np.ndarray  # (n_kinds,)
    # The variables of the programs are the pairs of a kind and a cluster that its points can go to.
    kind: np.ndarray  # (n_pairs,)
    cluster: np.ndarray  # (n_pairs,)
    costs: np.ndarray  # (n_pairs,); mean distance of the kind's points to the centre, see `_kinds`


def _farthest_first(X: np.ndarray, n_clusters: int, first: int) -> np.ndarray:
    """Choose rows one after the other, each of them the farthest from those before it, beginning with the row `first`.

    The radius is at most twice the smallest one (Gonzalez 1985). If there are fewer distinct points, rows repeat.
    """
    rows, nearest = [first], np.full(len(X), np.inf)
    while len(rows) < n_clusters:
        deviation = X - X[rows[-1]]
        np.minimum(nearest, np.einsum("pd,pd->p", deviation, deviation), out=nearest)
        rows.append(int(nearest.argmax()))
    return np.array(rows)


def least_radius_assignment(
    distances: np.ndarray, codes: np.ndarray, *, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float]:
    """Labels for given centres with the least radius for which fractions of points can keep the bounds, and the radius.

    Its sizes and counts are rounded, so each group is outside its bounds by less than two points. Points of one group
    with the same centres within the radius share a variable (Harb and Lam 2020). The search bisects the distances.
    """
    radii = np.unique(distances[distances >= distances.min(axis=1).max()])

    def suffices(radius: float) -> bool:
        kinds = _kinds(distances, codes, radius)
        return _fractions(kinds, np.zeros(len(kinds.costs)), lower, upper) is not None

    # The least radius of any assignment often suffices. The largest distance always does, so it is not tried.
    place = 0 if suffices(radii[0]) else bisect_left(radii, True, hi=len(radii) - 1, key=suffices)
    kinds = _kinds(distances, codes, radii[place])
    fractions = _fractions(kinds, kinds.costs, lower, upper)
    if fractions is None:
        raise RuntimeError(f"HiGHS found no assignment within the radius {radii[place]:.6g}")
    cells, shape = (kinds.kind, kinds.groups[kinds.kind], kinds.cluster), (len(lower), distances.shape[1])
    numbers = whole_numbers(fractions, kinds.costs, cells, shape, kinds.sizes)
    labels = _dealt(distances, kinds, numbers)
    return labels, float(distances[np.arange(len(labels)), labels].max())


def _kinds(distances: np.ndarray, codes: np.ndarray, radius: float) -> _Kinds:
    first, of_point, sizes = distinct_rows(np.packbits(distances <= radius, axis=1), codes)
    kind, cluster = (distances[first] <= radius).nonzero()
    means = (sums(of_point, len(sizes)) @ distances / sizes[:, None])[kind, cluster]
    # HiGHS fails if the costs are very large.
    return _Kinds(of_point, sizes, codes[first], kind, cluster, means / (means.max(initial=0.0) or 1.0))


def _fractions(kinds: _Kinds, costs: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """The cheapest fractional assignment within the bounds and the radius; None if there is none."""
    clusters, groups = sums(kinds.cluster, int(kinds.cluster.max()) + 1), kinds.groups[kinds.kind]
    program = Program()
    program.variables("points", costs)
    for j in range(len(lower)):
        program.rows(-np.inf, 0, points=clusters.multiply(lower[j] - (groups == j)))
        program.rows(-np.inf, 0, points=clusters.multiply((groups == j) - upper[j]))
    program.rows(kinds.sizes, kinds.sizes, points=sums(kinds.kind, len(kinds.sizes)))
    done = program.solve()
    return None if done is None else done.values["points"]


def _dealt(distances: np.ndarray, kinds: _Kinds, numbers: np.ndarray) -> np.ndarray:
    """Labels with the given number of points of each kind in each cluster. The points nearest to a cluster get it."""
    labels = np.empty(len(distances), np.int32)
    by_kind = np.split(np.argsort(kinds.of_point, kind="stable"), np.cumsum(kinds.sizes)[:-1])
    used = np.flatnonzero(numbers > 0)
    pairs_of_kind = np.split(used, np.searchsorted(kinds.kind[used], np.arange(1, len(kinds.sizes))))
    for left, pairs in zip(by_kind, pairs_of_kind, strict=True):
        while len(pairs) > 1:
            here, others = kinds.cluster[pairs[0]], kinds.cluster[pairs[1:]]
            regret = distances[left, here] - distances[np.ix_(left, others)].min(axis=1)
            ranked = left[np.argsort(regret, kind="stable")]
            labels[ranked[: numbers[pairs[0]]]] = here
            left, pairs = ranked[numbers[pairs[0]] :], pairs[1:]
        labels[left] = kinds.cluster[pairs[0]]
    return labels
