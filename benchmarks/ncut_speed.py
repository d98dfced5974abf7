"""Fair normalised cut: quality and time of every start and solver, and cost against the number of points.

    python benchmarks/ncut_speed.py --mirror DIR [--mm-steps 2] [--rows 10000 100000] [--csv FILE]

The first part fits those data sets of Table 4 of the VFC paper that the mirror holds, and prints the paper's row
beside the fit: Ncut / fairness error / balance. It also prints the seconds of the descent and of the whole fit, which
includes the embeddings. `--mm-steps 2` adds two outer steps of the plain iteration. The second part builds graphs of
`census_like` (25 features, two groups, K = 20) and fits them. It compares filling the potentials with a program in
SciPy and NumPy on N x K matrices. No time includes compilation.
"""

from __future__ import annotations

import argparse
import resource
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from fairclust.kernels.assignment import Potentials
from fairclust.kernels.graph import AffinityGraph, build_knn_graph
from fairclust.kernels.tiles import make_layout
from fairclust.methods import VariationalFairNCut
from fairclust.metrics.counts import contingency
from fairclust.metrics.fairness import balance, fairness_error
from fairclust.metrics.quality import ncut
from fairclust.pipeline.reported import load_reported
from measuring import ROOT, drawn, paper_data, write_csv

CASES = (
    ("synthetic", (10.0,)),
    ("synthetic_unequal", (10.0,)),
    ("adult", (10.0, 2.0, 0.5)),
    ("bank_3", (40.0, 2.0)),
)
STARTS = ("k-means++", "best")


def fit(X: Any, groups: np.ndarray, n_clusters: int, **params: Any) -> tuple[VariationalFairNCut, float]:
    begin = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VariationalFairNCut(n_clusters, random_state=0, **params).fit(X, sensitive_features=groups)
    return model, perf_counter() - begin


def compile_kernels() -> None:
    rng = np.random.default_rng(0)
    for J in (2, 3):
        for reference in (False, True):
            fit(rng.normal(size=(600, 3)), np.arange(600) % J, 3, match_reference=reference)


def against_the_paper(mirror: str, mm_steps: int) -> list[dict[str, Any]]:
    reported = load_reported(ROOT / "config/papers/vfc.csv")
    reported = reported[(reported["table"].astype(str) == "4") & (reported["method"] == "vfc_ncut")]
    rows = []
    for name, lams in CASES:
        X, groups, n_clusters = paper_data(name, mirror)
        begin = perf_counter()
        W = build_knn_graph(X)
        seconds = perf_counter() - begin
        paper = reported[reported["dataset"] == name].set_index("metric")["value"]
        print(f"{name}: graph of {W.nnz // 2:,} edges, {seconds:.2f} s")
        told = " / ".join(str(paper[metric]) for metric in ("ncut", "fairness_error", "balance"))
        print(f"  paper, lam {lams[0]:g}: {told}")
        for lam in lams:
            settings = [{"init": init} for init in STARTS]
            if mm_steps:
                settings.append({"init": "k-means++", "match_reference": True, "max_iter": mm_steps})
            for params in settings:
                model, seconds = fit(X, groups, n_clusters, lam=lam, **params)
                table = contingency(model.labels_, groups)
                solver = "reference" if params.get("match_reference") else "newton"
                row = {
                    "dataset": name,
                    "lam": lam,
                    "solver": solver,
                    "init": params["init"],
                    "ncut": ncut(W, model.labels_),
                    "fairness_error": fairness_error(table),
                    "balance": balance(table),
                    "outer": model.n_iter_,
                    "passes": sum(step["inner_iter"] for step in model.history_),
                    "descent_seconds": sum(step["seconds"] for step in model.history_),
                    "seconds": seconds,
                }
                rows.append(row)
                print(
                    f"  lam {lam:g} {solver} {params['init']} ({model.start_}): "
                    f"{row['ncut']:.4f} / {row['fairness_error']:.4f} / {row['balance']:.3f}, "
                    f"{row['outer']} steps, {row['passes']} passes, "
                    f"{row['descent_seconds']:.2f} of {seconds:.2f} s",
                    flush=True,
                )
    return rows


def against_size(sizes: list[int]) -> list[dict[str, Any]]:
    rows = []
    for n_rows in sizes:
        X, groups = drawn(n_rows, dtype=np.float64)
        begin = perf_counter()
        W = build_knn_graph(X)
        graph_seconds = perf_counter() - begin
        graph = AffinityGraph.from_matrix(W)
        labels = np.random.default_rng(0).integers(20, size=n_rows).astype(np.int32)
        potentials = Potentials.empty(make_layout(groups, 2), 2, 20)
        graph.set_potentials(potentials, labels)
        begin = perf_counter()
        graph.set_potentials(potentials, labels)
        tiles = perf_counter() - begin

        begin = perf_counter()
        S = np.eye(20)[labels]
        link, volume = W @ S, graph.degrees @ S
        _ = graph.degrees[:, None] * ((S * link).sum(axis=0) / volume**2) - 2 * link / volume
        numpy = perf_counter() - begin

        model, seconds = fit(W, groups, 20, lam=100.0, affinity="precomputed")
        rows.append(
            {
                "rows": n_rows,
                "graph_seconds": graph_seconds,
                "potentials_seconds": tiles,
                "numpy_potentials_seconds": numpy,
                "descent_seconds": sum(step["seconds"] for step in model.history_),
                "fit_seconds": seconds,
                "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                "ncut": model.history_[-1]["clustering"],
                "balance": balance(contingency(model.labels_, groups)),
            }
        )
        print(
            ", ".join(f"{k} {v if isinstance(v, str) else f'{v:,.4g}'}" for k, v in rows[-1].items()),
            flush=True,
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mirror", help="folder with adult/ and bank/")
    parser.add_argument("--mm-steps", type=int, default=0)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 40_000])
    parser.add_argument(
        "--csv", help="write the measurements here, too: FILE and FILE with -size before its end"
    )
    args = parser.parse_args()
    compile_kernels()
    found = {"": against_the_paper(args.mirror, args.mm_steps) if args.mirror else []}
    found["-size"] = against_size(args.rows)
    for suffix, rows in found.items():
        if args.csv:
            path = Path(args.csv)
            write_csv(path.with_stem(path.stem + suffix), rows)


if __name__ == "__main__":
    main()
