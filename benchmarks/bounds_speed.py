"""Time, memory and cost of bounds on several columns, on sizes, and on many groups.

    python benchmarks/bounds_speed.py [--mirror DIR] [--rows 1000000] [--csv FILE]

Every measurement runs in its own process, on one core, after a small fit that compiles the kernels. Adult and c50 are
read from the mirror and left out without it. Balanced k-means is compared with `k-means-constrained` if that is
installed. Shares and sizes are computed from the labels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd

from fairclust import PriceFairKMeans
from fairclust.datasets.prepare import standardize, unit_rows
from fairclust.metrics import contingency, fairness_ratio, sse
from measuring import SEED, apart, drawn, tell, write_measurements

ADULT_FEATURES = [0, 2, 4, 10, 12]
ADULT_SENSITIVE = {"sex": 9, "race": 8}


def adult(mirror: str) -> tuple[np.ndarray, pd.DataFrame]:
    """Read Adult as in the papers, with two sensitive columns."""
    table = pd.read_csv(Path(mirror) / "adult/adult.data", header=None, skipinitialspace=True)
    X = np.ascontiguousarray(table[ADULT_FEATURES].to_numpy(float))
    standardize(X)
    unit_rows(X)
    return X, pd.DataFrame({name: table[column] for name, column in ADULT_SENSITIVE.items()})


def authors(mirror: str) -> tuple[np.ndarray, pd.DataFrame]:
    """Read c50, which has fifty texts by each of fifty authors."""
    table = pd.read_csv(Path(mirror) / "standard/c50.csv")
    X = np.ascontiguousarray(table.drop(columns="color").to_numpy(float))
    standardize(X)
    unit_rows(X)
    return X, table[["color"]].astype(str)


def made_up(rows: int) -> tuple[np.ndarray, pd.DataFrame]:
    X, sex = drawn(rows, n_features=8)
    other = np.random.default_rng(SEED).choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1])
    return X, pd.DataFrame({"sex": sex.astype(str), "other": other})


def measure(X: np.ndarray, columns: pd.DataFrame | None, n_clusters: int, **params: Any) -> dict[str, float]:
    """Time a fit, and compute the shares and sizes of its clusters from the labels."""
    small = slice(0, 400)
    warm = PriceFairKMeans(2, n_init=1, max_iter=2, tolerance=0.5, size_max=1.5, random_state=SEED)
    warm.fit(X[small], sensitive_features=None if columns is None else columns[small].iloc[:, :1])
    # Starts are compared with starts.
    model = PriceFairKMeans(n_clusters, search=False, random_state=SEED, **params)
    begin = process_time()
    model.fit(X, sensitive_features=columns)
    found = {"seconds": process_time() - begin, "cost": model.cost_, "gap_percent": 100 * model.gap_}
    found["violation"] = model.violation_
    for name in columns if columns is not None else ():
        codes = np.unique(columns[name], return_inverse=True)[1]
        found[f"fairness_ratio_{name}"] = fairness_ratio(contingency(model.labels_, codes, n_clusters))
    sizes = np.bincount(model.labels_, minlength=n_clusters)
    return {**found, "size_min": sizes.min(), "size_max": sizes.max()}


def on_adult(mirror: str, **params: Any) -> dict[str, float]:
    return measure(*adult(mirror), 10, **params)


def on_authors(mirror: str, **params: Any) -> dict[str, float]:
    return measure(*authors(mirror), 8, **params)


def on_many(rows: int, **params: Any) -> dict[str, float]:
    return measure(*made_up(rows), 10, **params)


def balanced(rows: int, n_features: int, n_clusters: int) -> dict[str, float]:
    """Time ten starts of group prices and ten of k-means-constrained, with sizes within 5 % of the mean.

    Both start from k-means++.
    """
    X, _ = drawn(rows, dtype=np.float64, n_features=n_features)
    found = measure(X, None, n_clusters, size_min=0.95, size_max=1.05, init="k-means++")
    try:
        from k_means_constrained import KMeansConstrained
    except ImportError:
        return found
    mean = rows / n_clusters
    other = KMeansConstrained(
        n_clusters,
        size_min=int(np.ceil(0.95 * mean)),
        size_max=int(1.05 * mean),
        n_init=10,
        random_state=SEED,
    )
    begin = process_time()
    labels = other.fit_predict(X)
    seconds = process_time() - begin
    found |= {"constrained_seconds": seconds, "constrained_cost": sse(X, labels)}
    return {**found, "constrained_over_prices": seconds / found["seconds"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirror", help="folder with adult/adult.data and standard/c50.csv")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the largest data; 0 leaves them out")
    parser.add_argument("--balanced-rows", type=int, default=23_000, help="0 leaves balanced k-means out")
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()
    sizes = {"size_min": 0.95, "size_max": 1.05}
    jobs: list[tuple[str, Callable[..., dict[str, float]], dict[str, Any]]] = []
    if args.mirror:
        at = {"mirror": args.mirror}
        jobs += [
            ("Adult, sex and race within .1, ten starts", on_adult, {**at, "tolerance": 0.1}),
            (
                "Adult, and sizes within 5 %, ten starts",
                on_adult,
                {**at, "tolerance": 0.1, "tol": 1e-6, **sizes},
            ),
            ("c50, 50 groups within .2, one start", on_authors, {**at, "tolerance": 0.2, "n_init": 1}),
            ("c50, 50 groups within .2, ten starts", on_authors, {**at, "tolerance": 0.2}),
        ]
    if args.balanced_rows:
        params = {"rows": args.balanced_rows, "n_features": 10, "n_clusters": 20}
        jobs.append((f"balanced k-means of {args.balanced_rows:,} rows, ten starts", balanced, params))
    if args.rows:
        params = {"rows": args.rows, "tolerance": 0.1, "n_init": 1, **sizes}
        jobs.append((f"{args.rows:,} rows, two columns and sizes, one start", on_many, params))
    found: dict[str, dict[str, float]] = {}
    for title, call, params in jobs:
        found[title] = apart(call, 1, **params)
        tell(title, 1, found[title])
    write_measurements(args.csv, found)


if __name__ == "__main__":
    main()
