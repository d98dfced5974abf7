"""The jobs of the rules for tables, figures and the page: each reads its inputs, rebuilds the models and calls one
function."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from fairclust.outputs import atomic_write
from fairclust.pipeline.blocks import blocks_of
from fairclust.pipeline.cell_store import DamagedFile
from fairclust.pipeline.config import load_config
from fairclust.pipeline.models import canonical_json
from fairclust.pipeline.papers import ClaimSpec, FigureSpec, MatchSpec, TableSpec
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.pipeline.scores import cells_at, load_cells, load_scores, load_steps, read_table
from fairclust.pipeline.script import Job
from fairclust.report.names import Names
from fairclust.report.render import escape_latex, escape_markdown


def _reported(job: Job) -> pd.DataFrame | None:
    return next((load_reported(path) for path in job.input.get("reported", [])), None)


def _programs(job: Job, kinds: Mapping[str, str]) -> pd.DataFrame | None:
    return next((load_programs(path, kinds) for path in job.input.get("reported", [])[1:]), None)


def _stem(path: str) -> Path:
    return Path(path).with_suffix("")


def paper(job: Job) -> None:
    """Make the tables, figures and claims of a paper, and write the problems of those that cannot be made."""
    from fairclust.report.claims import make_claims
    from fairclust.report.figures import make_figure
    from fairclust.report.tables import make_table

    given, paper = job.params["products"], job.params["paper"]
    config = load_config(job.config)
    own = {
        (*block.at, canonical_json(cell.params), cell.seed)
        for block in blocks_of(config, given["cells_of"])
        for cell in block.cells()
    }
    cells = load_cells(job.input["packs"], given["needs"])
    columns = (cells.dataset, cells.method, cells.n_clusters, cells.params, cells.seed)
    cells = cells[[at in own for at in zip(*columns, strict=True)]]
    steps = load_steps(job.input["packs"], given["needs"])
    reported, programs, names = _reported(job), _programs(job, given["programs"]), Names(**given["names"])
    specs = {name: TableSpec.model_validate(table) for name, table in given["all_tables"].items()}
    problems = _Problems(job.log)
    results = Path(job.output[0]).parents[2]

    for name, table in given["tables"].items():
        stem = results / "tables" / paper / name
        with problems.of(f"table {name}", [stem.with_name(f"{name}.{kind}") for kind in _OF_TABLE]):
            if reported is None:
                raise ValueError("a table needs reported values; add the key `reported` to the paper's file")
            mine = cells_at(cells, table["needs"])
            make_table(paper, given["short_name"], specs[name], reported, mine, names, stem, programs)
    if given["claims"]:
        stem = results / "tables" / paper / "claims"
        with problems.of("the claims", [stem.with_name(f"claims.{kind}") for kind in ("csv", "md", "tex")]):
            make_claims(
                paper,
                given["short_name"],
                {name: ClaimSpec.model_validate(claim) for name, claim in given["claims"].items()},
                specs,
                pd.DataFrame() if reported is None else reported,
                cells_at(cells, given["claims_need"]),
                steps,
                names,
                stem,
                programs,
            )
    planes = {Path(folder).name: Path(folder) for folder in job.input.get("planes", [])}
    for name, figure in given["figures"].items():
        stem = results / "figures" / paper / name
        with problems.of(f"figure {name}", [Path(f"{stem}.{kind}") for kind in given["formats"]]):
            make_figure(
                FigureSpec.model_validate(figure["spec"]),
                None if figure["match"] is None else MatchSpec.model_validate(figure["match"]),
                reported,
                cells_at(cells, figure["needs"]),
                steps,
                planes,
                names,
                stem,
                given["formats"],
            )
    with atomic_write(Path(job.output[-1])) as file:
        file.write(json.dumps(problems.found).encode())


_OF_TABLE = ("csv", "md", "tex", "verdicts.csv")


class _Problems:
    """What could not be made, and why. Its files then say so, and the other products are made."""

    def __init__(self, log: str) -> None:
        self.found: list[str] = []
        self._log = log

    @contextmanager
    def of(self, what: str, files: Sequence[Path]) -> Iterator[None]:
        try:
            yield
        except DamagedFile:
            raise
        except Exception as error:
            traceback.print_exc()
            line = f"{what} could not be made: {type(error).__name__}: {error} (full trace: {self._log})"
            self.found.append(line)
            for path in files:
                self._say(path, line)

    def _say(self, path: Path, line: str) -> None:
        from fairclust.report.claims import CLAIM_COLUMNS
        from fairclust.report.verdicts import VERDICT_COLUMNS

        if path.suffix[1:] in ("png", "pdf", "svg"):
            from fairclust.report.figures.drawing import Sheet

            sheet = Sheet(path.stem, 1)
            sheet.say(sheet.add(path.stem), line)
            sheet.save(path.with_suffix(""), [path.suffix[1:]])
            return
        columns = VERDICT_COLUMNS if path.name.endswith(".verdicts.csv") else CLAIM_COLUMNS
        text = {".csv": ",".join(columns), ".md": escape_markdown(line), ".tex": f"% {escape_latex(line)}"}
        with atomic_write(path) as file:
            file.write(f"{text[path.suffix]}\n".encode())


def board(job: Job) -> None:
    """Write the overview, the leaderboard and the scoreboard, which has the verdicts of all papers."""
    from fairclust.report.leaderboard import make_leaderboard
    from fairclust.report.scoreboard import make_scoreboard
    from fairclust.report.tables import make_overview

    names, papers = Names(**job.params["names"]), job.params["papers"]
    scores = load_scores(Path(job.input["scores"][0]))
    make_leaderboard(scores, names, Path(job.output[-1]))
    stems = {Path(path).stem: _stem(path) for path in job.output[:-1]}
    if "overview" in stems:
        make_overview(scores, job.params["level"], names, stems["overview"])
    if "scoreboard" in stems:
        of_paper: dict[str, list[Path]] = {paper: [] for paper in papers}
        for path in map(Path, job.input["verdicts"]):
            of_paper[path.parent.name].append(path)
        make_scoreboard(
            of_paper,
            {path.parent.name: path for path in map(Path, job.input.get("claims", []))},
            {paper: spec["short_name"] for paper, spec in papers.items()},
            names,
            stems["scoreboard"],
        )


def page(job: Job) -> None:
    """Write the page for readers and its archive."""
    from fairclust.report.html import write_page

    given = job.params["page"]
    tables: dict[str, list[Path]] = {}
    for path in map(Path, job.input.get("tables", [])):
        tables.setdefault(path.parent.name if path.parent.name in given["papers"] else "", []).append(path)
    scores = Path(job.input["scores"][0])
    write_page(
        load_scores(scores),
        read_table(scores.with_name("runs.parquet")),
        json.loads(Path(job.input["origin"][0]).read_text()),
        given["papers"],
        next(map(Path, job.input.get("scoreboard", [])), None),
        tables,
        list(map(Path, job.input.get("figures", []))),
        Names(**given["names"]),
        Path(job.output[0]),
        Path(job.output[1]),
    )
