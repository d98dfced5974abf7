"""Write the page for readers and the archive of it, from the tidy scores."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.report.catalogue import Names
    from fairclust.report.html import write_page

    write_page(
        Path(snakemake.input.scores),
        Path(snakemake.input.runs),
        Path(snakemake.input.origin),
        map(Path, snakemake.input.tables),
        Names(**snakemake.params.page["names"]),
        Path(snakemake.output.page),
        Path(snakemake.output.archive),
    )
