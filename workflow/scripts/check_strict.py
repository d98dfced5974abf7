"""Fail if any cell is not ok."""

from fairclust.bench.jobs import job

with job(snakemake):
    from fairclust.bench.summary import require_complete

    require_complete(snakemake.input[0])
