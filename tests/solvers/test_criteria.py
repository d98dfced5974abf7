import numpy as np
import pytest

from fairclust.methods.price.criteria import (
    make_criterion,
)


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"min_balance": 0.51}, "min_balance=0.51 cannot be met: .* the data's own balance, 0.5$"),
        ({"min_balance": -0.1}, "between 0 and the data's own balance"),
        ({"max_gap": -0.1}, "max_gap must be at least 0"),
        ({"max_gap": float("nan")}, "max_gap must be at least 0"),
        ({"tolerance": 1.0}, "tolerance must be at least 0 and below 1"),
        ({"tolerance": float("nan")}, "tolerance must be at least 0 and below 1"),
        ({"min_balance": 0.1, "max_gap": 0.1}, "not both"),
        ({"min_balance": 0.1, "tolerance": 0.1}, "give them or min_balance, not both"),
        ({"max_gap": 0.1, "target": np.array([0.5, 0.5])}, "give them or max_gap, not both"),
        (
            {"target": np.array([0.5, 0.5]), "tolerance": 0.2},
            "group a has the share 0.333333 .* 0.5; the smallest tolerance for this target is 0.333333",
        ),
    ],
)
def test_bounds_that_cannot_be_met(asked, message):
    with pytest.raises(ValueError, match=message):
        make_criterion(np.array(["a", "b"]), np.array([10, 20]), **asked)


def test_bounds_that_can_just_be_met():
    names, sizes = np.array(["a", "b"]), np.array([10, 30])
    make_criterion(names, sizes, min_balance=1 / 3)
    make_criterion(names, sizes, target=np.array([0.5, 0.5]), tolerance=0.5)
    make_criterion(names, sizes, max_gap=0)
    assert make_criterion(names, sizes).equal
