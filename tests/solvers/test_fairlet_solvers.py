import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from fairclust.methods import FairletClustering
from fairclust.methods.fairlets.estimator import cluster_medoids
from fairclust.metrics import contingency, kmedians_cost


def cheapest_stars(lengths, q):
    """Find the least total length of edges that give every point 1 to q edges, by trying all sets."""
    n, m = lengths.shape
    edges = list(itertools.product(range(n), range(m)))
    best = np.inf
    for size in range(max(n, m), n + m):
        for chosen in itertools.combinations(edges, size):
            i, j = np.array(chosen).T
            of_row, of_column = np.bincount(i, minlength=n), np.bincount(j, minlength=m)
            if min(of_row.min(), of_column.min()) >= 1 and max(of_row.max(), of_column.max()) <= q:
                best = min(best, lengths[i, j].sum())
    return best


@given(st.integers(0, 2**32 - 1), st.sampled_from([(3, 3, 1), (3, 3, 2), (2, 4, 2), (2, 5, 3), (4, 3, 3)]))
@settings(max_examples=25)
def test_flow_fairlets_cost_least(seed, shape):
    n, m, q = shape
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + m, 2))
    codes = rng.permutation(np.arange(n + m) < m).astype(int)
    fairlet = FairletClustering()._decompose(X, codes, 1, q, None)
    table = contingency(fairlet, codes)
    assert (table.min(axis=0) == 1).all()
    assert table.max() <= q
    lengths = cdist(X[codes == 0], X[codes == 1])
    same = fairlet[codes == 0][:, None] == fairlet[codes == 1]
    assert lengths[same].sum() == pytest.approx(cheapest_stars(lengths, q))


@pytest.mark.parametrize("n_places", [1, 2, 7])
def test_flow_fairlets_of_coincident_points_are_stars(n_places):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_places, 2))[rng.integers(n_places, size=40)]
    codes = (np.arange(40) < 15).astype(int)
    table = contingency(FairletClustering()._decompose(X, codes, 1, 3, None), codes)
    assert (table.min(axis=0) == 1).all()
    assert table.max() <= 3


def test_medoids_of_samples_are_nearly_those_of_all(grouped_blobs):
    X = grouped_blobs(n_samples=3000)[0]
    costs = {}
    for max_exact in (300, 5000):
        rows = cluster_medoids(X, 4, max_exact, np.random.RandomState(0))
        assert len(set(rows)) == 4
        costs[max_exact] = cdist(X, X[rows]).min(axis=1).sum()
    assert costs[5000] <= costs[300] <= 1.03 * costs[5000]
    labels = cdist(X, X[rows]).argmin(axis=1)
    # FasterPAM has converged, so no medoid can be improved by much.
    assert costs[5000] <= 1.001 * kmedians_cost(X, labels)
