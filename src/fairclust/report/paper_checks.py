"""What can be wrong with the files and the claims of a run's papers, found before any job starts.

The types of `pipeline.papers` check everything else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from fairclust.messages import misspelt
from fairclust.pipeline.config import Config, ConfigError
from fairclust.pipeline.papers import PaperSpec
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.report.checks import claim_problems


def paper_problems(config: Config) -> list[str]:
    """A line for each problem: the file or the key, what was found, and the nearest valid name."""
    found: list[str] = []
    for name in config.run.papers:
        spec = config.papers[name]
        tables = [table.number for table in spec.tables.values()]
        claims = (line for key, claim in spec.claims.items() for line in claim_problems(key, claim, tables))
        found += [*_of_files(spec, config), *(f"papers.{name}.{line}" for line in claims)]
    return list(dict.fromkeys(found))


def _of_files(spec: PaperSpec, config: Config) -> Iterator[str]:
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
