"""Build the neighbour graph of a data set; writes a folder with the graph and its description."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.prepare_jobs:graph")
