"""Several columns, sizes, weights and budgets in `fair_assignment`."""

import numpy as np
import pandas as pd
import pytest
from problems import check, from_blobs

from fairclust import fair_assignment
from fairclust.metrics import contingency, delta, mean_deviation


def people(n_samples=600, n_clusters=5, seed=0):
    """Distances, and two sensitive columns whose values depend on the nearest centre."""
    problem = from_blobs(n_samples, 3, n_clusters, seed=seed)
    rng = np.random.default_rng(seed)
    sex = np.where(rng.random(n_samples) < 0.3 + 0.4 * (problem.a.argmin(axis=1) % 2), "f", "m")
    return problem.a, pd.DataFrame({"race": np.array(["x", "y", "z"])[problem.codes], "sex": sex})


@pytest.mark.parametrize(
    "asked",
    [
        {"max_gap": {"race": 0.02}, "tolerance": {"sex": 0.1}},
        {"min_balance": {"sex": 0.4, "race": 0.2}},
        {"tolerance": 0.1, "size_min": [60, 0, 200, 0, 100]},
    ],
    ids=str,
)
def test_bounds_that_random_problems_do_not_mix_against_highs(asked):
    found, *_ = check(*people(), **asked)
    assert found.slack < 1
    assert found.gap < 0.03


def test_bounding_one_of_several_columns_equals_one_column():
    a, columns = people()
    one = fair_assignment(a, columns["race"], tolerance=0.1)
    other = fair_assignment(a, columns, tolerance={"race": 0.1})
    assert other.lower_bound == pytest.approx(one.lower_bound, rel=1e-6)
    crossed = fair_assignment(a, columns, tolerance=0.1, crossed=True)
    joined = fair_assignment(a, columns["race"] + columns["sex"], tolerance=0.1)
    np.testing.assert_array_equal(crossed.labels, joined.labels)
    each = fair_assignment(a, columns, tolerance=0.1)
    assert one.lower_bound <= each.lower_bound * (1 + 1e-9) <= crossed.lower_bound * (1 + 2e-9)


def test_budget():
    a, columns = people()
    nearest = a.min(axis=1).sum()
    strict = fair_assignment(a, columns)
    found = fair_assignment(a, columns, max_cost_increase=0.05)
    assert 0 < found.tolerance_bound < found.tolerance < found.tolerance_bound + 0.02
    again = fair_assignment(a, columns, max_cost=1.05 * nearest)
    np.testing.assert_array_equal(found.labels, again.labels)
    enough = fair_assignment(a, columns, max_cost=2 * strict.cost)
    assert enough.tolerance == 0


@pytest.mark.parametrize("entries", [0, 1 << 23])
def test_a_budget_may_equal_the_cost_without_bounds(monkeypatch, entries):
    """The sums of both costs differ by rounding errors. With no entries in double precision they are larger."""
    monkeypatch.setattr("fairclust.methods.price.fair_assignment._DOUBLE_ENTRIES", entries)
    for seed in range(20):
        a = np.random.default_rng(seed).random((1000, 4))
        found = fair_assignment(a, a[:, 0] > 0.5, max_cost_increase=0.0)
        assert found.cost == pytest.approx(a.min(axis=1).sum(), rel=1e-6)


