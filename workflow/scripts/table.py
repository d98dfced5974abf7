"""Make a table of a paper; writes CSV, Markdown, LaTeX and the verdicts."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:table")
