"""Make the tables from the scores; writes CSV, Markdown and LaTeX."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.report.catalogue import Names
    from fairclust.report.tables import make_tables

    report = snakemake.params.report
    make_tables(
        report["tables"],
        Path(snakemake.input[0]),
        Path(snakemake.output[0]).parent,
        Names(**report["names"]),
    )
