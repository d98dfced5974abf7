"""Rank the methods; writes a CSV."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:leaderboard")
