import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairclust.fronts import front_of, pareto, window

numbers = st.floats(0, 10, allow_nan=False).map(lambda value: round(value, 1))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12), st.booleans())
def test_front_against_its_definition(found, higher):
    cost, fair = np.array(found).T
    gain = fair if higher else -fair
    slow = [
        not any(
            cost[j] <= cost[i] and gain[j] >= gain[i] and (cost[j] < cost[i] or gain[j] > gain[i])
            for j in range(len(cost))
        )
        for i in range(len(cost))
    ]
    assert pareto(cost, fair, higher).tolist() == slow


def test_values_that_are_not_finite_are_never_on_the_front():
    on = pareto(np.array([1, 2, np.nan, 3]), np.array([np.inf, 0.5, 0.1, np.nan]), higher=False)
    assert on.tolist() == [False, True, False, False]


POINTS = pd.DataFrame(
    [
        ("plain", 100.0, 0.0),
        ("fair", 110.0, 0.5),
        ("fair", 120.0, 0.4),
        ("dear", 115.0, 0.45),
        ("dear", 150.0, 0.9),
        ("far", 900.0, np.nan),
    ],
    columns=["method", "sse", "balance"],
)


def test_a_front_says_what_no_other_point_beats():
    found = front_of(POINTS, "sse", "balance", higher=True)
    assert found.best.tolist() == [True, True, False, False, True, False]
    # A point that another method beats can still be on the front of its own method.
    assert found.own.tolist() == [True, True, False, True, True, False]
    assert found.finite.tolist() == [True] * 5 + [False]
    assert found.several.tolist() == [False, True, True, True, True, False]
    assert found[["x", "y"]].equals(POINTS[["sse", "balance"]].set_axis(["x", "y"], axis=1))


@pytest.mark.parametrize(
    "rows, y, bounded, expected",
    [
        # On the front of methods with several points, the costs are 100 to 150. The window ends at 100 + 1.6 * 50, and
        # has a margin.
        (6, "balance", True, (96, 184, -0.054, 0.954)),
        # An error without a bound is shown up to 1.15 times that of the front: 9, or 0.5 without the first point.
        (6, "error", False, (96, 184, -0.434, 9.534)),
        (5, "error", False, (106.8, 177.2, 0.0715, 0.6035)),
        (5, "error", True, (106.8, 177.2, 0.07, 0.63)),
        # A single point has a margin, too.
        (1, "error", False, (855, 945, 0, 0.1)),
    ],
)
def test_the_window_shows_the_front_of_methods_with_several_points(rows, y, bounded, expected):
    shown = POINTS.fillna({"balance": 0.95}).assign(error=[9.0, 0.5, 0.6, 0.4, 0.1, 0.05])
    front = front_of(shown[-rows:], "sse", y, higher=y == "balance")
    assert window(front, bounded=bounded) == pytest.approx(expected)
