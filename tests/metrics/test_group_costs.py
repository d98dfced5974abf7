"""What each group pays, computed by hand."""

import pytest
from numpy.testing import assert_allclose

from fairclust.metrics import group_costs

# On a line, cluster 0 has the points 0, 2, 7 with mean 3, and cluster 1 has the points 10, 13 with mean 11.5.
X = [[0.0], [10.0], [2.0], [13.0], [7.0]]
LABELS = [0, 1, 0, 1, 0]
GROUPS = ["a", "a", "b", "b", "a"]


def test_who_pays_by_hand():
    # Group a: 9, 2.25, 16; group b: 1, 2.25.
    assert_allclose(group_costs(X, LABELS, sensitive_features=GROUPS), [27.25 / 3, 3.25 / 2])
    elsewhere = group_costs(X, LABELS, sensitive_features=GROUPS, centers=[[2.0], [10.0]])
    assert_allclose(elsewhere, [(4 + 0 + 25) / 3, 4.5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sensitive_features": ["a", "b"]}, "one length"),
        ({"sensitive_features": ["a", "a", "b", "b", None]}, "missing"),
        ({"centers": [[1.0]]}, "labels go to 1"),
        ({"X": [[float("nan")]] * 5}, "finite"),
    ],
)
def test_malformed_input_raises(change, message):
    with pytest.raises(ValueError, match=message):
        group_costs(**{"X": X, "labels": LABELS, "sensitive_features": GROUPS} | change)
