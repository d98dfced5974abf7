import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairclust.metrics import contingency

CODES = np.arange(100, dtype=np.int8)


@pytest.mark.parametrize(
    ("labels", "groups", "K", "J", "expected"),
    [
        ([0, 0, 1, 1, 1, 0], [0, 1, 0, 1, 1, 1], None, None, [[1, 1], [2, 2]]),
        # Clusters and groups without points have columns and rows of zeros, if the numbers of both are given.
        ([0, 2], [0, 0], 4, 2, [[1, 0, 1, 0], [0, 0, 0, 0]]),
        # The codes of 100 groups and 100 clusters fit into int8, but their product does not.
        (CODES, CODES, None, None, np.eye(100)),
        # NumPy makes floats of sums of uint64 and other integers.
        (np.array([1, 1], np.uint64), np.array([0, 1], np.uint64), None, None, [[0, 1], [0, 1]]),
        ([], [], 2, 3, np.zeros((3, 2))),
        ([], [], None, None, np.zeros((0, 0))),
    ],
)
def test_counts_by_hand(labels, groups, K, J, expected):
    table = contingency(labels, groups, K, J)
    assert table.shape == np.shape(expected) and table.dtype == np.int64
    assert_array_equal(table, expected)


@pytest.mark.parametrize(
    ("labels", "groups", "K", "J", "message"),
    [
        ([0, 1], [0], None, None, "same shape"),
        ([0, 2], [0, 0], 2, 1, "labels must lie in 0 .. 1"),
        ([0, -1], [0, 0], 2, 1, "labels must lie in 0 .. 1"),
        ([0, 1], [0, 1], 2, 1, "groups must lie in 0 .. 0"),
        ([0.0, 1.0], [0, 1], 2, 2, "labels must be integers"),
        ([0, 1], ["a", "b"], 2, 2, "groups must be integers"),
        ([[0, 1]], [[0, 1]], 2, 2, "one dimension"),
        (np.ma.array([0, 1], mask=[0, 1]), [0, 1], 2, 2, "labels has masked entries"),
    ],
)
def test_malformed_input_raises(labels, groups, K, J, message):
    with pytest.raises(ValueError, match=message):
        contingency(labels, groups, K, J)
