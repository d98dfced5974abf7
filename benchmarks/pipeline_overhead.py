"""Time that the pipeline adds to its fits, read from a finished results folder.

    python benchmarks/pipeline_overhead.py --results results

The seconds of the fit jobs come from Snakemake's `benchmark:` files. Fits and scoring are timed one by one. The
overhead is the time of the jobs minus that of the fits, for a run that took no fits from the cache. The last lines show
the seconds of scoring and of the fits for each method, because a metric that no table shows should not cost more than
the fit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from fairclust.pipeline.scores import read_arrow
from measuring import write_csv


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--csv", type=Path, help="write the table here")
    args = parser.parse_args()
    runs = read_arrow(args.results / "scores" / "runs.parquet").to_pandas()
    files = sorted((args.results / "benchmarks").rglob("*.tsv"))
    jobs = {f"{file.parent.name}/{file.stem}": float(pd.read_csv(file, sep="\t").s.sum()) for file in files}
    fits, scoring = float(runs.wall_seconds.sum()), float(runs.score_seconds.sum())
    rows = [{"job": job, "seconds": round(value, 1)} for job, value in jobs.items()]
    total = sum(jobs.values())
    print(f"\nfits {fits:,.1f} s, scoring {scoring:,.1f} s ({100 * scoring / fits:.0f} % of the fits)")
    print(f"all jobs {total:,.1f} s: {100 * (total / fits - 1):.0f} % over the fits")
    dear = runs.groupby(["dataset", "method"])[["wall_seconds", "score_seconds"]].sum()
    dear = dear[dear.score_seconds > dear.wall_seconds].sort_values("score_seconds", ascending=False)
    print(
        f"\nscored longer than fitted: {len(dear)} of {runs.groupby(['dataset', 'method']).ngroups}; the longest:"
    )
    for (dataset, method), row in dear.head(8).iterrows():
        print(f"  {dataset}, {method}: fits {row.wall_seconds:.1f} s, scoring {row.score_seconds:.1f} s")
    if args.csv:
        write_csv(args.csv, rows)


if __name__ == "__main__":
    main()
