"""A Gaussian mixture with the shape of Census II, for runs at scale without the census file."""

from __future__ import annotations

import numpy as np

from fairclust.datasets.generate import Generated

BLOCK_ROWS = 1 << 16


def make_census_like(
    n_rows: int = 200_000,
    n_features: int = 25,
    n_components: int = 20,
    group_share: float = 0.4847,
    seed: int = 0,
) -> Generated:
    """Draw from a mixture whose components differ in the share of two groups; `group_share` is that of the first one.

    Features have scales from 1 to 10,000, as ages and incomes do. Each block of rows has a separate seed, so little
    more memory is needed than for the result, and a shorter data set is the beginning of a longer one.
    """
    if min(n_rows, n_features, n_components) < 1 or not 0.0 < group_share < 1.0:
        raise ValueError("sizes must be positive and group_share strictly between 0 and 1")
    rng = np.random.default_rng([seed, 0])
    weights = rng.dirichlet(np.full(n_components, 2.0))
    centres = rng.normal(scale=2.0, size=(n_components, n_features))
    spreads = rng.uniform(0.5, 1.5, size=(n_components, n_features))
    units = 10.0 ** rng.uniform(0.0, 4.0, size=n_features)
    tilt = rng.uniform(-1.0, 1.0, size=n_components)
    # Centred, so that the overall share is group_share; scaled, so that every share is a probability.
    tilt -= weights @ tilt
    limit = 0.8 * min(group_share, 1.0 - group_share) / max(np.abs(tilt).max(), 1e-12)
    shares = group_share + limit * tilt

    X = np.empty((n_rows, n_features))
    groups = np.empty(n_rows, dtype=np.int32)
    for block, start in enumerate(range(0, n_rows, BLOCK_ROWS)):
        rng = np.random.default_rng([seed, 1, block])
        component = rng.choice(n_components, size=BLOCK_ROWS, p=weights)
        draws = rng.standard_normal((BLOCK_ROWS, n_features))
        draws *= spreads[component]
        draws += centres[component]
        draws *= units
        second = rng.random(BLOCK_ROWS) >= shares[component]
        rows = min(BLOCK_ROWS, n_rows - start)
        X[start : start + rows] = draws[:rows]
        groups[start : start + rows] = second[:rows]
    names = tuple(f"feature {j + 1}" for j in range(n_features))
    return Generated(X, groups, names, ("first", "second"))
