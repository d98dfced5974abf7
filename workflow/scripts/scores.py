"""Join the rows of all fits into the tables of scores and of costs, with a summary and the provenance."""

import json
from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.outputs import write_text
    from fairclust.pipeline.provenance import provenance
    from fairclust.pipeline.scores import gather_scores

    scores, _, runs, _ = (Path(path).with_suffix("") for path in snakemake.output[:4])
    summary = gather_scores(snakemake.input, scores, runs)
    write_text(Path(snakemake.output.summary), json.dumps(summary, indent=2))
    origin = {**provenance(), "config": snakemake.params.settings}
    write_text(Path(snakemake.output.provenance), json.dumps(origin, indent=2, default=str))
