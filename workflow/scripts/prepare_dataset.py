"""Prepare a data set: its features, standardised and of unit length as the catalogue says, its groups, and a card.

A data set that cannot be had becomes a folder that says why.
"""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.data import prepare

    params = snakemake.params
    stated = {key: params[key] for key in ("features", "sensitive", "scale") if params[key] is not None}
    prepare(
        snakemake.wildcards.dataset,
        {**params.other, **stated},
        params.sources,
        map(Path, snakemake.input.get("sources", [])),
        Path(snakemake.output[0]),
    )
