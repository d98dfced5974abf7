"""Draw a figure of a paper, or the fronts of a data set, in the formats of the configuration."""

from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.papers import FigureSpec
    from fairclust.report.figures import make_figure
    from fairclust.report.material import load_material

    material = load_material(snakemake.wildcards.paper, snakemake.params.product, snakemake.input)
    spec = FigureSpec.model_validate(snakemake.params.product["specs"][snakemake.wildcards.figure])
    paths = list(map(Path, snakemake.output))
    make_figure(material, spec, paths[0].with_suffix(""), [path.suffix[1:] for path in paths])
