"""Fit and score the cells of one block that are in no file yet; writes the file of the block's cells."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.fit_block:fit")
