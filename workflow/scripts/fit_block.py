"""Fit and score the unfinished cells of one block; writes the block's index, one JSON line per cell."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.bench.runner import run_block

    run_block(
        snakemake.params.block,
        Path(snakemake.input.data),
        Path(snakemake.params.store),
        Path(snakemake.output[0]),
        threads=snakemake.threads,
        score_settings=snakemake.params.score_settings,
        scorer=snakemake.params.scorer,
        graph_folder=next(map(Path, snakemake.input.get("graph", [])), None),
    )
