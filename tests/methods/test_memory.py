"""Fits keep few tables of points by clusters. The tables of small problems are in double precision."""

import tracemalloc

import numpy as np
import pytest

from fairclust.methods import BeraFairKMeans, FairAlignmentKMeans

N_SAMPLES, N_CLUSTERS = 50_000, 40


@pytest.mark.parametrize(
    "model, most",
    [
        (BeraFairKMeans(N_CLUSTERS, solver="prices", tolerance=0.3, n_init=1, max_iter=2), 2.5),
        (FairAlignmentKMeans(N_CLUSTERS, block_size=16, n_init=1, max_iter=1), 1.6),
    ],
    ids=["bera", "fca"],
)
def test_peak_memory_in_tables_of_points_by_clusters(model, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 2))
    groups = (rng.random(N_SAMPLES) < 0.3 + 0.3 * (X[:, 0] > 0)).astype(int)
    model.set_params(random_state=0)
    # Compiling takes memory as well, so a first fit compiles the kernels before the measurement.
    model.fit(X[:1000], sensitive_features=groups[:1000])
    tracemalloc.start()
    try:
        model.fit(X, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < most * 8 * N_SAMPLES * N_CLUSTERS
