"""Fail if a source of the run could not be downloaded. A run goes on without it, but this target does not."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.data import require_sources

    require_sources(map(Path, snakemake.input))
