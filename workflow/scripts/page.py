"""Write the page for readers and the archive of it."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:page")
