"""Time and cost of quadtree fairlets against those of a plain greedy search and of minimum-cost flow.

    python benchmarks/fairlet_speed.py [--rows 2000 20000 200000] [--features 25] [--csv FILE]

In the greedy search every point of the smaller group takes the nearest free point of the larger group. Then every
point that is left joins the nearest fairlet that has room. Its time grows with the square of the number of rows. The
search and the flow are left out if they would take long. The cost is the mean distance of a point to the medoid of its
fairlet. Times are CPU seconds of one process.

The data are drawn from `census_like`, standardised and with rows of unit length.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time

import numpy as np
from scipy.spatial.distance import cdist

from fairclust.kernels.fairlets import fairlet_medoids
from fairclust.methods import FairletClustering, FairletTreeClustering
from measuring import drawn, write_csv

Q = 2
MOST_GREEDY = 20_000
MOST_FLOW = 2000


def tree(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return FairletTreeClustering()._decompose(X, codes, 1, Q, np.random.RandomState(0))


def greedy(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    few = int(np.bincount(codes).argmin())
    centers, others = np.flatnonzero(codes == few), np.flatnonzero(codes != few)
    fairlet = np.full(len(X), -1)
    fairlet[centers] = np.arange(len(centers))
    free = np.ones(len(others), bool)
    for c in centers:
        distances = cdist(X[[c]], X[others])[0]
        nearest = np.where(free, distances, np.inf).argmin()
        free[nearest] = False
        fairlet[others[nearest]] = fairlet[c]
    room = np.full(len(centers), Q - 1)
    for i in others[free]:
        distances = cdist(X[[i]], X[centers])[0]
        nearest = np.where(room > 0, distances, np.inf).argmin()
        room[nearest] -= 1
        fairlet[i] = nearest
    return fairlet


def flow(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return FairletClustering()._decompose(X, codes, 1, Q, np.random.RandomState(0))


def cost(X: np.ndarray, fairlet: np.ndarray) -> float:
    members = np.argsort(fairlet, kind="stable")
    rows = fairlet_medoids(X, members, np.cumsum(np.bincount(fairlet)))
    return float(np.linalg.norm(X - X[rows[fairlet]], axis=1).mean())


def measure(make: Callable[..., np.ndarray], X: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    begin = process_time()
    fairlet = make(X, codes)
    return process_time() - begin, cost(X, fairlet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 20_000, 200_000])
    parser.add_argument("--features", type=int, default=25)
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()

    found = []
    for n in args.rows:
        X, codes = drawn(n, dtype=np.float64, n_features=args.features)
        # The first calls compile and are not measured.
        tree(X[:100], codes[:100])
        seconds = {}
        for make, most in ((tree, np.inf), (greedy, MOST_GREEDY), (flow, MOST_FLOW)):
            if n > most:
                continue
            seconds[make.__name__], per_point = measure(make, X, codes)
            found.append(
                {
                    "rows": n,
                    "fairlets": make.__name__,
                    "cpu_seconds": seconds[make.__name__],
                    "cost": per_point,
                }
            )
            print(
                f"{n:>9,} {make.__name__:>7} {seconds[make.__name__]:9.3f} s, cost {per_point:.4f}",
                flush=True,
            )
        for other in seconds.keys() - {"tree"}:
            print(f"{n:>9,} time, {other} / tree: {seconds[other] / seconds['tree']:,.0f}")
    write_csv(args.csv, found)


if __name__ == "__main__":
    main()
