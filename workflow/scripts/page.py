"""Write the page for readers, and an archive of it with tables, figures and scores."""

import json
from pathlib import Path

from fairclust.pipeline.script import job

with job(snakemake):
    from fairclust.pipeline.names import Names
    from fairclust.pipeline.papers import PaperSpec
    from fairclust.pipeline.scores import load_scores, read_arrow
    from fairclust.report.html import Results, write_page
    from fairclust.report.leaderboard import load_leaderboard

    read = snakemake.input
    board = load_leaderboard(Path(read.leaderboard))
    names = Names(**snakemake.params.names)
    results = Results(
        load_scores(Path(read.scores)), read_arrow(Path(read.settings)).to_pandas(), board, names
    )
    origin = json.loads(Path(read.origin).read_text())
    papers = {name: PaperSpec.model_validate(of) for name, of in snakemake.params.papers.items()}
    page, archive = map(Path, snakemake.output)
    shown = {
        path.relative_to(archive.parent).as_posix(): path for path in map(Path, [*read.tables, *read.figures])
    }
    write_page(results, read_arrow(Path(read.runs)).to_pandas(), origin, papers, shown, page, archive)
