"""Centres for the largest distance: farthest-first traversal, and fair assignments with the least radius."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from fairclust.solvers.programs import Program, sums

# A key has 63 bits, so keys are numbered again after this many columns.
_COLUMNS = 40


class _Kinds(NamedTuple):
    """Kinds of points. Points of one kind are in the same group and have the same centres within the radius."""

    of_point: np.ndarray  # (n_samples,)
    sizes: np.ndarray  # (n_kinds,)
    groups: np.ndarray  # (n_kinds,)
    # (n_pairs,). Pairs of a kind and a cluster that its points can go to. These are the variables of the linear
    # programs.
    kind: np.ndarray
    cluster: np.ndarray  # (n_pairs,)


def farthest_first(X: np.ndarray, n_clusters: int, first: Sequence[int]) -> np.ndarray:
    """Choose rows one after the other, each of them the farthest from those before it, beginning with the rows `first`.

    The radius is at most twice the smallest one (Gonzalez 1985). If there are fewer distinct points, rows repeat.
    """
    rows = list(first)
    nearest = np.full(len(X), np.inf)
    for k in range(n_clusters):
        if k == len(rows):
            rows.append(int(nearest.argmax()))
        deviation = X - X[rows[k]]
        np.minimum(nearest, np.einsum("pd,pd->p", deviation, deviation), out=nearest)
    return np.array(rows)


def least_radius_assignment(
    distances: np.ndarray, codes: np.ndarray, *, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, float]:
    """Labels for given centres with the least radius for which fractions of points can keep the bounds, and the radius.

    Its sizes and counts are rounded, so each group is outside its bounds by less than two points. Points of one group
    with the same centres within the radius share a variable (Harb and Lam 2020). The search bisects the distances.
    """
    radius = float(distances.min(axis=1).max())
    if _program(distances, codes, radius, lower, upper) is None:
        too_small, radius = radius, float(distances.max())
        left = distances[(distances > too_small) & (distances < radius)]
        while left.size:
            middle = left.size // 2
            tried = float(np.partition(left, middle)[middle])
            if _program(distances, codes, tried, lower, upper) is None:
                left = left[left > tried]
            else:
                radius, left = tried, left[left < tried]
    assigned = _program(distances, codes, radius, lower, upper, cheapest=True)
    if assigned is None:
        raise RuntimeError(f"HiGHS found no assignment within the radius {radius:.6g}")
    kinds, fractions = assigned
    labels = _dealt(distances, kinds, _rounded(distances, kinds, fractions))
    return labels, float(distances[np.arange(len(labels)), labels].max())


def _program(
    distances: np.ndarray,
    codes: np.ndarray,
    radius: float,
    lower: np.ndarray,
    upper: np.ndarray,
    cheapest: bool = False,
) -> tuple[_Kinds, np.ndarray] | None:
    """A fractional assignment within a radius, any or the cheapest one; None if there is none."""
    keys = codes.astype(np.int64)
    for k, column in enumerate(distances.T):
        if k and k % _COLUMNS == 0:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        keys = 2 * keys + (column <= radius)
    _, first, of_point, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    kinds = _Kinds(of_point, sizes, codes[first], *(distances[first] <= radius).nonzero())
    clusters = sums(kinds.cluster, distances.shape[1])
    program = Program()
    costs = _mean_distances(distances, kinds)
    program.variables("points", costs if cheapest else np.zeros(len(costs)))
    for j in range(len(lower)):
        inside = clusters @ sparse.diags_array((kinds.groups[kinds.kind] == j).astype(float))
        program.rows(-np.inf, 0, points=lower[j] * clusters - inside)
        program.rows(-np.inf, 0, points=inside - upper[j] * clusters)
    program.rows(kinds.sizes, kinds.sizes, points=sums(kinds.kind, len(kinds.sizes)))
    done = program.solve()
    return None if done is None else (kinds, done.values["points"])


def _rounded(distances: np.ndarray, kinds: _Kinds, fractions: np.ndarray) -> np.ndarray:
    """Round the fractions to whole points by a flow. Every sum of the fractions is rounded up or down."""
    n_clusters = distances.shape[1]
    cells = kinds.groups[kinds.kind] * n_clusters + kinds.cluster
    table = sums(cells, n_clusters * (int(kinds.groups.max()) + 1))
    rounded = sparse.vstack([table, sums(kinds.cluster, n_clusters)], format="csr")
    counts = rounded @ fractions
    program = Program()
    program.variables("points", _mean_distances(distances, kinds))
    program.rows(np.floor(counts + 1e-6), np.ceil(counts - 1e-6), points=rounded)
    program.rows(kinds.sizes, kinds.sizes, points=sums(kinds.kind, len(kinds.sizes)))
    # The solution is a vertex, and the vertices of a flow are whole.
    done = program.solve()
    if done is None:
        raise RuntimeError(f"HiGHS found no rounding: {program.message}")
    return np.rint(done.values["points"]).astype(np.int64)


def _dealt(distances: np.ndarray, kinds: _Kinds, numbers: np.ndarray) -> np.ndarray:
    """Labels with the given number of points of each kind in each cluster. The points nearest to a cluster get it."""
    labels = np.empty(len(distances), np.int32)
    order = np.argsort(kinds.of_point, kind="stable")
    ends = np.cumsum(kinds.sizes)
    first = np.searchsorted(kinds.kind, np.arange(len(kinds.sizes) + 1))
    for s, end in enumerate(ends):
        left = order[end - kinds.sizes[s] : end]
        pairs = np.arange(first[s], first[s + 1])
        pairs = pairs[numbers[pairs] > 0]
        while len(pairs) > 1:
            here, others = kinds.cluster[pairs[0]], kinds.cluster[pairs[1:]]
            regret = distances[left, here] - distances[np.ix_(left, others)].min(axis=1)
            ranked = left[np.argsort(regret, kind="stable")]
            labels[ranked[: numbers[pairs[0]]]] = here
            left, pairs = ranked[numbers[pairs[0]] :], pairs[1:]
        labels[left] = kinds.cluster[pairs[0]]
    return labels


def _mean_distances(distances: np.ndarray, kinds: _Kinds) -> np.ndarray:
    """Mean distance of the points of a kind to a centre, for every variable, divided by the largest one.

    HiGHS fails if the costs are very large.
    """
    sums = np.stack([np.bincount(kinds.of_point, weights=column) for column in distances.T], axis=1)
    means = (sums / kinds.sizes[:, None])[kinds.kind, kinds.cluster]
    return means / (means.max(initial=0.0) or 1.0)
