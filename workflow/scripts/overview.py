"""Make the table of every method on every data set; writes CSV, Markdown and LaTeX."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:overview")
