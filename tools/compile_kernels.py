"""Fit every method on a few rows, so that numba's cache is full: for the image of a container, and for tests.

Numba keeps compiled code beside the sources (or in NUMBA_CACHE_DIR), and uses it while the sources do not change and
the instructions are the same: here, as in jobs, those of the baseline.
"""

# ruff: noqa: E402
from __future__ import annotations

from fairclust.pipeline.script import use_baseline

use_baseline()  # before NumPy and numba are imported

import warnings
from multiprocessing import get_context

import numpy as np

from fairclust import methods, open_chunks
from fairclust.datasets.blobs import make_group_blobs
from fairclust.metrics import METRICS, Scored, score_labels

# Parameters with which a fit needs other kernels than with the defaults.
_VARIANTS: dict[str, list[dict[str, object]]] = {
    "VariationalFairKMeans": [{"lam": 10.0, "match_reference": True}, {"lam": 10.0}],
    "VariationalFairKMedians": [{"lam": 10.0, "match_reference": True}, {"lam": 10.0}],
    "VariationalFairNCut": [{"lam": 1.0, "match_reference": True}, {"lam": 1.0}],
    "PriceFairKMeans": [{"tolerance": 0.0, "n_init": 1}, {"tolerance": 0.2, "n_init": 1}],
    "PriceFairKMedians": [{"tolerance": 0.2, "n_init": 1}],
    "FairMixture": [
        {"lam": 1.0, "max_iter": 5},
        {"lam": 1.0, "max_iter": 5, "match_reference": True},
        {"lam": 1.0, "max_iter": 5, "solver": "gd", "match_reference": True},
        {"lam": 1.0, "max_iter": 5, "calibrate": True},
        {"lam": 1.0, "max_iter": 5, "solver": "mini-batch", "sample_size": 0.5},
        {"lam": 1.0, "max_iter": 5, "categorical_features": [0, 1]},
    ],
    "BalancedFairKMeans": [{"rho": 100.0}, {"rho": 100.0, "match_reference": True}],
    "FairletTreeClustering": [{"clustering": "kmeans"}, {"clustering": "kmedoids"}],
}


def fit_in_all_variants(name: str) -> str:
    """Fit one method of the package on a few rows, in variants that need different kernels; returns what went wrong."""
    data = make_group_blobs(n_rows=120)
    X = np.abs(np.round(data.X)) if name == "FairMixture" else np.asarray(data.X, dtype=float)
    groups = np.asarray(data.groups) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for params in _VARIANTS.get(name, [{}]):
            try:
                model = getattr(methods, name)(n_clusters=3, **params).fit(X, sensitive_features=groups)
                if name == "PriceFairKMeans":
                    # A fit of rows in chunks uses other kernels.
                    for dtype in (np.float32, np.float64):
                        model.fit(open_chunks(X.astype(dtype), groups))
                score_labels(Scored(model.labels_, groups, X, 3), [m for m in METRICS if m != "ncut"])
            except Exception as error:
                return f"{name} {params}: {type(error).__name__}: {error}"
    return ""


def main() -> None:
    """Fit all methods, two at a time, and print what could not be compiled."""
    # Spawned, because the threads of numba and OpenMP do not survive a fork.
    with get_context("spawn").Pool(2) as pool:
        for message in pool.imap_unordered(fit_in_all_variants, methods.__all__):
            if message:
                print(f"not compiled ahead: {message}")


if __name__ == "__main__":
    main()
