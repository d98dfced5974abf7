"""Make a table of a paper as it is printed there, with its values beside ours, and the evidence behind every cell."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.papers import TableSpec
    from fairclust.report.material import load_material
    from fairclust.report.tables import make_table

    material = load_material(snakemake.wildcards.paper, snakemake.params.product, snakemake.input)
    spec = TableSpec.model_validate(snakemake.params.product["specs"][snakemake.wildcards.table])
    make_table(material, spec, Path(snakemake.output[0]).with_suffix(""))
