"""Test the claims of a paper; writes CSV, Markdown and LaTeX."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:claims")
