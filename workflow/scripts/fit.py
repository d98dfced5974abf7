"""Fit a method on a data set for every K, setting and seed of its grids, and score every clustering.

Output: a Parquet file with a row for each fit: its scores, times, history and labels. Finished fits are taken from the
cache in the results and from those of the folders in `reuse`.
"""

from pathlib import Path

from fairclust.pipeline.script import BESIDE_THE_FIT_MB, end_of_last_attempt, job

with job(snakemake):
    from fairclust.pipeline.fits import Request, fit_grids

    params, resources, output = dict(snakemake.params.items()), snakemake.resources, Path(snakemake.output[0])
    params["cell_memory_mb"] = params["cell_memory_mb"] or resources.mem_mb - BESIDE_THE_FIT_MB
    folders = [output.parents[2], *map(Path, params.pop("reuse"))]
    fit_grids(
        Request(dataset=snakemake.wildcards.dataset, **params, threads=snakemake.threads),
        output,
        data=Path(snakemake.input.data),
        graph=Path(graph) if (graph := snakemake.input.get("graph")) else None,
        caches=[folder / "cache" for folder in folders],
        given_up=end_of_last_attempt(Path(snakemake.log[0])) if resources.get("gives_up") else "",
    )
