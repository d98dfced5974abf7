"""The fair assignment program against enumeration and a plain formulation; the rounding against its bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import fairclust.methods.programs.fair_lp as fair_lp
from fairclust.methods.programs.fair_lp import bound_violation, fair_assignment_lp, round_assignment
from twins import cheapest_shares, share_rows


def bounds_around(inside, delta):
    shares = inside.mean(axis=0)
    return {"lower": shares * (1 - delta), "upper": shares / (1 - delta)}


@st.composite
def instances(draw, disjoint=True):
    n = draw(st.integers(1, 60))
    k = draw(st.integers(1, 5))
    groups = draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if disjoint:
        inside = rng.integers(groups, size=n)[:, None] == np.arange(groups)
    else:
        inside = rng.random((n, groups)) < rng.random(groups)
    cost = rng.random((n, k)) * draw(st.sampled_from([1e-6, 1.0, 1e6]))
    if draw(st.booleans()):
        cost = np.round(cost / cost.max(), 1)
    if draw(st.booleans()):
        cost += 2 * cost.max() * (inside @ rng.random((groups, k)))
    cost *= draw(st.sampled_from([1, 1, 0, -1]))
    return cost, inside, bounds_around(inside, draw(st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9])))


def check_against_plain(cost, inside, bounds):
    shares = fair_assignment_lp(cost, inside, **bounds)
    best = cheapest_shares(cost, share_rows(inside, **bounds), 0)
    x = shares.toarray()
    assert (x * cost).sum() == pytest.approx(best, rel=1e-6, abs=1e-9 * np.abs(cost).max())
    assert x.min() >= -1e-9
    np.testing.assert_allclose(x.sum(axis=1), 1, atol=1e-6)
    assert bound_violation(inside.T @ x, x.sum(axis=0), **bounds).max() < 1e-5
    return shares


def cost_of(cost, labels):
    return cost[np.arange(len(cost)), labels].sum()


def check_rounding(cost, inside, bounds, shares):
    labels = round_assignment(shares, cost, inside)
    paid, least = cost_of(cost, labels), (shares.toarray() * cost).sum()
    assert paid <= least + 1e-6 * np.abs(cost).sum()
    # Only points that were fractional can have become cheaper, by at most the spread of their costs.
    open_points = shares.max(axis=1).toarray().ravel() < 1 - 1e-6
    assert paid >= least - np.ptp(cost[open_points], axis=1).sum() - 1e-6 * np.abs(cost).sum()
    whole = np.eye(cost.shape[1])[labels]
    return labels, bound_violation(inside.T @ whole, whole.sum(axis=0), **bounds)


@settings(max_examples=60)
@given(instances())
def test_disjoint_groups(instance):
    cost, inside, bounds = instance
    shares = check_against_plain(*instance)
    labels, violation = check_rounding(*instance, shares)
    assert violation.max() < 2
    apart = np.eye(cost.shape[1])[labels] - shares.toarray()
    assert np.abs(inside.T @ apart).max() < 1 + 1e-5
    assert np.abs(apart.sum(axis=0)).max() < 1 + 1e-5
    codes = inside.argmax(axis=1)
    least = (shares.toarray() * cost).sum()
    assert (fair_assignment_lp(cost, codes, **bounds).toarray() * cost).sum() == pytest.approx(least)


@settings(max_examples=60)
@given(instances(disjoint=False))
def test_overlapping_groups(instance):
    _, inside, _ = instance
    _, violation = check_rounding(*instance, check_against_plain(*instance))
    assert violation.max() <= 4 * inside.sum(axis=1).max() + 3


@settings(max_examples=40)
@given(instances(), st.integers(1, 20))
def test_prices_from_a_sample_change_nothing(instance, seed):
    cost, inside, bounds = instance
    whole = (fair_assignment_lp(cost, inside, **bounds).toarray() * cost).sum()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fair_lp, "_DIRECT", 4 * cost.shape[1])
        order = np.random.default_rng(seed).permutation(len(cost))
        by_steps = fair_assignment_lp(cost[order], inside[order], **bounds)
    by_steps = (by_steps.toarray() * cost[order]).sum()
    assert by_steps == pytest.approx(whole, rel=1e-7, abs=1e-9 * np.abs(cost).max())


def test_rows_of_bounds_that_no_rounding_keeps_are_dropped():
    # Every two of the three points are a group. A count of 1 for every group in every cluster needs half of each point,
    # which no labels give.
    inside = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], dtype=bool)
    shares = sparse.csr_array(np.full((3, 2), 0.5))
    cost = np.array([[0.0, 1], [0, 3], [0, 1]])
    labels = round_assignment(shares, cost, inside)
    np.testing.assert_array_equal(labels, [0, 0, 0])


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_rounding_by_hand(unit):
    # Half of every point is in each cluster: 2.5 points of the first group and 1.5 of the second. Cluster 0 is cheaper
    # for all points, most of all for points 3, 1, 4 of the first group and 7 of the second.
    gain = np.array([1.0, 5, 2, 9, 4, 1, 2, 3])
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    cost = unit * np.column_stack([np.zeros(8), gain])
    shares = sparse.csr_array(np.full((8, 2), 0.5))
    labels = round_assignment(shares, cost, codes)
    np.testing.assert_array_equal(np.flatnonzero(labels == 0), [1, 3, 4, 7])
    assert cost_of(cost, labels) == pytest.approx(unit * 6)
