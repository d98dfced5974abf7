"""Fetch one source; writes a record of the file, or of why it is not to be had."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.bench.data import obtain_source

    obtain_source(
        snakemake.wildcards.source,
        snakemake.params.spec,
        Path(snakemake.output[0]).parent,
        snakemake.params.asked,
        snakemake.output[0],
    )
