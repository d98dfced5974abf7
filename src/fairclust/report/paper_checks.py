"""What can be wrong with the files and the claims of a run's papers, found before any job starts.

The types of `pipeline.papers` check everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.messages import misspelt, nearest
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.config import Config, ConfigError
from fairclust.pipeline.fingerprint import class_parameters
from fairclust.pipeline.papers import ALL, PaperSpec
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.report.checks import claim_problems


def paper_problems(config: Config) -> list[str]:
    """A line for each problem: the file or the key, what was found, and the nearest valid name."""
    found: list[str] = []
    for name in config.run.papers:
        spec = config.papers[name]
        tables = [table.number for table in spec.tables.values()]
        claims = (line for key, claim in spec.claims.items() for line in claim_problems(key, claim, tables))
        found += [*_of_files(name, spec, config), *(f"papers.{name}.{line}" for line in claims)]
        others = config.papers if ALL in spec.cells_of else {name, *spec.cells_of}
        sweeps = {"", ALL, *(one.sweep for other in others for one in config.papers[other].experiments)}
        for part in ("figures", "claims"):
            for key, one in getattr(spec, part).items():
                if one.sweep not in sweeps:
                    meant = nearest(one.sweep, sweeps)
                    found.append(
                        f"papers.{name}.{part}.{key}.sweep: no experiment has {one.sweep!r}; {meant}"
                    )
    return list(dict.fromkeys(found))


def _of_files(paper: str, spec: PaperSpec, config: Config) -> Iterator[str]:
    """What is wrong with the values that the paper and its programs report."""
    files = spec.files
    if not files or not (spec.tables or Path(files[0]).exists()):
        return
    try:
        frames = [load_reported(files[0]), *(load_programs(file, spec.programs) for file in files[1:])]
    except ConfigError as error:
        yield from str(error).splitlines()
        return
    # Names that are nearly those of the catalogue. A paper may report others, too, whose rows are not run.
    catalogue: dict[str, dict[str, Any]] = {
        "dataset": config.datasets,
        "method": {**config.methods, "data": None},
    }
    for (file, frame), (column, known) in product(zip(files, frames, strict=True), catalogue.items()):
        for name, lines in frame.groupby(column, sort=False).groups.items():
            if name not in known and (meant := misspelt(str(name), known, 0.8)):
                yield f"{file}, line {lines[0] + 2}: there is no {column} {str(name)!r}; {meant}"
    yield from _of_tables(paper, spec, catalogue, frames[0])


def _of_tables(
    paper: str, spec: PaperSpec, catalogue: Mapping[str, Mapping[str, Any]], reported: pd.DataFrame
) -> Iterator[str]:
    """Tables without reported values, and names in their layouts that neither these nor the catalogues have."""
    for key, table in spec.tables.items():
        place, number = f"papers.{paper}.tables.{key}", table.number
        rows = reported[reported["table"] == number]
        if rows.empty:
            meant = nearest(number, reported["table"].unique())
            yield f"{place}.number: {spec.reported} has no table {number!r}; {meant}"
        for method, params in table.settings.items():
            taken = class_parameters(catalogue["method"][method].class_)
            for name in params:
                if taken is not None and name not in taken:
                    meant = nearest(name, sorted(taken))
                    yield f"{place}.settings.{method}: there is no parameter {name!r}; {meant}"
        picks = table.layout.picks()
        for column, others in {**catalogue, "metric": COLUMNS}.items():
            known = [*rows[column].unique(), *others]
            for names in (getattr(pick, column) for pick in picks):
                for name in [names] if isinstance(names, str) else names:
                    if name and name not in known:
                        yield f"{place}.layout: there is no {column} {name!r}; {nearest(name, known)}"
