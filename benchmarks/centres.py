"""How far default fits of group prices, and of k-means, are above the best cost known, with and without the search.

    python benchmarks/centres.py [--mirror DIR] [--datasets adult ...] [--clusters 5 10 20] [--tolerances 0 0.05 0.2]
        [--seeds 10] [--starts 0] [--csv FILE]

The best costs known are in centres_best.csv beside this script, which every run completes: with those of its own fits,
and with those of `--starts` single starts, half of them from plain k-means and half from k-means++ centres. A tolerance
of 1 is k-means without bounds. `fronts.py` compares the costs of other methods at the same fairness.

The two generated data sets have many local optima: one has no clusters, and three groups, of which one has 2.9 % of
the rows; the other has sixty overlapping clusters. The excess is printed in per cent, its mean and its largest value
over the seeds, and the processor time of a fit.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn import cluster
from threadpoolctl import threadpool_limits

from fairclust.methods import KMeans, PriceFairKMeans
from fairclust.metrics import sse
from measuring import prepared, write_csv

BEST = Path(__file__).with_name("centres_best.csv")
DATASETS = [
    "adult",
    "bank_3",
    "credit_2",
    "german",
    "dutch",
    "law_school",
    "diabetes",
    "student_por",
    "communities",
]
DATASETS += ["oulad", "no_clusters", "sixty_clusters"]
KEY = ["dataset", "n_clusters", "tolerance"]


def no_clusters() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    n = 25_000
    columns = [rng.normal(size=n), rng.exponential(size=n), rng.gamma(2, size=n), rng.integers(0, 7, n)]
    X = np.column_stack([*columns, rng.normal(size=n), rng.random(n)])
    X += 0.3 * rng.normal(size=X.shape) @ rng.normal(size=(6, 6))
    groups = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    groups[rng.random(n) < 0.029] = 2
    return (X - X.mean(axis=0)) / X.std(axis=0), groups


def sixty_clusters() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 60, 20_000)
    X = 6 * rng.normal(size=(60, 4))[labels] + rng.normal(size=(20_000, 4))
    groups = (rng.random(20_000) < 0.2 + 0.5 * (labels % 3 == 0)).astype(int)
    return (X - X.mean(axis=0)) / X.std(axis=0), groups


def data(name: str, mirror: str | None) -> tuple[np.ndarray, np.ndarray]:
    generated = {"no_clusters": no_clusters, "sixty_clusters": sixty_clusters}
    if name in generated:
        return generated[name]()
    found = prepared(name, mirror)
    return found.X, found.groups


class Best:
    """The best costs known."""

    def __init__(self) -> None:
        self.table = (
            pd.read_csv(BEST).set_index(KEY) if BEST.exists() else pd.DataFrame(columns=["cost", "found by"])
        )

    def take(self, key: tuple[str, int, float], cost: float, by: str) -> None:
        if key not in self.table.index or cost < self.table.at[key, "cost"]:
            rows = self.table.to_dict("index") | {key: {"cost": cost, "found by": by}}
            self.table = pd.DataFrame.from_dict(rows, orient="index")
            self.table.index = pd.MultiIndex.from_tuples(self.table.index, names=KEY)
            self.table.sort_index().to_csv(BEST, float_format="%.10g")

    def excess(self, key: tuple[str, int, float], costs: list[float]) -> np.ndarray:
        return 100 * (np.array(costs) / self.table.at[key, "cost"] - 1)


def cost_of(X: np.ndarray, groups: np.ndarray, model: Any) -> float:
    model.fit(X, sensitive_features=groups)
    return float(sse(X, model.labels_))


def models(n_clusters: int, tolerance: float, seed: int) -> dict[str, Any]:
    if tolerance == 1:
        return {
            "KMeans(n_init=10, search=True)": KMeans(n_clusters, n_init=10, search=True, random_state=seed),
            "KMeans(n_init=10)": KMeans(n_clusters, n_init=10, random_state=seed),
        }
    params = {"tolerance": tolerance, "random_state": seed}
    return {
        "PriceFairKMeans()": PriceFairKMeans(n_clusters, **params),
        "PriceFairKMeans(search=False)": PriceFairKMeans(n_clusters, search=False, **params),
    }


def single_start(X: np.ndarray, groups: np.ndarray, n_clusters: int, tolerance: float, seed: int) -> float:
    if tolerance == 1:
        return float(cluster.KMeans(n_clusters, n_init=1, tol=0, random_state=seed).fit(X).inertia_)
    init = ("k-means", "k-means++")[seed % 2]
    model = PriceFairKMeans(n_clusters, tolerance=tolerance, init=init, n_init=1, random_state=seed)
    return cost_of(X, groups, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--mirror")
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--clusters", nargs="+", type=int, default=[5, 10, 20])
    parser.add_argument("--tolerances", nargs="+", type=float, default=[0, 0.05, 0.2, 1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--csv")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    best, rows = Best(), []
    for name in args.datasets:
        X, groups = data(name, args.mirror)
        for n_clusters in args.clusters:
            for tolerance in args.tolerances:
                key = name, n_clusters, tolerance
                costs: dict[str, list[float]] = {}
                seconds: dict[str, list[float]] = {}
                for seed in range(args.seeds):
                    for which, model in models(n_clusters, tolerance, seed).items():
                        begin = process_time()
                        costs.setdefault(which, []).append(cost_of(X, groups, model))
                        seconds.setdefault(which, []).append(process_time() - begin)
                        best.take(key, costs[which][-1], which)
                for seed in range(args.starts):
                    best.take(key, single_start(X, groups, n_clusters, tolerance, seed), "a single start")
                for which, found in costs.items():
                    excess = best.excess(key, found)
                    took = float(np.median(seconds[which]))
                    print(
                        f"{name}, K = {n_clusters}, tolerance {tolerance:g}, {which}: mean {excess.mean():.3f} %, "
                        f"largest {excess.max():.3f} %, {took:.2f} s",
                        flush=True,
                    )
                    row = dict(zip(KEY, key, strict=True)) | {"model": which, "seconds": took}
                    rows.append(row | {"mean_excess": excess.mean(), "largest_excess": excess.max()})
    write_csv(args.csv, rows)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
