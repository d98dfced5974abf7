"""Join the verdicts and claims of all papers; writes CSV, Markdown and LaTeX."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:scoreboard")
