"""Test the claims of a paper on the fits of the run: Markdown and CSV."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.papers import ClaimSpec
    from fairclust.report.claims import make_claims
    from fairclust.report.material import load_material

    material = load_material(snakemake.wildcards.paper, snakemake.params.product, snakemake.input)
    specs = {name: ClaimSpec.model_validate(of) for name, of in snakemake.params.product["specs"].items()}
    make_claims(material, specs, Path(snakemake.output[0]).with_suffix(""))
