"""Fit a method on a data set for every K, setting and seed of its grids, and score every clustering.

Output: a Parquet file with a row for each fit: its scores, times, history and labels. Finished fits are taken from the
cache in the results.
"""

from pathlib import Path

from fairclust.pipeline.script import BESIDE_THE_FIT_MB, end_of_last_attempt, job

with job(snakemake):
    from fairclust.pipeline.fits import Request, fit_grids

    resources, output = snakemake.resources, Path(snakemake.output[0])
    fit_grids(
        Request(
            dataset=snakemake.wildcards.dataset,
            **dict(snakemake.params.items()),
            cell_memory_mb=resources.mem_mb - BESIDE_THE_FIT_MB,
            threads=snakemake.threads,
        ),
        output,
        data=Path(snakemake.input.data),
        graph=Path(graph) if (graph := snakemake.input.get("graph")) else None,
        cache=output.parents[2] / "cache",
        given_up=end_of_last_attempt(Path(snakemake.log[0])) if resources.get("gives_up") else "",
    )
