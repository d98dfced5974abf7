"""Time that the pipeline adds to its fits, read from a finished results folder.

    python benchmarks/pipeline_overhead.py --results results

The seconds of each rule's jobs come from Snakemake's own `benchmark:` files. Fits and scoring are timed cell by cell.
The overhead is the time of the jobs minus that of the fits. The last lines show the seconds of scoring and of the fits
for each method, because a metric that no table shows should not cost more than the fit.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fairclust.pipeline.run_events import job_seconds
from fairclust.pipeline.scores import read_table
from measuring import write_csv


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--csv", type=Path, help="write the table here")
    args = parser.parse_args()
    runs = read_table(args.results / "scores" / "runs.parquet")
    jobs = job_seconds(args.results)
    fits, scoring = float(runs.wall_seconds.sum()), float(runs.score_seconds.sum())
    rows = [{"rule": rule, "job seconds": round(value, 1)} for rule, value in jobs.items()]
    print(f"{'rule':<14} {'seconds of jobs':>16}")
    for row in sorted(rows, key=lambda row: -float(row["job seconds"])):
        print(f"{row['rule']:<14} {row['job seconds']:>16,.1f}")
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
