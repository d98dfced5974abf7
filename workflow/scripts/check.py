"""Set the exit status of the run."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.summary:check")
