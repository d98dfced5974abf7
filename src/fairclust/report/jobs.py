"""The jobs of the rules for tables, figures and the page: each reads its inputs, rebuilds the models and calls one
function."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.pipeline.papers import ClaimSpec, FigureSpec, MatchSpec, TableSpec
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.pipeline.scores import load_cells, load_scores, load_steps, read_table
from fairclust.pipeline.script import Job
from fairclust.report.names import Names


def _reported(job: Job) -> pd.DataFrame | None:
    return next((load_reported(path) for path in job.input.get("reported", [])), None)


def _programs(job: Job, kinds: Mapping[str, str]) -> pd.DataFrame | None:
    return next((load_programs(path, kinds) for path in job.input.get("reported", [])[1:]), None)


def _stem(path: str) -> Path:
    return Path(path).with_suffix("")


def table(job: Job) -> None:
    """Write a table of a paper."""
    from fairclust.report.tables import make_table

    given, reported = job.params["table"], _reported(job)
    if reported is None:
        raise ValueError("a table needs reported values; add the key `reported` to the paper's file")
    make_table(
        job.wildcards["paper"],
        given["short_name"],
        TableSpec.model_validate(given["spec"]),
        reported,
        load_cells(job.input["packs"], given["needs"]),
        Names(**given["names"]),
        _stem(job.output[0]),
        _programs(job, given["programs"]),
    )


def claims(job: Job) -> None:
    """Check the claims of a paper and write their table."""
    from fairclust.report.claims import make_claims

    given, reported = job.params["claims"], _reported(job)
    make_claims(
        job.wildcards["paper"],
        given["short_name"],
        {name: ClaimSpec.model_validate(claim) for name, claim in given["claims"].items()},
        {name: TableSpec.model_validate(table) for name, table in given["tables"].items()},
        pd.DataFrame() if reported is None else reported,
        load_cells(job.input["packs"], given["needs"]),
        load_steps(job.input["packs"], given["needs"]),
        Names(**given["names"]),
        _stem(job.output[0]),
        _programs(job, given["programs"]),
    )


def figure(job: Job) -> None:
    """Draw a figure of a paper, or the fronts of a data set."""
    from fairclust.report.figures import make_figure

    given = job.params["figure"]
    make_figure(
        FigureSpec.model_validate(given["spec"]),
        None if given["match"] is None else MatchSpec.model_validate(given["match"]),
        _reported(job),
        load_cells(job.input["packs"], given["needs"]),
        load_steps(job.input["packs"], given["needs"]),
        {Path(folder).name: Path(folder) for folder in job.input.get("planes", [])},
        Names(**given["names"]),
        _stem(job.output[0]),
        [Path(path).suffix[1:] for path in job.output],
    )


def overview(job: Job) -> None:
    """Write the table of every method on every data set."""
    from fairclust.report.tables import make_overview

    names = Names(**job.params["names"])
    make_overview(load_scores(Path(job.input[""][0])), job.params["level"], names, _stem(job.output[0]))


def leaderboard(job: Job) -> None:
    """Write the leaderboard."""
    from fairclust.report.leaderboard import make_leaderboard

    names = Names(**job.params["names"])
    make_leaderboard(load_scores(Path(job.input[""][0])), names, Path(job.output[0]))


def scoreboard(job: Job) -> None:
    """Write the scoreboard, the verdicts of all papers."""
    from fairclust.report.scoreboard import make_scoreboard

    papers: dict[str, Any] = job.params["papers"]
    make_scoreboard(
        {paper: list(map(Path, job.input.get(f"verdicts_{paper}", []))) for paper in papers},
        {paper: Path(path) for paper in papers for path in job.input.get(f"claims_{paper}", [])},
        {paper: spec["short_name"] for paper, spec in papers.items()},
        Names(**job.params["names"]),
        _stem(job.output[0]),
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
