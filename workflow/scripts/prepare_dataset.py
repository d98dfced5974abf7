"""Prepare one data set; writes a folder with matrix, groups and card, or with a card that says why not."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.prepare_jobs:prepare")
