"""Time of one assignment step of the variational methods for several values of N, K, J and d.

    python benchmarks/vfc_scaling.py [--threads 1] [--max-rows 10000000] [--csv FILE] [--figure FILE]

The points are normally distributed and the groups are random. The parts of a step are timed one by one: the distances
to the centres, a softmax pass with the second moments of Newton's method, and the pass that makes the labels. The last
lines give the slope of log time against log N from 100,000 rows on, where the data do not fit in the caches. A slope of
1 means linear time.
"""

from __future__ import annotations

import argparse
import resource
from typing import Any

import matplotlib
import numba
import numpy as np

from fairclust.kernels.points import TiledPoints
from measuring import least, write_csv

BASE = {"N": 200_000, "K": 20, "J": 2, "d": 25}
AXES: dict[str, tuple[int, ...]] = {
    "N": (10_000, 31_623, 100_000, 316_228, 1_000_000, 3_162_278, 10_000_000),
    "K": (2, 5, 10, 20, 40, 80),
    "J": (1, 2, 4, 8, 16),
    "d": (2, 5, 10, 25, 50, 100),
}
PARTS = ("distances", "soft pass", "hard pass")


def measure(N: int, K: int, J: int, d: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, d), dtype=np.float32)
    points = TiledPoints.pack(X, rng.integers(J, size=N, dtype=np.int32), J, K, shift=np.zeros(d))
    centers = X[:K].astype(float)
    prices = rng.normal(scale=0.1, size=(J, K))
    repeats = 3 if N * K > 20_000_000 else 7
    return {
        "distances": least(lambda: points.measure(centers), repeats),
        "soft pass": least(lambda: points.soft(5.0, prices, curved=True), repeats),
        "hard pass": least(lambda: points.hard(1.0, prices), repeats),
    }


def plot(rows: list[dict[str, Any]], path: str) -> None:
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(AXES), figsize=(13, 3.4), sharey=True, layout="constrained")
    for ax, axis in zip(axes, AXES, strict=True):
        found = [row for row in rows if row["axis"] == axis]
        for part, marker in zip(PARTS, "os^", strict=True):
            ax.loglog([row[axis] for row in found], [row[part] for row in found], marker=marker, label=part)
        others = ", ".join(f"{key} = {value:,}" for key, value in BASE.items() if key != axis)
        ax.set(xlabel=axis, title=others)
        ax.title.set_fontsize(9)
        if axis != "N":
            ax.set_xticks([row[axis] for row in found], [str(row[axis]) for row in found])
            ax.minorticks_off()
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("seconds")
    axes[0].legend()
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--max-rows", type=int, default=10_000_000)
    parser.add_argument("--csv", help="write the measurements here, too")
    parser.add_argument("--figure", help="draw the measurements into this file")
    args = parser.parse_args()
    numba.set_num_threads(min(args.threads, numba.config.NUMBA_NUM_THREADS))
    measure(1000, 3, 2, 2)

    rows: list[dict[str, Any]] = []
    for axis, values in AXES.items():
        for value in values:
            size = {**BASE, axis: value}
            if size["N"] <= args.max_rows:
                rows.append({"axis": axis, **size, **measure(**size)})
                told = ", ".join(f"{part} {rows[-1][part]:.4g} s" for part in PARTS)
                print(f"{axis} = {value:,}: {told}", flush=True)
    large = [row for row in rows if row["axis"] == "N" and row["N"] >= 100_000]
    for part in PARTS if len(large) > 1 else ():
        slope = np.polyfit(np.log([row["N"] for row in large]), np.log([row[part] for row in large]), 1)[0]
        print(f"slope of log {part} by log N: {slope:.3f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")
    write_csv(args.csv, rows)
    if args.figure:
        plot(rows, args.figure)


if __name__ == "__main__":
    main()
