"""Prepare one data set; writes a folder with matrix, groups and card, or with a card that says why not."""

from fairclust.bench.jobs import job

with job(snakemake):
    from fairclust.bench.data import prepare_folder

    prepare_folder(
        snakemake.wildcards.dataset,
        snakemake.params.spec,
        list(snakemake.input.get("sources", [])),
        snakemake.output[0],
    )
