"""The jobs of the rules for tables, figures and the page: each loads the configuration, reads its inputs and
calls one function."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd

from fairclust.outputs import atomic_write, write_text
from fairclust.pipeline.blocks import blocks_of
from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.job import Job
from fairclust.pipeline.papers import canonical_json
from fairclust.pipeline.reported import NO_VALUES, load_programs, load_reported
from fairclust.pipeline.rule_inputs import TABLE_FORMATS, inputs_of
from fairclust.pipeline.scores import load_cells, load_scores, read_table
from fairclust.report.material import Material
from fairclust.report.render import escape_latex, escape_markdown


def paper(job: Job) -> None:
    """Make the tables, figures and claims of a paper, and write the problems of those that cannot be made."""
    from fairclust.report.claims import make_claims
    from fairclust.report.figures import make_figure
    from fairclust.report.tables import make_table

    inputs, paper = inputs_of(job), str(job.params["paper"])
    config, spec = inputs.config, inputs.specs[paper]
    own = {
        (*block.at, canonical_json(cell.params), cell.seed)
        for block in blocks_of(config, inputs.sources_of(paper))
        for cell in block.cells()
    }
    needs = inputs.needs_of(paper)
    cells, steps = load_cells(job.input["packs"], needs)
    columns = (cells.dataset, cells.method, cells.n_clusters, cells.params, cells.seed)
    cells = cells[[at in own for at in zip(*columns, strict=True)]]
    files = job.input.get("reported", [])
    material = Material(
        tables=spec.tables,
        reported=load_reported(files[0]) if files else NO_VALUES,
        cells=cells,
        steps=steps,
        names=inputs.names,
        programs=load_programs(files[1], spec.programs) if files[1:] else pd.DataFrame(),
        planes={Path(folder).name: Path(folder) for folder in job.input.get("planes", [])},
        paper=paper,
        title=spec.short_name,
    )
    problems: list[str] = []
    making = partial(_making, problems, job.log)
    results = Path(job.output[0]).parents[2]
    tables, figures = results / "tables" / paper, results / "figures" / paper

    shown = inputs.shown[paper]
    for name, product in shown["tables"].items():
        with making(f"table {name}", tables / name, (*TABLE_FORMATS, "evidence.csv")):
            make_table(material.at(product.needs), material.tables[name], tables / name)
    if shown["claims"]:
        with making("the claims", tables / "claims", TABLE_FORMATS):
            make_claims(material.at(inputs.needs_of(paper, "claims")), spec.claims, tables / "claims")
    formats = config.report.formats
    for name, product in shown["figures"].items():
        with making(f"figure {name}", figures / name, formats):
            figure = spec.figures[name]
            make_figure(material.at(product.needs), figure, spec.match_of(figure), figures / name, formats)
    write_text(Path(job.output[-1]), json.dumps(problems))


@contextmanager
def _making(problems: list[str], log: str, what: str, stem: Path, endings: Sequence[str]) -> Iterator[None]:
    """If something cannot be made, its files and a line of `problems` say why, and the other products are made."""
    from fairclust.report.claims import CLAIM_COLUMNS
    from fairclust.report.drawing import Sheet
    from fairclust.report.tables import EVIDENCE_COLUMNS

    try:
        yield
    except DamagedFile:
        raise
    except Exception as error:
        traceback.print_exc()
        line = f"{what} could not be made: {type(error).__name__}: {error} (full trace: {log})"
        problems.append(line)
        texts = {"csv": ",".join(CLAIM_COLUMNS), "evidence.csv": ",".join(EVIDENCE_COLUMNS)}
        texts |= {"md": escape_markdown(line), "tex": f"% {escape_latex(line)}"}
        for ending in endings:
            if ending in texts:
                write_text(stem.with_name(f"{stem.name}.{ending}"), f"{texts[ending]}\n")
            else:
                sheet = Sheet(stem.name, 1)
                sheet.say(sheet.add(stem.name), line)
                sheet.save(stem, [ending])


def board(job: Job) -> None:
    """Write the settings and the leaderboard of the run, the overview, and the scoreboard with all verdicts."""
    from fairclust.report.html import Results
    from fairclust.report.tables import make_overview, make_scoreboard

    inputs = inputs_of(job)
    names, papers = inputs.names, inputs.papers_shown()
    scores = load_scores(Path(job.input["scores"][0]))
    results = Results.of(scores, names)
    leaderboard, settings = map(Path, job.output[-2:])
    with atomic_write(settings) as file:
        results.settings.to_parquet(file, index=False)
    write_text(leaderboard, results.leaderboard.to_csv(index=False))
    stems = {Path(path).stem: Path(path).with_suffix("") for path in job.output[:-2]}
    if "overview" in stems:
        make_overview(scores, inputs.config.report.fairness_error, names, stems["overview"])
    if "scoreboard" in stems:
        make_scoreboard(
            map(Path, job.input["verdicts"]),
            map(Path, job.input.get("claims", [])),
            {paper: spec.short_name for paper, spec in papers.items()},
            names,
            stems["scoreboard"],
        )


def page(job: Job) -> None:
    """Write the page for readers and its archive."""
    from fairclust.report.html import Results, write_page
    from fairclust.report.leaderboard import load_leaderboard

    inputs = inputs_of(job)
    scores, results = Path(job.input["scores"][0]), Path(job.output[0]).parents[1]
    settings = read_table(Path(job.input["settings"][0]))
    leaderboard = load_leaderboard(Path(job.input["leaderboard"][0]))
    files = [path for kind in ("scoreboard", "tables", "figures") for path in job.input.get(kind, [])]
    write_page(
        Results(load_scores(scores), settings, leaderboard, inputs.names),
        read_table(scores.with_name("runs.parquet")),
        json.loads(Path(job.input["origin"][0]).read_text()),
        inputs.papers_shown(),
        {path.relative_to(results).as_posix(): path for path in map(Path, files)},
        Path(job.output[0]),
        Path(job.output[1]),
    )
