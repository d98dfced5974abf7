"""Draw a figure; writes it in every configured format."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.report.jobs:figure")
