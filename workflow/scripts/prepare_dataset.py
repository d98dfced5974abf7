"""Prepare a data set: its features, standardised and of unit length as the catalogue says, its groups, and a card.

A data set that cannot be had becomes a folder that says why.
"""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.data import prepare

    params = snakemake.params
    scale = {} if params.scale is None else {"scale": params.scale}
    prepare(
        snakemake.wildcards.dataset,
        {**params.dataset, **scale},
        params.sources,
        map(Path, snakemake.input.get("sources", [])),
        Path(snakemake.output[0]),
    )
