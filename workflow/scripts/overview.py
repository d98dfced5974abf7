"""Make the table of every method on every data set, at a fairness error that a user would ask for."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.names import Names
    from fairclust.pipeline.scores import load_scores
    from fairclust.report.tables import make_overview

    make_overview(
        load_scores(Path(snakemake.input[0])),
        snakemake.params.fairness_error,
        Names(**snakemake.params.names),
        Path(snakemake.output[0]).with_suffix(""),
    )
