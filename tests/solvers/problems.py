"""Small assignment problems with their plain N x K matrices."""

from typing import NamedTuple

import numpy as np
import pytest

from fairclust import fair_assignment
from fairclust.group_encoding import read_sensitive
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import make_layout
from fairclust.metrics import contingency
from fairclust.solvers.criteria import Bounds, bounds_criterion
from toys import make_grouped_blobs
from twins import cheapest_shares


class Problem(NamedTuple):
    a: np.ndarray
    codes: np.ndarray
    potentials: Potentials
    shares: np.ndarray


def from_matrix(a, codes):
    """Return the problem of any matrix of potentials, such as those of a graph."""
    n_groups = codes.max() + 1
    potentials = Potentials.empty(make_layout(codes, n_groups), n_groups, a.shape[1], np.float64)
    potentials.set_costs(a)
    return Problem(a, codes, potentials, np.bincount(codes) / len(codes))


def from_blobs(n_samples=600, n_groups=2, n_clusters=4, seed=0):
    """Return the squared distances of grouped blobs to some of their points."""
    X, codes = make_grouped_blobs(n_samples=n_samples, n_groups=n_groups, seed=seed)
    centers = X[np.random.default_rng(seed).choice(n_samples, n_clusters, replace=False)]
    return from_matrix(((X[:, None] - centers) ** 2).sum(axis=2), codes)


def optimum(a, codes, criterion, weights=None):
    """Find the least cost of the linear program over all N x K shares of rows by HiGHS. Rows can have weights."""
    weights = np.ones(len(a)) if weights is None else weights
    members = (codes == np.arange(codes.max() + 1)[:, None]) * weights
    return cheapest_shares(
        a * weights[:, None],
        criterion.rows @ members,
        criterion.limits,
        helpers=criterion.helpers,
        exact=criterion.exact,
        method="highs",
    )


def criterion_of(n_clusters, sensitive, sizes, unit=None, **asked):
    return bounds_criterion(Bounds(**asked), sensitive, sizes, n_clusters, unit=unit)


def check(a, columns, **asked):
    """Assign, check what must hold of every result, and return it with its table of counts and the least cost."""
    found = fair_assignment(a, columns, **asked)
    sensitive = read_sensitive(columns, len(a))
    table = contingency(found.labels, sensitive.codes, a.shape[1], len(sensitive.cells)).astype(float)
    criterion = criterion_of(a.shape[1], sensitive, table.sum(axis=1), **asked)
    assert found.cost == pytest.approx(a[np.arange(len(a)), found.labels].sum(), abs=1e-9)
    np.testing.assert_allclose(found.violation, criterion.excess(table), atol=1e-9)
    best = optimum(a, sensitive.codes, criterion)
    assert found.lower_bound <= best + 1e-9 * (1 + abs(best))
    assert found.lower_bound >= best - 1e-4 * abs(best) - 1e-9 * (1 + np.abs(a).sum())
    assert found.gap >= 0
    if found.slack < 1e-9:
        assert found.cost >= best - 1e-9 * (1 + abs(best))
        if found.lower_bound > 1e-9:
            assert found.gap == pytest.approx(found.cost / found.lower_bound - 1, abs=1e-9)
    return found, table, best
