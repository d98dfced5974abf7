"""Time, memory and cost of fair clustering by group prices, against HiGHS and min-cost flow.

    python benchmarks/price_speed.py [--mirror DIR] [--rows 2458285] [--threads 2] [--csv FILE]

Every measurement runs in its own process, so that peaks of memory can be told apart. Adult and Bank are read from the
mirror and left out without it. The large data are drawn from `census_like` (25 features, two groups, K = 20), written
to a file and mapped from there. OR-Tools is measured if it is installed. For small numbers of rows the cheapest integer
assignment is found as well. Its cost shows how far above the lower bound even the best labels are.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.spatial.distance import cdist

from fairclust import fair_assignment
from fairclust.methods import PriceFairKMeans
from fairclust.methods.programs.fair_lp import fair_assignment_lp
from fairclust.metrics import balance, contingency, delta, fairness_error, sse
from measuring import CENSUS_ROWS, SEED, apart, drawn, paper_data, tell, write_measurements

K_LARGE = 20
MOST_WHOLE_ROWS = 500


def write_large(folder: Path, rows: int) -> dict[str, float]:
    X, groups = drawn(rows)
    np.save(folder / "X.npy", X)
    np.save(folder / "groups.npy", groups)
    return {}


def warm_up(**params: Any) -> None:
    """Fit a small data set, so that compilation is not measured."""
    X, groups = drawn(9_999)
    PriceFairKMeans(10, n_init=1, max_iter=2, random_state=SEED, **params).fit(X, sensitive_features=groups)


def fit(X: np.ndarray, groups: np.ndarray, n_clusters: int, **params: Any) -> dict[str, float]:
    model = PriceFairKMeans(n_clusters, search=False, random_state=SEED, **params)
    begin, begin_cpu = perf_counter(), process_time()
    model.fit(X, sensitive_features=groups)
    seconds, cpu_seconds = perf_counter() - begin, process_time() - begin_cpu
    table = contingency(model.labels_, groups, n_clusters)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "sse": sse(X, model.labels_),
        "balance": balance(table),
        "fairness_error": fairness_error(table),
        "delta": delta(table),
        "gap_percent": 100 * model.gap_,
        "violation": model.violation_,
        "outer": model.n_iter_,
        "passes": sum(record["inner_iter"] for record in model.history_),
    }


def fit_paper(args: argparse.Namespace, name: str, **params: Any) -> dict[str, float]:
    X, groups, n_clusters = paper_data(name, args.mirror)
    warm_up(**params)
    return fit(X, groups, n_clusters, **params)


def fit_large(args: argparse.Namespace) -> dict[str, float]:
    X = np.load(args.folder / "X.npy", mmap_mode="r")
    groups = np.load(args.folder / "groups.npy")
    warm_up()
    found = fit(X, groups, K_LARGE, n_init=1)
    return {**found, "seconds_per_outer": found["seconds"] / found["outer"]}


def same_problem(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return distances to ten random rows, groups, and the bounds of `tolerance=0.2`."""
    X, groups = drawn(rows)
    centers = X[np.random.default_rng(SEED).choice(rows, 10, replace=False)]
    shares = np.bincount(groups) / rows
    return cdist(X, centers, "sqeuclidean"), groups, 0.8 * shares, shares / 0.8


def assign(args: argparse.Namespace, rows: int) -> dict[str, float]:
    # The first call compiles and imports.
    measure_assignment(400, args.most_lp_rows)
    return measure_assignment(rows, args.most_lp_rows)


def measure_assignment(rows: int, most_lp_rows: int) -> dict[str, float]:
    """Measure the same assignment by prices, HiGHS and min-cost flow, in CPU seconds."""
    distances, groups, lower, upper = same_problem(rows)
    begin = process_time()
    found = fair_assignment(distances, groups, tolerance=0.2)
    prices_seconds = process_time() - begin
    out = {
        "prices_seconds": prices_seconds,
        "prices_cost": found.cost,
        "lower_bound": found.lower_bound,
        "gap_percent": 100 * found.gap,
        "violation": found.slack,
    }
    if rows <= most_lp_rows:
        begin = process_time()
        exact = fair_assignment_lp(distances, groups, lower=lower, upper=upper)
        lp_seconds = process_time() - begin
        out |= {
            "lp_seconds": lp_seconds,
            "lp_cost": float(exact.multiply(distances).sum()),
            "lp_over_prices": lp_seconds / prices_seconds,
        }
    flow = min_cost_flow(distances, groups, contingency(found.labels, groups, distances.shape[1]))
    if flow:
        # The flow rounds each cost to 1e-6, and the sums of costs are rounded in the last digits.
        assert flow["flow_cost"] <= found.cost + 1e-6 * rows
        flow["flow_over_prices"] = flow["flow_seconds"] / prices_seconds
        flow["cost_above_flow_percent"] = 100 * (found.cost / flow["flow_cost"] - 1)
    out |= flow
    if rows <= MOST_WHOLE_ROWS:
        whole = best_whole(distances, groups, lower, upper)
        out |= {"whole_cost": whole, "whole_above_bound_percent": 100 * (whole / found.lower_bound - 1)}
    return out


