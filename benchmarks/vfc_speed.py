"""Time and memory of variational fair k-means against a plain NumPy transcription of the paper's update.

    python benchmarks/vfc_speed.py [--rows 2458285] [--mirror DIR] [--threads 2] [--csv FILE]

Every measurement runs in a process of its own, so that its peak memory is its own. Data are drawn from
`census_like` (25 features, two groups, K = 20); the second, smaller set is Adult where a mirror holds it.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numba
import numpy as np
import yaml
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fairclust.datasets import Catalogue
from fairclust.datasets.census_like import make_census_like
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.scaling import standardize, unit_rows
from fairclust.kernels.assignment import Potentials
from fairclust.kernels.tiles import make_layout, pack_points
from fairclust.methods import VariationalFairKMeans
from fairclust.solvers.path import lam_path

CONFIG = Path(__file__).parents[1] / "config" / "config.yaml"
SEED = 0


def large(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """census_like, scaled as the paper scales, in float32."""
    X, groups, *_ = make_census_like(n_rows=rows)
    standardize(X)
    unit_rows(X)
    return X.astype(np.float32), groups


def small(mirror: str | None) -> tuple[np.ndarray, np.ndarray]:
    """Adult, or census_like of its size."""
    if mirror:
        stated = yaml.safe_load(CONFIG.read_text())
        catalogue = Catalogue.model_validate({key: stated[key] for key in ("sources", "datasets")})
        sources = catalogue.sources_of("adult")
        paths = {name: Path(mirror) / str(source.file) for name, source in sources.items()}
        data = prepare_dataset("adult", catalogue.datasets["adult"], paths, sources)
        return data.X, data.groups
    X, groups, *_ = make_census_like(n_rows=32_561, n_features=5, n_components=10, group_share=0.33)
    standardize(X)
    unit_rows(X)
    return X, groups


def centers_of(X: np.ndarray, n_clusters: int) -> np.ndarray:
    """Rows drawn at random: the same start for all."""
    rng = np.random.default_rng(SEED)
    return X[np.sort(rng.choice(len(X), n_clusters, replace=False))].astype(float)


def least(call: Callable[[], Any], repeats: int) -> float:
    """Least time of some calls, after one that compiles and warms up."""
    call()
    times = []
    for _ in range(repeats):
        begin = perf_counter()
        call()
        times.append(perf_counter() - begin)
    return min(times)


def numpy_update(a: np.ndarray, s: np.ndarray, members: np.ndarray, lam: float, L: float) -> np.ndarray:
    """Equations 9 and 13 as written, on N x K matrices, scaled as the published program scales them."""
    target = members.mean(axis=1)
    b = np.zeros_like(s)
    for u, member in zip(target, members, strict=True):
        b += u / s.sum(axis=0) - u * member[:, None] / (member @ s)
    s = s * np.exp(-(a + lam * b) / L)
    return s / s.sum(axis=1, keepdims=True)


def numpy_bound(a: np.ndarray, s: np.ndarray, new: np.ndarray, members: np.ndarray, lam: float) -> float:
    """The auxiliary function of equation 9 at a step's result: what the published program stops by."""
    target = members.mean(axis=1)
    b = np.zeros_like(s)
    for u, member in zip(target, members, strict=True):
        b += u / s.sum(axis=0) - u * member[:, None] / (member @ s)
    floor = 1e-20
    return float((new * (np.log(np.maximum(new, floor)) - np.log(np.maximum(s, floor)) + a + lam * b)).sum())


def inner_numpy(
    args: argparse.Namespace, n_clusters: int = 20, *, with_bound: bool = False
) -> dict[str, float]:
    X, groups = large(args.rows)
    centers = centers_of(X, n_clusters)
    a = np.stack([((X - c) ** 2).sum(axis=1) for c in centers.astype(np.float32)], axis=1).astype(float)
    s = np.exp(-a) / np.exp(-a).sum(axis=1, keepdims=True)
    members = (groups == np.arange(2)[:, None]).astype(float)
    lam = 500_000.0

    def step() -> None:
        new = numpy_update(a, s, members, lam, 2.0)
        if with_bound:
            numpy_bound(a, s, new, members, lam)

    return {"seconds": least(step, 2)}


