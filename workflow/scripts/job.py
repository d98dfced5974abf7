"""Run the function that the rule names, in a process whose fits this one watches."""

from fairclust.pipeline.script import main

main(snakemake)