@pytest.mark.parametrize(
    "asked, message",
    [
        ({"size_min": 121}, r"would have 605 of 600 rows. The largest size_min for all of them is 120"),
        ({"size_max": 0.9}, r"would have 540 of 600 rows. The smallest size_max for all of them is 120"),
        ({"size_min": 100, "size_max": [90, 200, 200, 200, 200]}, "cluster 0 cannot have at least 100"),
        ({"size_min": [1, 2]}, "size_min has 2 entries, there are 5 clusters"),
        ({"size_max": -1}, "must not be negative"),
        ({"tolerance": {"age": 0.1}}, r"tolerance names \['age'\], but .* are \['race', 'sex'\]"),
        ({"mean_tolerance": {"size": 0.1}}, r"mean_tolerance names \['size'\]"),
        ({"mean_tolerance": 0.1}, "mean_tolerance must map columns to numbers, found 0.1"),
        ({"tolerance": {"sex": "a"}}, "tolerance must be a number, found 'a'"),
        ({"max_cost": float("nan")}, "a cost of nan cannot be met"),
        ({"max_cost": 0.0}, "without any bounds it is"),
        ({"max_cost": 1e9, "max_cost_increase": 1.0}, "give max_cost or max_cost_increase, not both"),
        ({"max_cost": 1e9, "tolerance": 0.1}, "finds the tolerance"),
        ({"max_cost_increase": 0.0, "size_max": 1.0}, "without bounds on the shares it is"),
        ({"tolerance": {"sex": 0.1}, "crossed": True}, "there are no columns to name"),
        ({"min_balance": -0.1}, "race: .*between 0 and the data's own balance"),
        ({"max_gap": float("nan")}, "max_gap must be a finite number of at least 0"),
        ({"max_gap": {"sex": np.inf}}, "sex: max_gap must be a finite number of at least 0"),
        ({"mean_tolerance": {"age": np.inf}}, "age: mean_tolerance must be a finite number of at least 0"),
        (
            {"mean_tolerance": {"age": 1}, "tolerance": {"age": 0}},
            r"tolerance names \['age'\], but .* groups",
        ),
        ({"mean_tolerance": {"age": 0.5}, "target": {"age": [1]}}, r"columns out of \['race', 'sex'\]"),
        ({"size_min": 700, "sample_weight": np.full(600, 2.0)}, "would have 3500 of 1200 units of weight"),
        ({"tolerance": 1.0}, "tolerance must be at least 0 and below 1"),
        ({"tolerance": float("nan")}, "tolerance must be at least 0 and below 1"),
        ({"min_balance": 0.1, "max_gap": 0.1}, "not both"),
        ({"min_balance": 0.1, "tolerance": 0.1}, "give them or min_balance, not both"),
        ({"max_gap": 0.1, "target": {"sex": [0.5, 0.5]}}, "give them or max_gap, not both"),
        ({"min_balance": {"race": 0.99}}, "race: min_balance=0.99 cannot be met: .* the data's own balance"),
        ({"target": {"sex": [0.1, 0.9]}}, "sex: tolerance=0.0 cannot be met: .* smallest tolerance for this"),
        ({"target": [0.5, 0.5]}, "target must be a mapping of sensitive columns to shares"),
    ],
)
def test_impossible_bounds_are_refused(asked, message):
    a, columns = people()
    columns = columns.assign(age=np.arange(600)) if "age" in str(asked.get("mean_tolerance")) else columns
    with pytest.raises(ValueError, match=message):
        fair_assignment(a, columns, **asked)


def test_a_column_of_equal_numbers_is_not_bounded():
    # The computed standard deviation of these numbers is above 0.
    a, ages = np.random.default_rng(0).random((90, 3)), np.full(90, 0.1)
    found = fair_assignment(a, {"age": ages}, mean_tolerance={"age": 0.1}, sample_weight=a[:, 0])
    assert found.slack == 0 and found.labels.tolist() == a.argmin(axis=1).tolist()
    assert mean_deviation(found.labels, sensitive_features=ages) == 0


def test_many_groups_are_fast_enough_to_test():
    """Fifty groups would take minutes if the solver did not use the structure of the bounds."""
    problem = from_blobs(1000, 2, 6)
    groups = np.random.default_rng(0).permutation(1000) % 50
    found = fair_assignment(problem.a, groups, tolerance=0.4)
    table = contingency(found.labels, groups, 6)
    # Twenty rows of a group have between 0.6 and 1.67 of 1/50 of each cluster, up to less than a row.
    expected = table.sum(axis=0) / 50
    excess = np.maximum(0.6 * expected - table, table - expected / 0.6).max()
    assert excess == pytest.approx(found.slack, abs=1e-9) and excess < 1


def test_gaps_of_many_groups_are_fast_enough_to_test():
    """Forty groups have 780 helpers in each cluster, so the solver must not have a linear system for all of them."""
    problem = from_blobs(400, 40, 6, seed=1)
    found = fair_assignment(problem.a, problem.codes, max_gap=0.05)
    assert found.slack < 1
    assert delta(contingency(found.labels, problem.codes, 6)) <= 0.05 + 1 / np.bincount(problem.codes).min()
