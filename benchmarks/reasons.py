"""The numbers behind a row of a paper's table: the results of many starts of one method beside the reported values.

    python benchmarks/reasons.py fmc 3 adult kmeans --mirror DIR [--starts 30] [--set lam=4] [--drop sex]

The setting is the published one (a lambda of the CSV, or `settings` of the table), else every setting of the grid.
For each setting and quantity it prints the reported value, the quantiles of the starts, and the share of the starts
that end at most as high as reported. Below the metrics it prints the objective and other attributes of the estimator:
the likelihood, Delta of the responsibilities, the smallest distance between two components. The first lines state the
cost of a single cluster and the sum of the squared lengths of all rows. No clustering can cost more than these.
"""

from __future__ import annotations

import argparse
import itertools
import json

import numpy as np
import pandas as pd

from fairclust.metrics import METRICS, Scored, score_labels
from fairclust.pipeline.config import user_config
from fairclust.pipeline.fit_cell import fit_cell
from fairclust.pipeline.grids import Cell, derive_random_state
from fairclust.pipeline.reported import load_reported
from measuring import ROOT, prepared

STATED = ("objective", "nll", "soft_delta", "min_distance", "n_iter")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paper", help="name of the paper in config/papers")
    parser.add_argument("table", help="number of the table, as in the paper's CSV")
    parser.add_argument("dataset")
    parser.add_argument("method")
    parser.add_argument("--mirror", help="folder with the papers' data; generated data needs none")
    parser.add_argument("--starts", type=int, default=30)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="NAME=VALUE", help="parameters, as JSON values"
    )
    parser.add_argument("--drop", nargs="*", default=[], metavar="COLUMN", help="features to leave out")
    asked = parser.parse_args()

    config = user_config([])
    data = prepared(asked.dataset, asked.mirror)
    kept = [i for i, name in enumerate(data.card["columns"]) if name not in asked.drop]
    X = np.ascontiguousarray(data.X[:, kept])

    reported = load_reported(ROOT / "config" / "papers" / f"{asked.paper}.csv")
    row = reported.query("table == @asked.table and dataset == @asked.dataset and method == @asked.method")
    k = int(row.n_clusters.iloc[0]) if len(row) else int(data.card["n_clusters"])
    row = row[row.n_clusters == k]
    values = dict(zip(row.metric, row.value, strict=True))
    rows, n_groups = len(X), len(data.group_names)
    print(
        f"{asked.dataset}: {rows} rows, {n_groups} groups, K = {k}, {asked.starts} starts of {asked.method}"
    )
    print(
        f"one cluster costs {((X - X.mean(0)) ** 2).sum():,.2f}; squared lengths add up to {(X**2).sum():,.2f}"
    )

    grid = config.settings(asked.method, asked.dataset)
    axes = dict(grid.grid)
    tables = {table.number: table for table in config.papers[asked.paper].tables.values()}
    published = tables[asked.table].settings.get(asked.method, {})
    if len(row) and pd.notna(row.lam.iloc[0]):
        published = {"lam": float(row.lam.iloc[0])}
    given = {name: json.loads(text) for name, _, text in (item.partition("=") for item in asked.set)}
    axes.update({name: [value] for name, value in {**published, **given}.items()})
    for point in itertools.product(*axes.values()):
        params = {**grid.params, **dict(zip(axes, point, strict=True))}
        if asked.drop and "categorical_features" in params:
            params["categorical_features"] = [
                kept.index(i) for i in params["categorical_features"] if i in kept
            ]
        found = []
        for seed in range(asked.starts):
            cell = Cell(k, params, seed, derive_random_state(asked.dataset, k, seed))
            record, labels = fit_cell(X, data.groups, config.methods[asked.method].class_, cell)
            if labels is None:
                raise SystemExit(
                    f"seed {seed} has status {record['status']}: {record['reason']}. Fix: change parameters by --set"
                )
            names = [*(name for name in values if name in METRICS), "sse", "balance", "delta", "n_nonempty"]
            scores = score_labels(Scored(labels, data.groups, X, k, truth=data.truth), set(names))
            stated = {name: record["estimator"].get(f"{name}_") for name in STATED}
            ends = {"objective": record["history"][-1].get("objective")} if record["history"] else {}
            found.append({**scores, **{name: v for name, v in {**stated, **ends}.items() if v is not None}})
        print(
            f"\n{', '.join(f'{name} = {value}' for name, value in zip(axes, point, strict=True)) or 'no parameters'}"
        )
        print(describe(pd.DataFrame(found), values).to_string(na_rep="", float_format=lambda x: f"{x:,.4f}"))


def describe(found: pd.DataFrame, values: dict[str, float]) -> pd.DataFrame:
    """Quantiles of the starts by quantity, the reported value first."""
    table = found.quantile([0, 0.05, 0.5, 0.95, 1]).T.set_axis(
        ["least", "5 %", "median", "95 %", "most"], axis=1
    )
    table.insert(0, "reported", pd.Series(values, dtype=float))
    at_most = {name: (found[name] <= value).mean() for name, value in values.items() if name in found}
    table["at most as reported"] = pd.Series(at_most, dtype=float)
    return table.dropna(how="all", axis=1)


if __name__ == "__main__":
    main()
