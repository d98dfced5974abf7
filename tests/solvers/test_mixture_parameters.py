"""Parameters, gradients and penalties of mixtures: finite differences and plain NumPy."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from fairclust.methods.mixture import fit, rows
from fairclust.methods.mixture.fit import Objective
from fairclust.methods.mixture.parameters import Family, Mixture

N = 90
KINDS = {
    "isotropic": (2, (), True),
    "diagonal": (2, (), False),
    "categorical": (0, (3, 2), True),
    "mixed isotropic": (2, (3,), True),
    "mixed diagonal": (2, (2, 3), False),
}


def problem(kind, n_groups, by_precision):
    n_numeric, sizes, shared = KINDS[kind]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, n_numeric)) + 2 * rng.integers(2, size=(N, 1))
    X = np.hstack([X, rng.integers(sizes, size=(N, len(sizes)))])
    groups = np.arange(N) * n_groups // N
    shape = (1, 1) if shared else (3, n_numeric)
    family = Family(shared, sizes, -3.0, by_precision)
    means, log_sd = rng.normal(size=(3, n_numeric)), rng.normal(scale=0.2, size=shape)
    mixture = Mixture(family, rng.normal(size=3), means, log_sd, rng.normal(size=(3, sum(sizes))))
    numeric, categorical = np.split(np.arange(X.shape[1]), [n_numeric])
    columns = rows.Columns(numeric, categorical, sizes, np.zeros(n_numeric))
    tiles = rows.Rows(columns, X, groups, n_groups).tiles()
    return tiles, np.bincount(groups).astype(float), mixture


PENALTIES = {
    "smooth": fit.smooth_penalty(3.0),
    "squares": lambda M, hard, held: (float((M**2).sum()), 2 * M),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_groups", [1, 2, 3])
@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("by_precision", [False, True])
def test_gradient_of_the_objective(monkeypatch, kind, n_groups, name, by_precision):
    monkeypatch.setattr(rows, "DTYPE", np.float64)
    tiles, sizes, mixture = problem(kind, n_groups, by_precision)
    objective = Objective(tiles, PENALTIES[name])

    def value(vector):
        at = mixture.at(vector)
        sums, logsum, _ = tiles.table(at.components)
        return logsum / N - objective.penalty(sums / sizes[:, None], None, None)[0]

    found = mixture.gradient(objective.pull(objective.look(mixture), 1 / N))
    expected = approx_fprime(mixture.vector(), value, 1e-6)
    np.testing.assert_allclose(found, expected, atol=3e-5)
    assert np.abs(found).max() > 1e-2
