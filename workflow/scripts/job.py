"""Run the function that the rule names, in a process whose fits this one watches."""

from fairclust.pipeline.job import main

main(snakemake)