def best_whole(distances: np.ndarray, groups: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """Return the cost of the cheapest labels within the bounds, found by HiGHS' branch and bound."""
    rows, n_clusters = distances.shape
    members = np.eye(len(lower))[:, groups]
    limits = np.vstack([members - upper[:, None], lower[:, None] - members])
    done = milp(
        distances.ravel(),
        integrality=np.ones(distances.size),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(sp.kron(sp.eye_array(rows), np.ones((1, n_clusters))), 1, 1),
            LinearConstraint(sp.kron(limits, sp.eye_array(n_clusters)), -np.inf, 0),
        ],
        options={"mip_rel_gap": 1e-6},
    )
    if not done.success:
        raise RuntimeError(done.message)
    return float(done.fun)


def min_cost_flow(distances: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> dict[str, float]:
    """Find the cheapest labels with the same counts as the labels of the prices, by OR-Tools.

    A flow cannot bound shares of clusters whose sizes are free. It therefore gets the number of points of each group
    in every cluster, which the prices have found. Costs are rounded to whole units of 1e-6.
    """
    try:
        from ortools.graph.python import min_cost_flow as flow
    except ImportError:
        return {}
    rows, n_clusters = distances.shape
    begin = process_time()
    solver = flow.SimpleMinCostFlow()
    points = np.repeat(np.arange(rows), n_clusters)
    cells = rows + (groups[:, None] * n_clusters + np.arange(n_clusters)).ravel()
    solver.add_arcs_with_capacity_and_unit_cost(
        points, cells, np.ones(len(points), int), np.rint(distances.ravel() * 1e6).astype(int)
    )
    solver.set_nodes_supplies(np.arange(rows + counts.size), np.r_[np.ones(rows, int), -counts.ravel()])
    status = solver.solve()
    seconds = process_time() - begin
    if status != solver.OPTIMAL:
        raise RuntimeError(f"min-cost flow ended with {status}")
    return {"flow_seconds": seconds, "flow_cost": solver.optimal_cost() / 1e6}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirror", help="folder with adult/adult.data and bank/bank-additional.zip")
    parser.add_argument(
        "--rows", type=int, default=CENSUS_ROWS, help="rows of the large data; 0 leaves them out"
    )
    parser.add_argument(
        "--threads", type=int, default=2, help="threads for the large data; other fits run on one"
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[50, 500, 2_000, 10_000, 30_000, 200_000])
    parser.add_argument("--most-lp-rows", type=int, default=30_000)
    parser.add_argument("--csv", help="write the measurements here, too")
    args = parser.parse_args()

    jobs: list[tuple[str, Callable[..., dict[str, float]], dict[str, Any], int]] = []
    if args.mirror:
        for name in ("adult", "bank_3"):
            for params in (
                {"tolerance": 0.0},
                {"tolerance": 0.05},
                {"tolerance": 0.2},
                {"min_balance": 0.3968 if name == "adult" else 0.1676},
                {"max_gap": 0.01},
            ):
                title = f"{name}, K = 10, ten starts, {next(f'{k} {v}' for k, v in params.items())}"
                jobs.append((title, fit_paper, {"name": name, **params}, 1))
    jobs += [(f"assignment of {rows:,} rows", assign, {"rows": rows}, 1) for rows in args.sizes]
    if args.rows:
        jobs.append((f"whole fit, {args.rows:,} rows", fit_large, {}, args.threads))

    found: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        args.folder = Path(folder)
        if args.rows:
            apart(write_large, 1, args.folder, args.rows)
        for title, call, params, threads in jobs:
            found[title] = apart(call, threads, args, **params)
            tell(title, threads, found[title])
    write_measurements(args.csv, found)


if __name__ == "__main__":
    main()
