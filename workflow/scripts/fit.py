"""Fit and score the cells of a job that the store does not have yet; writes the records of all its cells."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.fit_block:fit")