def inner_tiles(args: argparse.Namespace) -> dict[str, float]:
    X, groups = large(args.rows)
    centers = centers_of(X, 20)
    layout = make_layout(groups, 2)
    potentials = Potentials.empty(layout, 2, 20)
    shift = X.mean(axis=0, dtype=float)
    potentials.set_distances(pack_points(X, layout, shift), centers - shift)
    prices = np.random.default_rng(SEED).normal(scale=0.1, size=(2, 20))
    return {
        "seconds": least(lambda: potentials.soft(5.0, prices), 5),
        "with_moments": least(lambda: potentials.soft_moments(5.0, prices), 5),
    }


def fit_large(args: argparse.Namespace, solver: str = "accelerated", **params: Any) -> dict[str, float]:
    X, groups = large(args.rows)
    lam = 500_000.0 * args.rows / 2_458_285
    model = VariationalFairKMeans(20, lam=lam, random_state=SEED, solver=solver, **params)
    # On a few rows first: compilation is not what is measured.
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
    # Its inner loop runs to thousands of updates here; a few hundred tell what one costs.
    return fit_large(args, "mm", max_iter=1, bound_max_iter=200)


def fit_small(args: argparse.Namespace) -> dict[str, float]:
    X, groups = small(args.mirror)
    out: dict[str, float] = {}
    for solver in ("accelerated", "mm"):
        model = VariationalFairKMeans(10, lam=9000, init=centers_of(X, 10), solver=solver)
        out[f"{solver}_seconds"] = least(lambda model=model: model.fit(X, sensitive_features=groups), 3)
        out[f"{solver}_energy"] = model.history_[-1]["objective"]
        out[f"{solver}_passes"] = model.n_inner_iter_
    return out


def hundred(args: argparse.Namespace) -> dict[str, float]:
    """Twenty lambdas times five seeds."""
    X, groups = small(args.mirror)
    out: dict[str, float] = {}
    for solver in ("accelerated", "mm"):
        model = VariationalFairKMeans(10, lam=9000, solver=solver)
        clone(model).set_params(max_iter=1).fit(X, sensitive_features=groups)
        begin = perf_counter()
        for seed in range(5):
            lam_path(
                clone(model).set_params(random_state=seed),
                X,
                np.arange(1, 21) * 500.0,
                sensitive_features=groups,
            )
        out[f"{solver}_seconds"] = perf_counter() - begin
    return out


def child(call: Callable[[argparse.Namespace], dict[str, float]], args: Any, threads: int, out: Any) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    found = call(args)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out.put({**found, "peak_mb": peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_458_285)
    parser.add_argument("--mirror", help="folder with adult/adult.data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()

    context = multiprocessing.get_context("spawn")
    found: dict[str, dict[str, float]] = {}
    for name, call, threads in (
        ("inner step, NumPy", inner_numpy, 1),
        ("inner step, tiles", inner_tiles, 1),
        ("fit to convergence, accelerated", fit_large, args.threads),
        ("one outer step of at most 200 inner steps, mm", fit_large_mm, args.threads),
        ("Adult" if args.mirror else "size of Adult", fit_small, args.threads),
        ("20 lambdas, 5 seeds", hundred, args.threads),
    ):
        queue = context.Queue()
        process = context.Process(target=child, args=(call, args, threads, queue))
        process.start()
        found[name] = queue.get()
        process.join()
        print(f"{name} ({threads} threads):", end=" ")
        print(", ".join(f"{key} {value:,.4g}" for key, value in found[name].items()), flush=True)
    numpy_step = found["inner step, NumPy"]["seconds"]
    fit = found["fit to convergence, accelerated"]
    mm = found["one outer step of at most 200 inner steps, mm"]
    print(f"inner step, NumPy / tiles: {numpy_step / found['inner step, tiles']['seconds']:.1f}")
    # The transcription takes as many inner steps as mm; its distances and centres are not counted.
    in_numpy = numpy_step * mm["passes"]
    print(f"outer step, NumPy / mm: {in_numpy / mm['seconds_per_outer']:.1f}")
    print(f"outer step, NumPy / accelerated: {in_numpy / fit['seconds_per_outer']:.1f}")
    if args.csv:
        with Path(args.csv).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["rows", "measurement", "quantity", "value"])
            for name, values in found.items():
                writer.writerows([args.rows, name, key, value] for key, value in values.items())


if __name__ == "__main__":
    main()
