"""Fronts of cost against four fairness metrics: each criterion's own solver against the papers' methods.

    python benchmarks/fronts.py --mirror DIR [--starts 5] [--datasets adult] [--methods bera fca] [--out DIR]

Every method gets the same number of single starts for every setting of its grid. The grids are those of the
configuration, except for the solvers of the criteria, whose grids are in this file. Every start is a point: its cost,
which is the sum of squared distances to the cluster means, and the metric of its labels. Starts that a method makes
itself, such as those of k-means on fairlets, do not count.

The front of a metric is that of the solver whose criterion is this metric. A point of another method is called held if
a point of the front costs at most 0.05 % more and is at most 1e-4 less fair. For each point that is not held, the
solver of the criterion gets as many starts with the fairness of this point as its bound, so that the spacing of the
grid does not matter. A solver with a penalty is given weights that come closer and closer to this fairness. A point
that is not held after this beats the criterion. The distance of a point from the front is the difference of their
costs at 1e-4 less than the fairness of the point, in per cent of the front's cost. Between two points of the front the
cost is interpolated linearly.

`--out DIR` writes all points to points.csv, the table to fronts.csv, and a picture to fronts.png. Points that are
in points.csv already are not fitted again. All fits run on one thread, and times are CPU times.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import warnings
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numba
import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from fairclust.base import NotSupported
from fairclust.fronts import pareto
from fairclust.looks import in_matplotlib, numbered_look
from fairclust.metrics import METRICS, contingency, data_balance, n_nonempty, sse
from fairclust.outputs import atomic_write
from fairclust.pipeline.config import Config, user_config
from fairclust.pipeline.grids import derive_random_state
from measuring import paper_data

DATASETS = ("adult", "bank_3", "credit_2")
RIVALS = ("vfc_kmeans", "backurs_kmeans", "bera", "frkm", "bfkm", "fca_relaxed", "fca", "fmc_em", "fmc_gd")
COST_TOL, FAIR_TOL = 5e-4, 1e-4


class Own(NamedTuple):
    """The solver of a metric's criterion, with its grid. Balances are multiples of the balance of the data."""

    method: str
    parameter: str
    grid: tuple[float, ...]


CRITERIA = {
    "balance": Own(
        "price_balance",
        "min_balance",
        (0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99, 1),
    ),
    "delta": Own(
        "price_gap", "max_gap", (0, 0.001, 0.003, 0.006, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.1, 0.2, 0.4)
    ),
    "fairness_ratio": Own(
        "price_kmeans",
        "tolerance",
        (0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 0.95),
    ),
    "fairness_error": Own(
        "vfc_kmeans_accelerated",
        "lam",
        (0, 300, *range(1_000, 11_000, 1_000), 15_000, 20_000, 30_000, 50_000, 100_000, 300_000, 1_000_000),
    ),
}


class Data(NamedTuple):
    name: str
    X: np.ndarray
    groups: np.ndarray
    n_clusters: int

    @property
    def balance(self) -> float:
        return data_balance(np.bincount(self.groups)[:, None])


