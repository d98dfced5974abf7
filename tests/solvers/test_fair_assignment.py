from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import check, from_blobs
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from fairclust import fair_assignment
from fairclust.metrics import contingency
from toys import make_grouped_blobs
from twins import cheapest_shares

ASKED = [
    {},
    {"tolerance": 0.02},
    {"tolerance": 0.3},
    {"min_balance": 0.5},
    {"max_gap": 0.0},
    {"max_gap": 0.05},
]


def feasible(asked, codes):
    sizes = np.bincount(codes)
    if "min_balance" in asked:
        return {"min_balance": asked["min_balance"] * sizes.min() / sizes.max()}
    return asked


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("n_samples, n_groups, n_clusters", [(1200, 2, 5), (300, 3, 12), (300, 5, 4)])
def test_optimal(asked, n_samples, n_groups, n_clusters):
    problem = from_blobs(n_samples, n_groups, n_clusters, seed=n_samples)
    found, _, best = check(problem.a, problem.codes, **feasible(asked, problem.codes))
    assert found.slack < 1
    assert found.lower_bound == pytest.approx(best, rel=1e-5)


@given(
    st.integers(0, 2**20),
    st.integers(1, 40),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from(["random", "few values", "equal", "duplicates", "one point"]),
    st.sampled_from(ASKED),
)
@settings(max_examples=60)
def test_odd_inputs(seed, n_samples, n_clusters, n_groups, kind, asked):
    rng = np.random.default_rng(seed)
    n_groups = min(n_groups, n_samples)
    codes = np.r_[np.arange(n_groups), rng.integers(n_groups, size=n_samples - n_groups)]
    a = rng.random((n_samples, n_clusters))
    if kind == "few values":
        a = rng.integers(3, size=a.shape).astype(float)
    elif kind == "equal":
        a = np.ones(a.shape)
    elif kind == "duplicates":
        a = a[rng.integers(3, size=n_samples) % n_samples]
        a[:, -1] = a[:, 0]
    elif kind == "one point":
        codes = (np.arange(n_samples) == 0).astype(int) if n_samples > 1 else codes
    found, *_ = check(a, codes, **feasible(asked, codes))
    if not asked:
        assert found.slack < 1
    if n_clusters == 1:
        np.testing.assert_array_equal(found.labels, 0)
        assert found.slack == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("seed", range(6))
def test_small_groups_far_away(seed, asked):
    """The prices are a thousand times the differences between the distances of the other points."""
    rng = np.random.default_rng(seed)
    n_samples, n_clusters, n_far = 370, 4 + seed % 3, 1 + seed % 2
    codes = np.arange(n_samples) % (1 + seed % 3)
    codes[-n_far:] = codes.max() + 1
    a = ((rng.normal(size=(n_samples, 2))[:, None] - rng.normal(size=(n_clusters, 2))) ** 2).sum(axis=2)
    a[-n_far:] *= 10.0 ** (2 + seed % 5)
    check(a, codes, **feasible(asked, codes))


def test_target_shares():
    problem = from_blobs(2000, 2, 3)
    names = np.array(["x", "y"])[problem.codes]
    target = {"x": 0.5, "y": 0.5}
    least = 1 - np.minimum(problem.shares / 0.5, 0.5 / problem.shares).min()
    found = fair_assignment(problem.a, names, target=target, tolerance=least + 0.1)
    table = contingency(found.labels, problem.codes)
    ratios = table / table.sum(axis=0) / 0.5
    assert np.minimum(ratios, 1 / ratios).min() >= 0.9 - least - 1e-9
    np.testing.assert_array_equal(found.groups, ["x", "y"])
    with pytest.raises(ValueError, match=r"tolerance=0.0 cannot be met: group . has the share"):
        fair_assignment(problem.a, names, target=target)


def test_mapped_distances_in_single_precision(tmp_path):
    problem = from_blobs(3000, 2, 5)
    np.save(tmp_path / "a.npy", problem.a.astype(np.float32))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="r")
    double = fair_assignment(problem.a, problem.codes, tolerance=0.05)
    single = fair_assignment(mapped, problem.codes, tolerance=0.05)
    assert single.lower_bound == pytest.approx(double.lower_bound, rel=1e-5)
    assert single.cost == pytest.approx(mapped.astype(float)[np.arange(3000), single.labels].sum(), rel=1e-12)
    assert 0 <= single.gap < 1e-3


def test_negative_costs():
    problem = from_blobs(500, 2, 4)
    shifted = fair_assignment(problem.a - 10, problem.codes, tolerance=0.1)
    plain = fair_assignment(problem.a, problem.codes, tolerance=0.1)
    assert shifted.lower_bound == pytest.approx(plain.lower_bound - 5000)
    assert shifted.gap >= 0
    assert fair_assignment(problem.a - 10, problem.codes, max_cost_increase=0.1).cost < 0


@pytest.mark.parametrize(
    "distances, groups, asked, message",
    [
        (np.ones(4), np.arange(4), {}, "non-empty matrix"),
        (np.ones((0, 2)), np.arange(0), {}, "non-empty matrix"),
        (np.full((4, 2), np.nan), np.arange(4), {}, "not finite"),
        (np.array([[0.0, np.inf]] * 4), np.arange(4), {}, "not finite"),
        (np.ma.array([[1.0, 2.0]], mask=[[1, 0]]), ["a"], {}, "not finite"),
        (np.ones((4, 2)), np.arange(3), {}, "has 3 rows, X has 4"),
    ],
)
def test_bad_input(distances, groups, asked, message):
    with pytest.raises(ValueError, match=message):
        fair_assignment(distances, groups, **asked)


