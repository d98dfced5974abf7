"""Join all cells; writes scores and runs (Parquet and CSV), the summary and the provenance."""

from fairclust.pipeline.script import main

main(snakemake, "fairclust.pipeline.scores:scores")
