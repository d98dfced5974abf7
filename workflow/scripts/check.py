"""Say what the run has made, and fail if fits were lost with their jobs or, with `strict`, if any fit is not ok."""

import json
from pathlib import Path

from fairclust.pipeline.script import job
from fairclust.pipeline.summary import describe, require_complete

results = Path(snakemake.output[0]).parent
with job(snakemake):
    summary = json.loads(Path(snakemake.input.summary).read_text())
    require_complete(summary, strict=snakemake.params.strict)
lines = [*describe(summary), f"results: {results}/tables, {results}/figures, {results}/scores/scores.csv"]
page = results / "report/index.html"
print("\n".join([*lines, f"report:  {page}" * page.is_file()]).rstrip(), flush=True)
