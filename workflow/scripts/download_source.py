"""Fetch one source; writes a folder with the file and a record of it, or of why it could not be fetched."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.prepare_jobs:download")