@pytest.mark.parametrize("seed", [0, 2])
def test_many_points_are_within_their_bounds(seed):
    X, groups = make_grouped_blobs(300_000, n_clusters=8, seed=seed)
    found = fair_assignment(cdist(X, X[:8], "sqeuclidean"), groups, tolerance=0.1)
    assert found.slack <= 1e-6
    assert 0 <= found.gap < 1e-5


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_gap", [0, 0.05])
def test_the_gap_is_to_assignments_with_no_larger_delta(seed, max_gap):
    rng = np.random.default_rng(seed)
    n_samples, n_groups, n_clusters = 157, 3 + seed % 3, 3
    codes = rng.permutation(np.arange(n_samples) % n_groups)
    a = rng.random((n_samples, n_clusters)) + 0.5 * (codes[:, None] % 3 == np.arange(n_clusters))
    bounds = {"size_min": [30, 30, 30], "size_max": [90, 60, 60]} if seed % 2 else {}
    found = fair_assignment(a, codes, max_gap=max_gap, **bounds)
    n_of = np.bincount(codes)
    shares = contingency(found.labels, codes, n_clusters) / n_of[:, None]
    pairs = list(combinations(range(n_groups), 2))
    gaps = np.maximum(np.mean([np.abs(shares[i] - shares[j]) for i, j in pairs], axis=0), max_gap)
    # Auxiliary variables are at least the differences of all pairs, and the mean of these variables is bounded.
    part = (codes == np.arange(n_groups)[:, None]) / n_of[:, None]
    differences, every = np.array([part[i] - part[j] for i, j in pairs]), np.ones((1, n_samples))
    each, none = np.eye(len(pairs)), np.zeros((2, len(pairs)))
    most, least = bounds.get("size_max", [n_samples] * 3), bounds.get("size_min", [0] * 3)
    best = cheapest_shares(
        a,
        np.vstack([differences, -differences, 0 * every, every, -every]),
        np.vstack([np.zeros((2 * len(pairs), n_clusters)), gaps + 1e-12, most, -np.array(least)]),
        helpers=np.vstack([-each, -each, np.full((1, len(pairs)), 1 / len(pairs)), none]),
        method="highs",
    )
    assert np.isfinite(best)
    assert found.cost <= best * (1 + found.gap) * (1 + 1e-9)


def test_many_crossed_groups_end_within_the_limit_of_work():
    rng = np.random.default_rng(0)
    a = rng.random((127, 8))
    columns = {name: rng.integers(3, size=127).astype(str) for name in "abc"}
    with pytest.warns(ConvergenceWarning, match="limit of work.*Bound fewer groups"):
        found = fair_assignment(a, columns, crossed=True, max_gap=0.05)
    # Whole points cannot be within bounds of a quarter of a point, and labels outside of them may cost less.
    assert found.slack <= 2


def test_one_cluster_with_weights():
    found = fair_assignment(np.ones((4, 1)), list("abab"), sample_weight=[1.0, 2.0, 3.0, 1.5])
    assert found.labels.tolist() == [0] * 4 and found.cost == 7.5 and found.slack == 0


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_rows_of_weight_zero_do_not_count_and_get_the_label_of_their_prices(columns):
    rng = np.random.default_rng(0)
    a = rng.uniform(size=(60, 3))
    weights = np.where(np.arange(60) % 5 == 0, 0.0, 1.0 + np.arange(60) % 3)
    named = {"sex": np.arange(60) % 2, "town": np.arange(60) // 2 % 3}
    groups = [None, named["sex"], named][columns]
    there = weights > 0
    alone_groups = {name: of[there] for name, of in named.items()} if columns == 2 else groups
    if columns == 1:
        alone_groups = groups[there]
    bounds = {"tolerance": 0.2} if columns else {"size_max": 40}
    found = fair_assignment(a, groups, sample_weight=weights, **bounds)
    alone = fair_assignment(a[there], alone_groups, sample_weight=weights[there], **bounds)
    np.testing.assert_array_equal(found.labels[there], alone.labels)
    assert found.cost == alone.cost and found.lower_bound == alone.lower_bound
    codes = [np.zeros(60, int), named["sex"], named["sex"] * 3 + named["town"]][columns]
    np.testing.assert_array_equal(found.labels[~there], (a + found.prices[codes])[~there].argmin(axis=1))


@pytest.mark.parametrize(
    "weights, groups, message",
    [
        ([0, 0, 0, 0], "abab", "finite and not negative"),
        ([0, 1, -1, 1], "abab", "finite and not negative"),
        (np.ma.array([0, 1, 1, 9], mask=[0, 0, 0, 1]), "abab", "finite and not negative"),
        ([1e308] * 4, "abab", "finite and not negative"),
        ([0, 1, 1], "abab", "has shape"),
        ([0, 1, 1, 1], "ababa", "has 5 rows, expected 4"),
        ([0, 1, 1, 1], "cbab", "not seen in fit: .c."),
    ],
)
def test_weights_that_cannot_count(weights, groups, message):
    with pytest.raises(ValueError, match=message):
        fair_assignment(np.ones((4, 2)), list(groups), tolerance=0.9, sample_weight=weights)
