"""Make the overview, the leaderboard and the scoreboard."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:board")
