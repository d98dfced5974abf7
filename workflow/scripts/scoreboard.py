"""Join the verdicts and the claims of all papers into one table."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.names import Names
    from fairclust.report.tables import make_scoreboard

    make_scoreboard(
        map(Path, snakemake.input.evidence),
        map(Path, snakemake.input.get("claims", [])),
        snakemake.params.titles,
        Names(**snakemake.params.names),
        Path(snakemake.output[0]).with_suffix(""),
    )
