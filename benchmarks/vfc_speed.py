"""Time and memory of variational fair k-means against a plain NumPy transcription of the paper's update.

    python benchmarks/vfc_speed.py [--rows 2458285] [--mirror DIR] [--threads 2] [--csv FILE]

Every measurement runs in its own process, so that peaks of memory can be told apart. The large data are drawn from
`census_like` (25 features, two groups, K = 20). The small data are Adult or, without a mirror, drawn as well.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.base import clone

from fairclust.kernels import bound
from fairclust.kernels.points import TiledPoints
from fairclust.methods import VariationalFairKMeans
from measuring import CENSUS_ROWS, SEED, adult, apart, centers_of, drawn, least, tell, write_measurements


def numpy_update(a: np.ndarray, s: np.ndarray, members: np.ndarray, lam: float, L: float) -> np.ndarray:
    """Compute equations 9 and 13 as written, on N x K matrices, scaled as in the published program."""
    target = members.mean(axis=1)
    b = np.zeros_like(s)
    for u, member in zip(target, members, strict=True):
        b += u / s.sum(axis=0) - u * member[:, None] / (member @ s)
    s = s * np.exp(-(a + lam * b) / L)
    return s / s.sum(axis=1, keepdims=True)


def numpy_bound(a: np.ndarray, s: np.ndarray, new: np.ndarray, members: np.ndarray, lam: float) -> float:
    """Return the auxiliary function of equation 9 after a step. The published program stops by its changes."""
    target = members.mean(axis=1)
    b = np.zeros_like(s)
    for u, member in zip(target, members, strict=True):
        b += u / s.sum(axis=0) - u * member[:, None] / (member @ s)
    floor = 1e-20
    return float((new * (np.log(np.maximum(new, floor)) - np.log(np.maximum(s, floor)) + a + lam * b)).sum())


def inner_numpy(
    args: argparse.Namespace,
    n_clusters: int = 20,
    *,
    with_bound: bool = False,
    clock: Callable[[], float] = perf_counter,
) -> dict[str, float]:
    X, groups = drawn(args.rows)
    centers = centers_of(X, n_clusters)
    a = np.stack([((X - c) ** 2).sum(axis=1) for c in centers.astype(np.float32)], axis=1).astype(float)
    s = np.exp(-a) / np.exp(-a).sum(axis=1, keepdims=True)
    members = (groups == np.arange(2)[:, None]).astype(float)
    lam = 500_000.0

    def step() -> None:
        new = numpy_update(a, s, members, lam, 2.0)
        if with_bound:
            numpy_bound(a, s, new, members, lam)

    return {"seconds": least(step, 2, clock)}


def inner_tiles(args: argparse.Namespace) -> dict[str, float]:
    X, groups = drawn(args.rows)
    centers = centers_of(X, 20)
    points = TiledPoints.pack(X, groups, 2, 20)
    points.measure(centers)
    prices = np.random.default_rng(SEED).normal(scale=0.1, size=(2, 20))
    return {
        "seconds": least(lambda: points.soft(5.0, prices), 5),
        "with_moments": least(lambda: points.soft(5.0, prices, curved=True), 5),
    }


def fit_large(args: argparse.Namespace, **params: Any) -> dict[str, float]:
    X, groups = drawn(args.rows)
    lam = 500_000.0 * args.rows / CENSUS_ROWS
    model = VariationalFairKMeans(20, lam=lam, random_state=SEED, **params)
    # A fit of a few rows comes first, so that compilation is not measured.
    clone(model).set_params(max_iter=1).fit(X[:9999], sensitive_features=groups[:9999])
    begin, begin_cpu = perf_counter(), process_time()
    model.fit(X, sensitive_features=groups)
    seconds = perf_counter() - begin
    return {
        "seconds": seconds,
        "cpu_seconds": process_time() - begin_cpu,
        "outer": model.n_iter_,
        "passes": model.n_inner_iter_,
        "converged": model.converged_,
        "energy": model.history_[-1]["objective"],
        "clustering": model.history_[-1]["clustering"],
        "seconds_per_outer": seconds / model.n_iter_,
    }


def fit_large_mm(args: argparse.Namespace) -> dict[str, float]:
    # The inner loop would make thousands of updates. Two hundred are enough to measure the time of one.
    bound._MAX_ITER = 200
    return fit_large(args, match_reference=True, max_iter=1)


def fit_small(args: argparse.Namespace) -> dict[str, float]:
    X, groups = adult(args.mirror)
    out: dict[str, float] = {}
    for solver, reference in (("newton", False), ("reference", True)):
        model = VariationalFairKMeans(10, lam=9000, init=centers_of(X, 10), match_reference=reference)
        out[f"{solver}_seconds"] = least(lambda model=model: model.fit(X, sensitive_features=groups), 3)
        out[f"{solver}_energy"] = model.history_[-1]["objective"]
        out[f"{solver}_passes"] = model.n_inner_iter_
    return out


def hundred(args: argparse.Namespace) -> dict[str, float]:
    """Time a hundred fits: twenty lambdas with five seeds."""
    X, groups = adult(args.mirror)
    out: dict[str, float] = {}
    for solver, reference in (("newton", False), ("reference", True)):
        model = VariationalFairKMeans(10, lam=9000, match_reference=reference)
        clone(model).set_params(max_iter=1).fit(X, sensitive_features=groups)
        begin = perf_counter()
        for seed in range(5):
            for lam in np.arange(1, 21) * 500.0:
                clone(model).set_params(random_state=seed, lam=lam).fit(X, sensitive_features=groups)
        out[f"{solver}_seconds"] = perf_counter() - begin
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=CENSUS_ROWS)
    parser.add_argument("--mirror", help="folder with adult/adult.data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()

    found: dict[str, dict[str, float]] = {}
    for name, call, threads in (
        ("inner step, NumPy", inner_numpy, 1),
        ("inner step, tiles", inner_tiles, 1),
        ("fit to convergence, accelerated", fit_large, args.threads),
        ("one outer step of at most 200 inner steps, mm", fit_large_mm, args.threads),
        ("Adult" if args.mirror else "size of Adult", fit_small, args.threads),
        ("20 lambdas, 5 seeds", hundred, args.threads),
    ):
        found[name] = apart(call, threads, args)
        tell(name, threads, found[name])
    numpy_step = found["inner step, NumPy"]["seconds"]
    fit = found["fit to convergence, accelerated"]
    mm = found["one outer step of at most 200 inner steps, mm"]
    print(f"inner step, NumPy / tiles: {numpy_step / found['inner step, tiles']['seconds']:.1f}")
    # The transcription would make as many inner steps as `mm`. The time for its distances and centres is not included.
    in_numpy = numpy_step * mm["passes"]
    print(f"outer step, NumPy / mm: {in_numpy / mm['seconds_per_outer']:.1f}")
    print(f"outer step, NumPy / accelerated: {in_numpy / fit['seconds_per_outer']:.1f}")
    write_measurements(args.csv, found, rows=args.rows)


if __name__ == "__main__":
    main()
