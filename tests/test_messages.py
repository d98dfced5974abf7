"""Suggestions for names that do not exist."""

import pytest

from fairclust.messages import nearest

KNOWN = ["price_kmeans", "price_gap", "vfc_kmeans"]


@pytest.mark.parametrize(
    ("name", "known", "expected"),
    [
        ("price", KNOWN, "did you mean 'price_kmeans'?"),
        ("prize_gap", KNOWN, "did you mean 'price_gap'?"),
        ("other", KNOWN, "there are: 'price_kmeans', 'price_gap', 'vfc_kmeans'"),
        ("", KNOWN[:1], "there are: 'price_kmeans'"),
        ("other", map(str, range(21)), f"there are: {', '.join(map(repr, map(str, range(20))))}, ..."),
        ("price", [], "there are none"),
    ],
)
def test_the_nearest_name_is_suggested(name, known, expected):
    assert nearest(name, known) == expected
