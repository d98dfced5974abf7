"""Fetch one source; writes a folder with the file and a record of it, or of why it is not to be had."""

from fairclust.bench.jobs import job

with job(snakemake):
    from fairclust.bench.data import obtain_source

    obtain_source(
        snakemake.wildcards.source,
        snakemake.params.spec,
        snakemake.output[0],
        snakemake.params.asked,
    )
