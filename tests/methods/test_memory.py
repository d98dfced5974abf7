"""A fit keeps few tables of points by clusters."""

import tracemalloc

import numpy as np

from fairclust.methods import FairAlignmentKMeans

N_SAMPLES, N_CLUSTERS = 50_000, 40


def test_peak_memory_in_tables_of_points_by_clusters():
    model = FairAlignmentKMeans(N_CLUSTERS, block_size=16, n_init=1, max_iter=1, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_SAMPLES, 2))
    groups = (rng.random(N_SAMPLES) < 0.3 + 0.3 * (X[:, 0] > 0)).astype(int)
    # Compiling takes memory as well, so a first fit compiles the kernels before the measurement.
    model.fit(X[:1000], sensitive_features=groups[:1000])
    tracemalloc.start()
    try:
        model.fit(X, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * 8 * N_SAMPLES * N_CLUSTERS
