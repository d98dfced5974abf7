"""Fair spectral clustering against plain spectral clustering on the same graphs.

    python benchmarks/spectral_speed.py [--runs 3] [--largest 30000] [--dense 4000]

The graphs are drawn from the modified stochastic block model with five clusters and two groups. Times are CPU seconds
of whole fits on one thread, including the checks of the affinity and k-means. The methods are plain spectral clustering
(SC), s-FairSC, and FairSC's dense algorithm. The dense algorithm is run once for each number of nodes up to `--dense`,
because its time is cubic. SC and s-FairSC start from the same vector and have the same tolerance. The columns are the
seconds, the ratio of s-FairSC to SC, the seconds of s-FairSC for a million edges, the products with the affinity, and
the errors, all as medians over `--runs` graphs. The graphs of the second table have the same number of nodes and more
and more edges. Those of the third table grow in both, up to `--largest` nodes (30,000 nodes have 10^7 edges).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from time import process_time

import numpy as np
from threadpoolctl import threadpool_limits

from fairclust.datasets.generate import Generated
from fairclust.datasets.msbm import make_msbm
from fairclust.methods import FairSpectralClustering, SpectralClustering
from fairclust.metrics.quality import clustering_error

METHODS = {
    "SC": lambda: SpectralClustering(5, affinity="precomputed", random_state=0),
    "s-FairSC": lambda: FairSpectralClustering(5, affinity="precomputed", random_state=0),
    "FairSC": lambda: FairSpectralClustering(5, affinity="precomputed", solver="nullspace", random_state=0),
}


def measure(graphs: Iterable[Generated], dense: int) -> dict[str, tuple[float, float]]:
    """Return the median seconds and errors of each method."""
    found: dict[str, list[tuple[float, float]]] = {}
    for number, made in enumerate(graphs):
        for name, make in METHODS.items():
            if name == "FairSC" and (number or len(made.groups) > dense):
                continue
            begin = process_time()
            model = make().fit(made.W, sensitive_features=made.groups)
            seconds = process_time() - begin
            error = clustering_error(model.labels_, made.truth)
            found.setdefault(name, []).append((seconds, error))
    return {name: tuple(np.median(values, axis=0)) for name, values in found.items()}  # type: ignore[misc]


def row(label: str, n_edges: int, found: dict[str, tuple[float, float]]) -> str:
    plain, fair, dense = found["SC"], found["s-FairSC"], found.get("FairSC")
    return (
        f"| {label} | {n_edges:,} | {plain[0]:.3f} | {fair[0]:.3f} | {f'{dense[0]:.2f}' if dense else ''} "
        f"| {fair[0] / plain[0]:.2f} | {1e6 * fair[0] / n_edges:.3f} "
        f"| {plain[1]:.4f} | {fair[1]:.4f} | {f'{dense[1]:.4f}' if dense else ''} |"
    )


def table(title: str, cases: Iterable[tuple[str, list[Generated]]], dense: int) -> None:
    print(f"\n{title}\n")
    print(
        "| n | edges | SC s | s-FairSC s | FairSC s | ratio | s per 10^6 edges "
        "| SC error | s-FairSC error | FairSC error |"
    )
    print("|" + " --- |" * 10)
    for label, graphs in cases:
        n_edges = int(np.median([made.W.nnz // 2 for made in graphs if made.W is not None]))
        print(row(label, n_edges, measure(graphs, dense)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--largest", type=int, default=30_000)
    parser.add_argument("--dense", type=int, default=4_000)
    args = parser.parse_args()
    measure([make_msbm(500)], dense=500)
    sizes = [1000, 2000, 3000, 4000, 5000, 7000, 10_000]
    table(
        f"Errors and seconds, medians of {args.runs} graphs",
        ((f"{n:,}", [make_msbm(n, seed=seed) for seed in range(args.runs)]) for n in sizes),
        args.dense,
    )
    table(
        "10,000 nodes, more and more edges",
        (
            (
                f"10,000, density x {f:g}",
                [make_msbm(10_000, rates=tuple(f * r for r in (10.0, 7.0, 4.0, 1.0)))],
            )
            for f in (0.25, 0.5, 1.0, 2.0)
        ),
        0,
    )
    growth = [n for n in (10_000, 20_000, 30_000, 50_000) if n <= args.largest]
    table("Growth", ((f"{n:,}", [make_msbm(n)]) for n in growth), 0)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
