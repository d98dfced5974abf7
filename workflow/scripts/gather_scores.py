"""Join the scores; writes scores and runs (Parquet and CSV), the summary and the provenance."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.bench.gather import gather_scores
    from fairclust.bench.summary import write_summary

    scores, _, runs, _, steps, summary, origin = map(Path, snakemake.output)
    frame = gather_scores(map(Path, snakemake.input), scores.with_suffix(""), runs.with_suffix(""), steps)
    write_summary(frame, snakemake.params.settings, summary, origin)
