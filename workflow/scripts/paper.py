"""Make the tables, figures and claims of a paper."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:paper")
