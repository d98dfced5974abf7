"""Fetch a source into a folder, with a record that says whether it was obtained, and if not, why."""

import os
from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.data import download

    download(
        snakemake.wildcards.source,
        snakemake.params.source,
        Path(snakemake.output[0]),
        snakemake.config["mirror"],
        stated=snakemake.params.mirrors,
        # A cache that several workflows share must not keep that a source could not be obtained.
        must="SNAKEMAKE_OUTPUT_CACHE" in os.environ,
    )