class Points:
    """All points so far, as rows of a table, which is also kept in the file `path` unless that is None."""

    def __init__(self, config: Config, starts: int, path: Path | None) -> None:
        self.config, self.starts, self.path = config, starts, path
        known = path is not None and path.exists()
        self.rows: list[dict[str, Any]] = pd.read_csv(path).to_dict("records") if known else []
        self.seen = {(r["dataset"], r["method"], r["params"], r["start"]) for r in self.rows}

    def fit(self, data: Data, method: str, params: dict[str, Any]) -> None:
        """Add a point for each start that is not in the table yet."""
        spec = self.config.methods[method]
        module, name = spec.class_.rsplit(".", 1)
        cls = getattr(importlib.import_module(module), name)
        text = json.dumps(params)
        if "n_init" in cls().get_params():
            params = {**params, "n_init": 1}
        for start in range(self.starts):
            if (data.name, method, text, start) in self.seen:
                continue
            seed = derive_random_state(data.name, data.n_clusters, start)
            model = cls(data.n_clusters, random_state=seed, **params)
            begin = process_time()
            model.fit(data.X, sensitive_features=data.groups)
            seconds = process_time() - begin
            table = contingency(model.labels_, data.groups, data.n_clusters)
            row = {"dataset": data.name, "method": method, "params": text, "start": start}
            row |= {metric: METRICS[metric].function(table) for metric in CRITERIA}
            row |= {
                "sse": sse(data.X, model.labels_),
                "n_nonempty": n_nonempty(table),
                "cpu_seconds": seconds,
            }
            self.rows.append(row)
            self.seen.add((data.name, method, text, start))
        if self.path:
            with atomic_write(self.path) as file:
                file.write(pd.DataFrame(self.rows).to_csv(index=False).encode())

    def fit_grid(self, data: Data, method: str) -> None:
        """Fit the grid of the configuration or, for the solver of a criterion, its grid in `CRITERIA`."""
        spec = self.config.settings(method, data.name)
        fixed, grid = spec.params, spec.grid
        for own in CRITERIA.values():
            if own.method == method:
                scale = data.balance if own.parameter == "min_balance" else 1
                grid = {own.parameter: [scale * value for value in own.grid]}
        begin = process_time()
        try:
            for values in itertools.product(*grid.values()):
                self.fit(data, method, {**fixed, **dict(zip(grid, values, strict=True))})
        except NotSupported as error:
            print(f"{data.name}, {method}: {error}")
            return
        print(f"{data.name}, {method}: {process_time() - begin:.0f} s", flush=True)

    def frame(self, dataset: str) -> pd.DataFrame:
        rows = pd.DataFrame(self.rows)
        return rows[rows.dataset == dataset].reset_index(drop=True)


