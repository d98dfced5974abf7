"""CPU time of the core against scikit-learn's `KMeans` with as many starts, measured in pairs.

    python benchmarks/core_speed.py --mirror DIR [--repeats 5] [--csv FILE]

A pair is one fit of this package and one of scikit-learn, in turn and in one thread, so that other load on the machine
slows both. The ratio is the median over the pairs. One pass of distances is compared with one Lloyd step of
scikit-learn. For fits with 50 groups, read the seconds: k-means knows no groups, so the ratio means little.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numba
import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairclust.kernels.points import TiledPoints
from fairclust.methods import PriceFairKMeans, VariationalFairKMeans
from measuring import SEED, paper_data, write_csv

CASES = {
    "credit_2_std": ("Credit", [0.0, 0.2]),
    "synthetic": ("Synthetic", [0.0, 0.2]),
    "elliptical": ("Elliptical", [0.2]),
}
CREDIT_LAM = 5000.0


def cpu_seconds(call: Callable[[], Any]) -> float:
    begin = process_time()
    call()
    return process_time() - begin


def in_pairs(ours: Callable[[int], Any], theirs: Callable[[int], Any], repeats: int) -> dict[str, float]:
    """Return medians over the seeds, after one call of each function that compiles."""
    ours(SEED), theirs(SEED)
    pairs = [
        (cpu_seconds(lambda seed=seed: ours(seed)), cpu_seconds(lambda seed=seed: theirs(seed)))
        for seed in range(SEED, SEED + repeats)
    ]
    own, other = np.array(pairs).T
    return {
        "cpu_seconds": float(np.median(own)),
        "kmeans_cpu_seconds": float(np.median(other)),
        "ratio": float(np.median(own / other)),
    }


def plain(X: np.ndarray, n_clusters: int, seed: int, n_init: int) -> KMeans:
    return KMeans(n_clusters, n_init=n_init, random_state=seed).fit(X)


def prices(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for name, (label, tolerances) in CASES.items():
        for tolerance in tolerances:
            found |= priced(label, *paper_data(name, args.mirror), tolerance, args.repeats)
    return found


def priced(
    label: str, X: np.ndarray, groups: np.ndarray, n_clusters: int, tolerance: float, repeats: int
) -> dict[str, dict[str, float]]:
    """Time ten starts, without and with the search for better centres, against ten starts of k-means."""

    def ours(seed: int, search: bool) -> Any:
        model = PriceFairKMeans(n_clusters, tolerance=tolerance, search=search, random_state=seed)
        return model.fit(X, sensitive_features=groups)

    return {
        f"prices, {label}, t = {tolerance:g}, ten starts{more}": in_pairs(
            partial(ours, search=search), lambda seed: plain(X, n_clusters, seed, 10), repeats
        )
        for search, more in ((False, ""), (True, " and the search"))
    }


def variational(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    X, groups, n_clusters = paper_data("credit_2_std", args.mirror)

    def ours(seed: int) -> Any:
        model = VariationalFairKMeans(n_clusters, lam=CREDIT_LAM, random_state=seed)
        return model.fit(X, sensitive_features=groups)

    return {
        "VFC, Credit, one start": in_pairs(ours, lambda seed: plain(X, n_clusters, seed, 1), args.repeats)
    }


def distances(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time a pass of distances and one Lloyd step for 60,000 rows, 20 features and K = 20."""
    X = np.random.default_rng(SEED).normal(size=(60_000, 20)).astype(np.float32)
    centers = X[:20]
    points = TiledPoints.pack(X, (np.arange(len(X)) % 2).astype(np.int32), 2, 20)
    step = KMeans(20, init=centers, n_init=1, tol=0, algorithm="lloyd")

    def lloyd(steps: int) -> float:
        return cpu_seconds(lambda: step.set_params(max_iter=steps).fit(X))

    def own(passes: int) -> float:
        return cpu_seconds(lambda: [points.measure(centers) for _ in range(passes)])

    own(1), lloyd(2)
    # The difference of two fits leaves out the time of validation and of the last labels.
    pairs = np.array([(own(40) / 40, (lloyd(42) - lloyd(2)) / 40) for _ in range(args.repeats)])
    return {
        "distance pass, 60,000 x 20, K = 20": {
            "cpu_seconds": float(np.median(pairs[:, 0])),
            "kmeans_cpu_seconds": float(np.median(pairs[:, 1])),
            "ratio": float(np.median(pairs[:, 0] / pairs[:, 1])),
        }
    }


def many_groups(args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time fits with 50 groups, 3,000 rows and K = 8."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(3000, 4)) + 3 * rng.normal(size=(8, 4))[rng.integers(8, size=3000)]
    groups = np.minimum((50 * rng.beta(2, 2, 3000)).astype(int), 49)
    return {
        name: found
        for tolerance in (0.0, 0.2)
        for name, found in priced("50 groups", X, groups, 8, tolerance, args.repeats).items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mirror", required=True)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--csv")
    parser.add_argument("--only", default="", help="part of the name of a measurement")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    rows = []
    numba.set_num_threads(1)
    with threadpool_limits(1):
        for measure in (distances, prices, variational, many_groups):
            if args.only not in measure.__name__:
                continue
            for name, found in measure(args).items():
                rows.append({"measurement": name, **found})
                print(
                    f"{name}: {found['cpu_seconds']:.4g} s, KMeans {found['kmeans_cpu_seconds']:.4g} s, "
                    f"{found['ratio']:.2f} x",
                    flush=True,
                )
    write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
