"""Build the neighbour graph of a data set; writes a folder with the graph and what is known of it."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.bench.data import graph_folder

    options = {key: value for key, value in snakemake.params.graph.items() if key != "code"}
    graph_folder(Path(snakemake.input[0]), Path(snakemake.output[0]), **options)
