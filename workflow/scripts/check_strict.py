"""Fail if any cell is not ok."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.score_jobs:check_strict")
