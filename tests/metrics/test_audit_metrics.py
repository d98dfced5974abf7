"""Metrics of the audit, computed by hand and compared with slow implementations."""

from itertools import combinations
from math import ceil, inf

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans

from fairclust import metrics as fm

# On a line, cluster 0 has the points 0, 2, 7 with mean 3, and cluster 1 has the points 10, 13 with mean 11.5.
X = [[0.0], [10.0], [2.0], [13.0], [7.0]]
LABELS = [0, 1, 0, 1, 0]
GROUPS = ["a", "a", "b", "b", "a"]


def drawn(seed, n=40, n_clusters=4, n_groups=3):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, 2)).round(1)
    labels = rng.permutation(np.arange(n) % n_clusters)
    return points, labels, rng.permutation(np.arange(n) % n_groups)


def test_who_pays_by_hand():
    # Group a: 9, 2.25, 16; group b: 1, 2.25.
    costs = fm.group_costs(X, LABELS, sensitive_features=GROUPS)
    assert_allclose(costs, [27.25 / 3, 3.25 / 2])
    assert fm.worst_group_cost(X, LABELS, sensitive_features=GROUPS) == pytest.approx(27.25 / 3)
    assert fm.group_cost_ratio(X, LABELS, sensitive_features=GROUPS) == pytest.approx(27.25 / 3 / 1.625)
    elsewhere = fm.group_costs(X, LABELS, sensitive_features=GROUPS, centers=[[2.0], [10.0]])
    assert_allclose(elsewhere, [(4 + 0 + 25) / 3, 4.5])
    # The costs if all points are in one cluster, whose mean is 6.4.
    all_in_one = [(6.4**2 + 3.6**2 + 0.6**2) / 3, (4.4**2 + 6.6**2) / 2]
    changes = fm.group_cost_changes(X, LABELS, [0] * 5, sensitive_features=GROUPS)
    assert_allclose(changes, costs / all_in_one - 1)


def test_groups_that_pay_nothing():
    points, labels = [[0.0], [0.0], [1.0], [3.0]], [0, 0, 1, 1]
    assert fm.group_cost_ratio(points, labels, sensitive_features=[0, 0, 1, 1]) == inf
    assert fm.group_cost_ratio(points, [0, 0, 1, 2], sensitive_features=[0, 0, 1, 1]) == 1.0
    changes = fm.group_cost_changes(points, labels, [0, 0, 1, 2], sensitive_features=[0, 0, 1, 1])
    assert_array_equal(changes, [0.0, inf])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_clusters", [4, 7])
def test_individual_fairness_against_sorted_distances(n_clusters, seed):
    """A ball has the share of the points that one of K clusters should have, also if fewer clusters are in use."""
    points, labels, _ = drawn(seed)
    ratios = []
    for p, x in enumerate(points):
        radius = sorted(np.linalg.norm(points - x, axis=1))[ceil(40 / n_clusters) - 1]
        ratios.append(np.linalg.norm(x - points[labels == labels[p]].mean(axis=0)) / radius)
    assert fm.individual_fairness(points, labels, n_clusters=n_clusters) == pytest.approx(max(ratios))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_clusters", [3, 5])
def test_proportionality_against_all_coalitions(n_clusters, seed):
    """Find the largest factor by which all points of a coalition gain, over all coalitions of the smallest size."""
    points, labels, _ = drawn(seed, n=9, n_clusters=3)
    points = points + np.arange(9)[:, None] * 1e-3  # no copies
    means = np.stack([points[labels == k].mean(axis=0) for k in range(3)])
    paid = np.linalg.norm(points - means[labels], axis=1)
    best = 0.0
    for y in points:
        for coalition in combinations(range(9), ceil(9 / n_clusters)):
            gains = [
                np.divide(paid[i], d) if (d := np.linalg.norm(points[i] - y)) else inf for i in coalition
            ]
            best = max(best, min(gains))
    assert fm.proportionality(points, labels, n_clusters=n_clusters) == pytest.approx(best)


def test_copies_without_a_centre():
    points, labels = np.repeat([[0.0], [1.0]], 4, axis=0), np.arange(8) % 2
    assert fm.proportionality(points, labels) == inf
    assert fm.individual_fairness(points, labels) == inf
    fair = np.arange(8) // 4
    assert fm.proportionality(points, fair) == fm.individual_fairness(points, fair) == 0.0


def test_samples_are_close_and_the_same_every_time():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(1500, 2)), rng.normal(loc=4, size=(500, 2))])
    labels = KMeans(3, n_init=1, random_state=0).fit_predict(points)
    for function, more in [(fm.individual_fairness, {}), (fm.proportionality, {"max_candidates": 200})]:
        exact = function(points, labels, **{**more, "max_rows": None})
        sampled = function(points, labels, **{**more, "max_rows": 800})
        assert sampled == function(points, labels, **{**more, "max_rows": 800})
        assert sampled != exact
        assert sampled == pytest.approx(exact, rel=0.1, abs=0.05)
    every = fm.proportionality(points, labels, max_candidates=None)
    assert fm.proportionality(points, labels, max_candidates=50) <= every


def test_absent_groups():
    assert fm.absent_groups(LABELS, sensitive_features=GROUPS) == 0
    assert fm.absent_groups([[3, 0, 0, 1], [0, 2, 0, 1], [0, 0, 0, 0]]) == 2
    with pytest.raises(ValueError, match="two dimensions"):
        fm.absent_groups(LABELS)


def test_the_card_of_a_clustering():
    points, labels, groups = drawn(0)
    frame = pd.DataFrame({"sex": np.array(["f", "m", "x"])[groups], "old": groups == 0})
    plain = KMeans(4, n_init=1, random_state=0).fit_predict(points)
    card = fm.audit(points, labels, sensitive_features=frame, plain_labels=plain)
    assert card.groups == ["f / True", "m / False", "x / False"]
    assert_allclose(card.costs, fm.group_costs(points, labels, sensitive_features=groups))
    assert_allclose(card.changes, fm.group_cost_changes(points, labels, plain, sensitive_features=groups))
    assert card.scores["individual_fairness"] == fm.individual_fairness(points, labels)
    assert card.plain["proportionality"] == fm.proportionality(points, plain)
    assert {name for name, metric in fm.METRICS.items() if metric.audit} < set(card.scores)
    for name, sign in (("balance", 1), ("worst_group_cost", -1)):
        better = sign * card.scores[name] > sign * card.plain[name]
        assert card.verdict(name) == ("fairer" if better else "less fair")
    text = str(card)
    assert f"f / True pays {card.costs[0]:,.4f}  {100 * card.changes[0]:+.1f} % against plain" in text
    assert len(text.splitlines()) == len(card.scores) + 3
    alone = fm.audit(points, labels, sensitive_features=groups, n_clusters=6)
    assert alone.scores["balance"] == 0.0
    assert alone.plain == {} and alone.verdict("balance") == ""
    assert "plain" not in str(alone)
    same = fm.audit(points, labels, sensitive_features=groups, plain_labels=labels)
    assert same.verdict("delta") == "the same" and same.verdict("smallest_cluster") == ""
