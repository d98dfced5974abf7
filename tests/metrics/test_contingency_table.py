"""The group-by-cluster table."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fairclust.metrics import cluster_sizes, contingency


def test_counts_by_hand():
    labels = [0, 0, 1, 1, 1, 0]
    groups = [0, 1, 0, 1, 1, 1]
    table = contingency(labels, groups)
    assert_array_equal(table, [[1, 1], [2, 2]])
    assert table.dtype == np.int64
    assert_array_equal(cluster_sizes(labels), [3, 3])


def test_given_numbers_add_empty_rows_and_columns():
    assert_array_equal(contingency([0, 2], [0, 0], 4, 2), [[1, 0, 1, 0], [0, 0, 0, 0]])
    assert_array_equal(cluster_sizes([0, 2], 4), [1, 0, 1, 0])


def test_narrow_codes_do_not_overflow():
    """The codes of 100 groups and 100 clusters fit into int8, but their product does not."""
    codes = np.arange(100, dtype=np.int8)
    assert_array_equal(contingency(codes, codes), np.eye(100))


def test_no_points():
    assert_array_equal(contingency([], [], 2, 3), np.zeros((3, 2)))
    assert contingency([], []).shape == (0, 0)


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
    ],
)
def test_malformed_input_raises(labels, groups, K, J, message):
    with pytest.raises(ValueError, match=message):
        contingency(labels, groups, K, J)
