"""`metric="cosine"`: rows and centres of unit length, in fits, predictions and certificates."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import normalize

from fairclust.base import NotSupported
from fairclust.methods import KMeans, PriceFairKMeans, PriceFairKMedians


def rays(n=600, seed=0, spread=0.2, dtype=float):
    """Rows around four directions, whose lengths differ by a factor of a thousand, and two groups."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4, size=n)
    X = normalize(rng.normal(size=(4, 6)))[kind] + spread * rng.normal(size=(n, 6))
    codes = (rng.random(n) < np.array([0.2, 0.4, 0.6, 0.8])[kind]).astype(int)
    return (X * 10 ** rng.uniform(-1, 2, size=(n, 1))).astype(dtype), codes, kind


FAIR = PriceFairKMeans(4, tolerance=0.1, metric="cosine", n_init=3, random_state=0)
MODELS = [KMeans(4, metric="cosine", n_init=3, random_state=0), FAIR]


@pytest.fixture(params=MODELS, ids=["plain", "prices"])
def model(request):
    return clone(request.param)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_cost_is_that_of_angles(model, dtype):
    X, codes, _ = rays(dtype=dtype)
    model.fit(X, sensitive_features=codes)
    unit, labels = normalize(X.astype(float)), model.labels_
    centers = model.cluster_centers_
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-6)
    cost = 2 * (1 - (unit * centers[labels]).sum(axis=1)).sum()
    assert (model.inertia_ if isinstance(model, KMeans) else model.cost_) == pytest.approx(cost, rel=1e-4)
    # At rest, the centres are the directions of the means, but for the rows that rounding moved.
    means = normalize([unit[labels == k].mean(axis=0) for k in range(4)])
    np.testing.assert_allclose(centers, means, atol=5e-3 if isinstance(model, KMeans) else 0.03)
    np.testing.assert_allclose(model.transform(X) ** 2, 2 * (1 - unit @ centers.T), atol=1e-4)
    differing = (model.predict(X, sensitive_features=codes) != labels).sum()
    assert differing == getattr(model, "n_rounded_", 0)
    assert model.score(X, sensitive_features=codes) == pytest.approx(-cost, rel=2e-2)


def test_directions_close_to_each_other_are_told_apart():
    X, codes, kind = rays(spread=0.05)
    X = normalize(X) * 1e-3 + np.eye(6)[0]
    found = KMeans(4, metric="cosine", n_init=5, random_state=0).fit(X, sensitive_features=codes)
    assert adjusted_rand_score(kind, found.labels_) > 0.9
    np.testing.assert_array_equal(found.predict(X), found.labels_)


def test_a_direction_opposite_to_all_others_does_not_move_the_origin():
    """With other metrics, rows are centred around most of them if a row is as far from these as this one."""
    X, codes, _ = rays(spread=0.05)
    X = normalize(normalize(X) * 1e-4 + np.eye(6)[0])
    X[0] = -X[0]
    model = PriceFairKMeans(2, min_balance=0, metric="cosine", random_state=0)
    labels = model.fit(X, sensitive_features=codes).labels_
    assert np.bincount(labels).min() == 1
    means = normalize([X[labels == k].mean(axis=0) for k in range(2)])
    np.testing.assert_allclose(model.cluster_centers_, means, atol=1e-9)


def test_weights_count_rows_several_times():
    X, codes, _ = rays(200)
    times = np.random.default_rng(2).integers(1, 4, size=len(X))
    model = PriceFairKMeans(3, tolerance=0.2, metric="cosine", init=X[:3], precision="double")
    weighted = model.fit(X, sensitive_features=codes, sample_weight=times)
    cost, centers = weighted.cost_, weighted.cluster_centers_
    repeated = model.fit(X.repeat(times, axis=0), sensitive_features=codes.repeat(times))
    assert cost == pytest.approx(repeated.cost_, rel=0.02)
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-12)


def test_rows_and_centres_of_zeros_are_refused(model):
    X, codes, _ = rays()
    X[17] = 0
    with pytest.raises(ValueError, match="X has only zeros in row 17"):
        model.fit(X, sensitive_features=codes)
    model.fit(X[:17], sensitive_features=codes[:17])
    with pytest.raises(ValueError, match="X has only zeros in row 0"):
        model.predict(X[17:], sensitive_features=codes[17:])
    given = type(model)(2, metric="cosine", init=[[0] * 6, [1] * 6])
    with pytest.raises(ValueError, match="init has only zeros in row 0"):
        given.fit(X[:17], sensitive_features=codes[:17])


@pytest.mark.parametrize("cls", [KMeans, PriceFairKMeans])
def test_rows_in_chunks_are_refused(cls, tmp_path):
    X, codes, _ = rays()
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(NotSupported, match="metric='cosine' is for rows in memory"):
        cls(3, metric="cosine").fit(tmp_path / "rows.npy", sensitive_features=codes)


@pytest.mark.parametrize("max_iter", [1, 100])
def test_centres_without_rows_have_unit_length_too(max_iter):
    """The search splits clusters, and with so few directions some of the halves stay empty."""
    rng = np.random.default_rng(2)
    kinds = rng.normal(size=(int(rng.integers(3, 9)), 3))
    X = np.vstack([kinds[rng.integers(len(kinds), size=60)], rng.normal(size=(2, 3))])
    model = PriceFairKMeans(9, tolerance=0.5, metric="cosine", n_init=3, max_iter=max_iter, random_state=2)
    model.fit(X, sensitive_features=np.arange(62) % 2)
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1, atol=1e-6)


def test_medoids_of_unit_rows():
    X, codes, _ = rays(200)
    model = PriceFairKMedians(3, tolerance=0.2, metric="cosine", random_state=0)
    model.fit(X, sensitive_features=codes)
    unit = normalize(X)
    np.testing.assert_allclose(model.cluster_centers_, unit[model.medoid_indices_], atol=1e-12)
    paid = np.linalg.norm(unit - model.cluster_centers_[model.labels_], axis=1)
    assert model.cost_ == pytest.approx(paid.sum(), rel=1e-6)
