import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from fairclust.kernels.fairlets import DEPTH, _split, fairlet_medoids, heavy_points, tree_fairlets

PAIRS = [(1, 1), (1, 2), (1, 3), (2, 3), (2, 5), (4, 9), (9, 10)]


def split_twin(reds, blues, p, q):
    out = np.full(1 + max([*reds, *blues]), -1)
    n = _split(np.array(reds, np.int64), np.array(blues, np.int64), p, q, out, 0)
    return [sorted(np.flatnonzero(out == i).tolist()) for i in range(n)]


def tree_twin(cells, is_blue, p, q):
    """Return the list of fairlets, found by recursion over dictionaries of lists."""
    fairlets = []

    def visit(reds, blues, level):
        if not reds and not blues:
            return
        if min(len(reds), len(blues)) == 1 or level == DEPTH:
            fairlets.extend(split_twin(reds, blues, p, q))
            return
        children = {}
        for colour, points in enumerate((reds, blues)):
            for i in points:
                key = tuple((int(c) >> (DEPTH - 1 - level)) & 1 for c in cells[i])
                children.setdefault(key, ([], []))[colour].append(i)
        children = [children[key] for key in sorted(children)]
        counts = np.array([[len(points) for points in child] for child in children])
        x_reds, x_blues = heavy_points(counts[:, 0], counts[:, 1], p, q)
        taken = [], []
        for (r, b), x, y in zip(children, x_reds, x_blues, strict=True):
            taken[0].extend(r[len(r) - x :])
            taken[1].extend(b[len(b) - y :])
        if taken[0]:
            fairlets.extend(split_twin(*taken, p, q))
        for (r, b), x, y in zip(children, x_reds, x_blues, strict=True):
            visit(r[: len(r) - x], b[: len(b) - y], level + 1)

    visit(np.flatnonzero(~is_blue).tolist(), np.flatnonzero(is_blue).tolist(), 0)
    return sorted(fairlets)


@st.composite
def instances(draw):
    """Draw a pair (p, q), groups that are balanced for it, and few enough cells that some points coincide."""
    p, q = draw(st.sampled_from(PAIRS))
    few = draw(st.integers(1, 60))
    many = draw(st.integers(few, few * q // p))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_blue = rng.permutation(np.arange(few + many) < (few if draw(st.booleans()) else many))
    spread = draw(st.sampled_from([1, 3, 50, 2**16]))
    places = rng.integers(0, 2**16, (spread, draw(st.sampled_from([1, 2, 3, 25, 70]))))
    return p, q, is_blue, places[rng.integers(spread, size=few + many)].astype(np.uint16)


@given(instances())
def test_fairlets_are_small_and_balanced_and_those_of_the_recursion(instance):
    p, q, is_blue, cells = instance
    fairlet = tree_fairlets(cells, is_blue, p, q)
    sizes, blues = np.bincount(fairlet), np.bincount(fairlet, is_blue).astype(int)
    assert 1 <= sizes.min() <= sizes.max() <= p + q
    assert (p * np.maximum(sizes - blues, blues) <= q * np.minimum(sizes - blues, blues)).all()
    # Of more than 62 features, the walk may put points of several cells together.
    if cells.shape[1] < 63:
        found = sorted(np.flatnonzero(fairlet == i).tolist() for i in range(len(sizes)))
        assert found == tree_twin(cells, is_blue, p, q)


@pytest.mark.parametrize(
    "n_reds, n_blues, sizes",
    [
        (4, 2, [(4, 2)]),
        (5, 5, [(1, 1)] * 5),
        (10, 4, [(5, 2), (5, 2)]),
        # Lemma 3: full fairlets while the rest stays balanced, then one fairlet for the excess, then pairs.
        (9, 5, [(5, 2), (3, 2), (1, 1)]),
        (4, 10, [(2, 5), (2, 5)]),
        (2, 1, [(2, 1)]),
    ],
)
def test_lists_are_split_as_in_the_lemma(n_reds, n_blues, sizes):
    reds, blues = list(range(n_reds)), list(range(n_reds, n_reds + n_blues))
    found = split_twin(reds, blues, 2, 5)
    assert [(sum(i < n_reds for i in f), sum(i >= n_reds for i in f)) for f in found] == sizes


def test_medoids():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    members = rng.permutation(60).reshape(15, 4)
    found = fairlet_medoids(X, members.ravel(), np.arange(4, 61, 4))
    for row, rows in zip(found, members, strict=True):
        assert row == rows[cdist(X[rows], X[rows]).sum(axis=1).argmin()]
