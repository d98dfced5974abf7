import numpy as np
import pytest
from problems import from_blobs, from_matrix, optimum

from fairclust.solvers import newton
from fairclust.solvers.criteria import exact_shares, gap_bound, ratio_bound
from fairclust.solvers.prices import dual_prices

LEVELS = (0.2, 0.04, 0.008, 0.0016, 0.0003)


@pytest.mark.parametrize("kind", ["balance", "gap"])
@pytest.mark.parametrize("n_singular", [4, 1000])
def test_singular_systems_are_tried_again_with_more_damping(n_singular, kind, monkeypatch):
    problem = from_blobs(n_samples=300, n_groups=3, n_clusters=4, seed=3)
    sizes = np.bincount(problem.codes).astype(float)
    criterion = (
        ratio_bound(0.8 * sizes.min() / sizes.max(), 3) if kind == "balance" else gap_bound(0.02, sizes)
    )
    expected = dual_prices(problem.potentials, criterion)
    left, factorise = list(range(n_singular)), newton.cho_factor

    def singular_at_first(matrix, **options):
        if left:
            left.pop()
            raise np.linalg.LinAlgError("singular")
        return factorise(matrix, **options)

    monkeypatch.setattr(newton, "cho_factor", singular_at_first)
    found = dual_prices(problem.potentials, criterion)
    assert len(left) < n_singular
    if left:
        assert not found.converged and not found.multipliers.any()
    else:
        assert found.converged and found.cost == pytest.approx(expected.cost, rel=1e-3)


def test_prices_scale_with_the_potentials():
    problem = from_blobs(n_groups=3)
    criterion = exact_shares(problem.shares)
    small = from_matrix(problem.a * 1e-5, problem.codes)
    one, other = (dual_prices(p.potentials, criterion) for p in (problem, small))
    assert one.n_passes == other.n_passes
    np.testing.assert_allclose(other.prices * 1e5, one.prices, rtol=1e-3, atol=1e-3)


def test_prices_survive_saturated_softmax_rows():
    # No point is near a boundary, so there is no curvature at the temperatures that are tried.
    a = np.array([[0.0, 1e4], [0.0, 1e4], [1e4, 0.0], [0.0, 1.0]])
    problem = from_matrix(a, np.array([0, 1, 0, 1]))
    criterion = exact_shares(problem.shares)
    found = dual_prices(problem.potentials, criterion, levels=LEVELS, max_steps=30)
    assert np.isfinite(found.prices).all()
    # D(y) from its definition.
    reduced = (problem.a + found.prices[problem.codes]).min(axis=1).sum()
    bound = reduced - (criterion.limits * found.multipliers).sum()
    assert bound <= optimum(a, problem.codes, criterion) * (1 + 1e-9)
