"""Fail if any source could not be downloaded."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.prepare_jobs:check_downloads")
