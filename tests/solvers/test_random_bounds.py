"""Random problems that mix all kinds of bounds: costs against HiGHS, and each bound checked again from the labels."""

from collections.abc import Mapping

import numpy as np
import pytest
from problems import criterion_of, from_blobs, optimum

from fairclust import fair_assignment
from fairclust.group_encoding import read_sensitive

# Problem 10, with a budget, takes seconds.
QUICK = sorted({*range(20)} - {10})
SLOW = [10, *range(20, 220)]


def draw(seed, most=200):
    """Draw distances, sensitive columns, the parameters to ask for, and weights; every fifth problem has a budget."""
    rng = np.random.default_rng(seed)
    n_samples, n_clusters = int(rng.integers(most // 4, most)), int(rng.integers(2, 6 if most > 100 else 4))
    problem = from_blobs(n_samples, 3, n_clusters, seed=seed)
    nearest = problem.a.argmin(axis=1)
    kind = rng.choice(["columns", "memberships", "none"], p=[0.75, 0.15, 0.1])
    columns, asked = None, {}
    if kind == "memberships":
        n_groups = int(rng.integers(2, 4))
        columns = {f"of {i}": rng.random(n_samples) < 0.3 + 0.2 * (nearest % 2) for i in range(n_groups)}
    elif kind == "columns":
        columns = {"race": np.array(["x", "y", "z"])[problem.codes]}
        if rng.random() < 0.8:
            columns["sex"] = np.where(rng.random(n_samples) < 0.3 + 0.4 * (nearest % 2), "f", "m")
        if rng.random() < 0.3:
            columns["third"] = rng.integers(3, size=n_samples).astype(str)
    weights = rng.uniform(0.5, 4, n_samples) if rng.random() < 0.25 else None
    if columns and seed % 5 == 0:
        asked["max_cost_increase"] = float(rng.choice([0.02, 0.1, 0.4]))
    elif columns:
        tolerances = [0.0, 0.05, 0.2, 0.5]
        if kind == "columns" and len(columns) > 1 and rng.random() < 0.3:
            asked |= {"crossed": True, "tolerance": float(rng.choice(tolerances))}
        elif rng.random() < 0.4:
            asked["tolerance"] = float(rng.choice(tolerances))
        else:
            named = rng.permutation(list(columns))[: rng.integers(1, len(columns) + 1)]
            asked["tolerance"] = {str(name): float(rng.choice(tolerances)) for name in named}
            if kind == "columns" and rng.random() < 0.4:
                asked["tolerance"].pop("race", None)
                sizes = np.bincount(problem.codes, weights)
                asked["min_balance"] = {"race": float(rng.uniform(0, 0.4) * (sizes.min() / sizes.max()))}
    if columns is None or (rng.random() < 0.4 and "max_cost_increase" not in asked):
        asked["size_min"] = float(rng.uniform(0.4, 1.0))
        if rng.random() < 0.7:
            asked["size_max"] = float(rng.uniform(1.0, 1.6))
    return problem.a, columns, asked, weights


def promises(columns, asked, tolerance):
    """Yield for each bounded column the group of each row, the tolerance or None, and the least balance or None."""
    if asked.get("crossed"):
        joined = ["|".join(row) for row in zip(*columns.values(), strict=True)]
        yield np.array(joined), tolerance, None
        return
    for name, cells in (columns or {}).items():
        own = tolerance.get(name) if isinstance(tolerance, Mapping) else tolerance
        balance = asked.get("min_balance", {}).get(name)
        yield np.asarray(cells), None if balance is not None else own, balance


def most_broken(labels, columns, asked, tolerance, weights, n_clusters):
    """Compute from the labels the largest number of points, or weight, by which they miss a bound."""
    sizes = np.bincount(labels, weights, n_clusters)
    total, off = weights.sum(), [0.0]
    for cells, own, balance in promises(columns, asked, tolerance):
        values = np.unique(cells)
        table = np.array([np.bincount(labels, weights * (cells == value), n_clusters) for value in values])
        if balance is not None:
            off.append((balance * table.max(axis=0) - table).max())
        elif own is not None and own < 1:
            mu = table.sum(axis=1, keepdims=True) / total
            off += [((1 - own) * mu * sizes - table).max(), (table - mu / (1 - own) * sizes).max()]
    mean, whole = total / n_clusters, (weights == 1).all()
    least, most = asked.get("size_min", 0.0) * mean, asked.get("size_max", np.inf) * mean
    if whole:
        # Bounds on sizes that are multiples of n / K may have to be rounded outwards to whole rows.
        least, most = np.floor(least), np.ceil(most)
    return max(*off, (least - sizes).max(), (sizes - most).max())


def check(seed, most=200):
    a, columns, asked, weights = draw(seed, most)
    n_samples, n_clusters = a.shape
    found = fair_assignment(a, columns, sample_weight=weights, **asked)
    each = np.ones(n_samples) if weights is None else weights
    mean = each.mean()
    sensitive = read_sensitive(columns, n_samples)
    sizes = np.bincount(sensitive.codes, each / mean)

    def best_at(tolerance):
        bounds = {**asked, "tolerance": None if tolerance == 1 else tolerance}
        bounds.pop("max_cost_increase", None)
        criterion = criterion_of(n_clusters, sensitive, sizes, None if weights is None else mean, **bounds)
        return optimum(a, sensitive.codes, criterion, each / mean) * mean

    tolerance = asked.get("tolerance", 0.0)
    if "max_cost_increase" in asked:
        budget = float(each @ a.min(axis=1)) * (1 + asked["max_cost_increase"])
        assert found.cost <= budget * (1 + 1e-9)
        tolerance = found.tolerance
        assert found.tolerance_bound <= tolerance
        if found.tolerance_bound > 0:
            assert best_at(found.tolerance_bound) > budget * (1 - 1e-9)
    best = best_at(tolerance)
    # The dual bound is a lower bound on the best cost, and close to it.
    assert best - 2e-4 * abs(best) - 1e-9 <= found.lower_bound <= best + 1e-8 * (1 + abs(best))
    paid = a[np.arange(n_samples), found.labels]
    assert found.cost == pytest.approx(float(each @ paid), rel=1e-9, abs=1e-9)
    broken = most_broken(found.labels, columns, asked, tolerance, each, n_clusters)
    assert broken <= found.slack + 1e-4
    if found.slack < 1e-9:
        assert found.cost >= best - 1e-8 * (1 + abs(best))
    # Whole rows can be off the bounds by up to two points, or by the weight of the two heaviest rows.
    assert found.slack <= 2 * each.max()


@pytest.mark.parametrize("seed", QUICK)
def test_random_mixed_bounds(seed):
    check(seed, most=80)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SLOW)
def test_many_random_mixed_bounds(seed):
    check(seed)
