import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from fairclust.methods import InterpolatedTransportClustering, KMeans
from fairclust.methods.interpolated_transport import fuzzy_c_means, transport
from fairclust.metrics import delta
from toys import make_grouped_blobs


def some_blobs():
    return make_grouped_blobs(24, n_features=2, n_groups=3, seed=3)


def plan_of(X, Y):
    """Solve the transport between uniform masses as a linear program, which shares no code with POT."""
    n, m = len(X), len(Y)
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    masses = np.r_[np.full(n, 1 / n), np.full(m, 1 / m)]
    found = linprog(
        cdist(X, Y, "sqeuclidean").ravel(), A_eq=np.r_[rows, columns], b_eq=masses, method="highs-ds"
    )
    return found.x.reshape(n, m)


@pytest.mark.parametrize("X, codes", [make_grouped_blobs(30), some_blobs()])
def test_the_transport_recomputed_by_linear_programs(X, codes):
    support, parts = X, [X[codes == j] for j in range(codes.max() + 1)]
    for _ in range(30):
        plans = [plan_of(part, support) for part in parts]
        old, support = (
            support,
            len(X) * sum(len(part) / len(X) * plan.T @ part for part, plan in zip(parts, plans, strict=True)),
        )
        if abs(support - old).max() <= 1e-4 * np.ptp(X, axis=0).max():
            break
    found = transport(X, codes, X)
    for j, part in enumerate(parts):
        expected = len(part) * plan_of(part, support) @ support
        np.testing.assert_allclose(found[codes == j], expected, atol=1e-6)


def test_fuzzy_c_means_ends_at_a_fixed_point():
    X, _ = some_blobs()
    memberships, centers, cost = fuzzy_c_means(X, X[:3], 1.7, 1000)
    squares = cdist(X, centers, "sqeuclidean")
    again = 1 / ((squares[:, :, None] / squares[:, None, :]) ** (1 / 0.7)).sum(axis=2)
    np.testing.assert_allclose(memberships, again, atol=1e-4)
    assert cost == pytest.approx((again**1.7 * squares).sum(), rel=1e-4)


@pytest.mark.parametrize("fuzziness", [1.0001, 500.0])
def test_clusters_whose_weights_vanish_keep_their_centres(fuzziness):
    X, _ = some_blobs()
    start = np.r_[X[:19] + 0.01, [[50.0, 50]]]
    memberships, centers, cost = fuzzy_c_means(X, start, fuzziness, 100)
    assert np.isfinite(memberships).all() and np.isfinite(cost)
    np.testing.assert_array_equal(centers[-1], start[-1])


def test_the_smallest_step_within_the_tolerance_is_taken(grouped_blobs):
    X, codes = grouped_blobs(n_samples=300)
    violations = []
    for tolerance in (0.9, 0.1, 0.04):
        model = InterpolatedTransportClustering(3, tolerance=tolerance, random_state=0)
        model.fit(X, sensitive_features=codes)
        *earlier, last = [step["fairness"] for step in model.history_]
        assert last == model.violation_ <= tolerance and all(violation > tolerance for violation in earlier)
        violations.append((model.step_, last))
    assert violations[0][0] == 0 < violations[1][0] <= violations[2][0]
    # Another method can cluster the rows that have moved.
    gaps = [
        delta(KMeans(3, random_state=0).fit(rows).labels_, sensitive_features=codes)
        for rows in (model.transported_, X)
    ]
    assert gaps[0] < gaps[1] / 2


def test_a_tolerance_that_no_step_is_within_is_announced(grouped_blobs):
    X, codes = grouped_blobs(n_samples=100)
    model = InterpolatedTransportClustering(3, tolerance=0.0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="no step is within tolerance=0; the smallest soft violation"):
        model.fit(X, sensitive_features=codes)
    assert model.violation_ == min(step["fairness"] for step in model.history_)
