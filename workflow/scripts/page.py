"""Write the page for readers."""

import json
from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.outputs import write_text
    from fairclust.pipeline.names import Names
    from fairclust.pipeline.papers import PaperSpec
    from fairclust.pipeline.scores import load_scores
    from fairclust.report.html import make_page
    from fairclust.report.leaderboard import load_leaderboard

    read, page = snakemake.input, Path(snakemake.output[0])
    papers = {name: PaperSpec.model_validate(of) for name, of in snakemake.params.papers.items()}
    results = page.parents[1]
    text = make_page(
        load_scores(Path(read.scores)),
        load_leaderboard(Path(read.leaderboard)),
        Names(**snakemake.params.names),
        json.loads(Path(read.origin).read_text()),
        papers,
        {Path(path).relative_to(results).as_posix(): Path(path) for path in [*read.tables, *read.figures]},
    )
    write_text(page, text)
