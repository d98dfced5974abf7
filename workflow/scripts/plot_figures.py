"""Draw the figures from the scores; writes each in every configured format."""

from fairclust.bench.jobs import job

with job(snakemake):
    from pathlib import Path

    from fairclust.report.catalogue import Names
    from fairclust.report.figures import plot_figures

    report = snakemake.params.report
    plot_figures(
        report["figures"],
        Path(snakemake.input[0]),
        Path(snakemake.output[0]).parent,
        Names(**report["names"]),
        report["formats"],
        planes=list(map(Path, snakemake.input.get("planes", []))),
        stores=Path(snakemake.params.stores),
    )
