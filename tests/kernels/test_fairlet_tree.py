import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fairclust.kernels.fairlets import tree_fairlets

PAIRS = [(1, 1), (1, 2), (1, 3), (2, 3), (2, 5), (4, 9), (9, 10)]


@given(st.integers(0, 2**32 - 1), st.sampled_from(PAIRS), st.integers(1, 20), st.integers(1, 3))
def test_fairlets_stay_in_places_that_are_balanced(seed, pair, n_places, n_features):
    """Points leave the cells of the tree only where one of the groups has too many of them."""
    rng = np.random.default_rng(seed)
    place, is_blue = [], []
    for i in range(n_places):
        counts = rng.integers(1, 4) * rng.permutation(pair)
        place += [i] * counts.sum()
        is_blue += [True] * counts[0] + [False] * counts[1]
    order = rng.permutation(len(place))
    place, is_blue = np.array(place)[order], np.array(is_blue)[order]
    cells = rng.choice(2**16, (n_places, n_features), replace=False).astype(np.uint16)[place]
    fairlet = tree_fairlets(cells, is_blue, *pair)
    assert len(np.unique(np.c_[fairlet, place], axis=0)) == fairlet.max() + 1
