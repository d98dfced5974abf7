"""Build the neighbour graph of a prepared data set."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.data import build_graph

    build_graph(
        Path(snakemake.input[0]),
        Path(snakemake.output[0]),
        n_neighbors=snakemake.params.n_neighbors,
    )