def front(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the points of the criterion's solver that none of its other points dominates, by ascending cost."""
    own = points[points.method == CRITERIA[metric].method]
    higher = METRICS[metric].direction == "higher"
    on = pareto(own.sse.to_numpy(), own[metric].to_numpy(), higher)
    return own[on].sort_values(["sse", metric])


def compare(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Compare each point of the papers' methods with the front.

    Returns
    -------
    DataFrame
        The points with two more columns: `held`, and `percent`, by how many per cent of the front's cost at the same
        fairness the point costs more. `percent` is NaN if no point of the front is as fair.
    """
    least = front(points, metric)
    sign = 1 if METRICS[metric].direction == "higher" else -1
    cost, gain = least.sse.to_numpy(), sign * least[metric].to_numpy()
    rivals = points[points.method.isin(RIVALS)]
    theirs, wanted = rivals.sse.to_numpy()[:, None], sign * rivals[metric].to_numpy()[:, None]
    held = ((cost <= theirs * (1 + COST_TOL)) & (gain >= wanted - FAIR_TOL)).any(axis=1)
    # A point that is fairer than the front by less than the tolerance counts as fair as its fairest point.
    wanted = np.where(wanted <= gain.max() + FAIR_TOL, np.minimum(wanted, gain.max()), np.nan)
    at = np.interp(wanted[:, 0] - FAIR_TOL, gain, cost)
    return rivals.assign(held=held, percent=100 * (rivals.sse / at - 1))


def next_setting(points: pd.DataFrame, metric: str, value: float, data: Data) -> dict[str, Any]:
    """Return a parameter of the criterion's solver that gives the fairness `value`, or a weight that comes closer."""
    parameter = CRITERIA[metric].parameter
    if parameter == "lam":
        own = points[points.method == CRITERIA[metric].method]
        lams = np.array([json.loads(text)["lam"] for text in own.params])
        energy = own.sse + lams * own[metric]
        best = own.assign(lam=lams, energy=energy).sort_values("energy").drop_duplicates("lam")
        below = best.lam[best[metric] > value].max()
        above = best.lam[best.lam > below].min()
        middle = np.sqrt(np.maximum(below, 1) * above)
        return {"lam": float(f"{middle:.3g}")} if np.isfinite(middle) else {}
    most = {"tolerance": 1 - value, "min_balance": min(value, data.balance), "max_gap": value}[parameter]
    return {parameter: most}


def match(found: Points, data: Data, metric: str, rounds: int) -> None:
    """Fit the criterion's solver at the fairness of each point that is not held, the worst point first."""
    tried: dict[int, int] = {}
    most = rounds if CRITERIA[metric].parameter == "lam" else 1
    while True:
        points = found.frame(data.name)
        compared = compare(points, metric)
        left = compared[~compared.held & (compared.index.map(lambda i: tried.get(i, 0)) < most)]
        if left.empty:
            return
        worst = left.percent.fillna(-np.inf).idxmin()
        tried[worst] = tried.get(worst, 0) + 1
        setting = next_setting(points, metric, float(left.loc[worst, metric]), data)
        if setting:
            found.fit(data, CRITERIA[metric].method, setting)


def report(compared: dict[tuple[str, str], pd.DataFrame]) -> pd.DataFrame:
    """Return the numbers of points and of points not held, and the least distance, by data set, metric and method."""
    rows = []
    for (dataset, metric), points in compared.items():
        for method, of in points.groupby("method", sort=False):
            row = {"dataset": dataset, "metric": metric, "method": method, "points": len(of)}
            row |= {"least_percent": of.percent.min(), "beyond": int(of.percent.isna().sum())}
            rows.append(row | {"not_held": int((~of.held).sum())})
    return pd.DataFrame(rows)


def draw(found: Points, datasets: list[str], path: Path) -> None:
    """Draw a row of panels for each data set, with a panel for each metric."""
    import matplotlib.pyplot as plt

    size = (4.2 * len(CRITERIA), 3.4 * len(datasets))
    figure, panels = plt.subplots(
        len(datasets), len(CRITERIA), figsize=size, squeeze=False, layout="constrained"
    )
    for row, dataset in zip(panels, datasets, strict=True):
        points = found.frame(dataset)
        for axes, metric in zip(row, CRITERIA, strict=True):
            least = front(points, metric)
            axes.plot(least.sse, least[metric], color="black", linewidth=1.2, label="its criterion")
            for i, method in enumerate(RIVALS):
                of = points[points.method == method]
                if len(of):
                    label = found.config.methods[method].label
                    colour, mark = in_matplotlib(numbered_look(i))
                    axes.plot(of.sse, of[metric], mark, color=colour, markersize=3, alpha=0.6, label=label)
            low, high = least.sse.min(), least.sse.max()
            axes.set_xlim(low - 0.05 * (high - low), high + 0.6 * (high - low))
            axes.set_xlabel("cost")
            axes.set_ylabel(METRICS[metric].label)
            axes.set_title(found.config.datasets[dataset].title)
            if metric == "fairness_error":
                axes.set_yscale("symlog", linthresh=1e-4)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    config = user_config([])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirror", required=True, help="folder with the papers' data")
    parser.add_argument("--datasets", nargs="*", default=list(DATASETS), choices=list(config.datasets))
    parser.add_argument(
        "--methods",
        nargs="*",
        default=RIVALS[:-1],
        choices=RIVALS,
        help="methods of the papers; default: all but fmc_gd, which takes long",
    )
    parser.add_argument("--metrics", nargs="*", default=list(CRITERIA), choices=list(CRITERIA))
    parser.add_argument("--starts", type=int, default=10, help="starts of every setting of every method")
    parser.add_argument(
        "--match", type=int, default=4, help="largest number of weights tried for each point that is not held"
    )
    parser.add_argument("--out", type=Path, help="folder for points.csv, fronts.csv and fronts.png")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    numba.set_num_threads(1)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    found = Points(config, args.starts, args.out / "points.csv" if args.out else None)
    compared = {}
    with threadpool_limits(1):
        for name in args.datasets:
            data = Data(name, *paper_data(name, args.mirror))
            for method in [*(CRITERIA[metric].method for metric in args.metrics), *args.methods]:
                found.fit_grid(data, method)
            for metric in args.metrics:
                if args.match:
                    match(found, data, metric, args.match)
                compared[name, metric] = compare(found.frame(name), metric)
    table = report(compared)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))
    for (name, metric), points in compared.items():
        for _, point in points[~points.held].sort_values("percent").iterrows():
            what = f"{point.sse:,.1f} at {metric} {point[metric]:.4f}, {point.percent:+.2f} %"
            print(f"not held: {name}, {point.method} {point.params} start {point.start}: {what}")
    if args.out:
        table.to_csv(args.out / "fronts.csv", index=False)
        draw(found, args.datasets, args.out / "fronts.png")


if __name__ == "__main__":
    main()
