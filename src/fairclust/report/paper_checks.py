"""Everything about the papers of a run that can be wrong, found before any job starts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from fairclust.messages import misspelt
from fairclust.pipeline.columns import COLUMNS
from fairclust.pipeline.config import Config, ConfigError, unknown
from fairclust.pipeline.fingerprint import ClassNotFound, class_parameters
from fairclust.pipeline.papers import Any_, FigureSpec, PaperSpec, TableSpec
from fairclust.pipeline.reported import load_programs, load_reported
from fairclust.report.checks import claim_problems
from fairclust.report.figures import PLOTS

# What the horizontal axis of a figure can show besides metrics.
_AXES = ("lam", "step", "n_clusters", "n_rows")


def paper_problems(config: Config) -> list[str]:
    """A line for each problem: the file or the key, what was found, and the nearest valid name."""
    found: list[str] = []
    for name in config.run.papers:
        spec = config.papers[name]
        found += _of_files(spec, config)
        lines = [
            *(line for key, table in spec.tables.items() for line in _of_table(key, table, spec, config)),
            *(line for key, figure in spec.figures.items() for line in _of_figure(key, figure, spec)),
            *(line for key, claim in spec.claims.items() for line in claim_problems(key, claim, spec.tables)),
            *unknown("cells_of", [other for other in spec.cells_of if other != Any_], config.papers),
        ]
        found += [f"papers.{name}.{line}" for line in lines]
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


def _of_table(name: str, table: TableSpec, spec: PaperSpec, config: Config) -> Iterator[str]:
    key = f"tables.{name}"
    yield from unknown(f"{key}.own", filter(None, [table.own]), config.methods)
    yield from unknown(f"{key}.control", filter(None, [table.control]), config.methods)
    yield from unknown(f"{key}.settings", table.settings, config.methods)
    yield from unknown(f"{key}.variants", table.variants, config.methods)
    yield from unknown(f"{key}.beside", table.beside, COLUMNS)
    for method, params in table.settings.items():
        try:
            taken = class_parameters(config.methods[method].class_) if method in config.methods else None
        except ClassNotFound:  # said elsewhere, with the class
            taken = None
        if taken is not None:
            yield from unknown(f"{key}.settings.{method}", params, sorted(taken))
    if table.match is not None:
        yield from unknown(f"{key}.match.fairness", [table.match.fairness], COLUMNS)
        yield from unknown(f"{key}.match.order", [table.match.order], ("lam", *COLUMNS))
        yield from unknown(f"{key}.match.table", filter(None, [table.match.table]), _numbers(spec))
    for i, reason in enumerate(table.reasons):
        for part, known in (("dataset", config.datasets), ("method", config.methods)):
            yield from unknown(f"{key}.reasons.{i}.{part}", [getattr(reason, part)], (Any_, "data", *known))


def _of_figure(name: str, figure: FigureSpec, spec: PaperSpec) -> Iterator[str]:
    key = f"figures.{name}"
    yield from unknown(f"{key}.plot", [figure.plot], PLOTS)
    yield from unknown(f"{key}.table", filter(None, [figure.table]), _numbers(spec))
    needs = PLOTS[figure.plot].needs if figure.plot in PLOTS else ()
    for axis in needs:
        if not getattr(figure, axis):
            yield f"{key}.{axis}: the plot {figure.plot!r} needs it"
    if "x" in needs and figure.x in figure.y:
        yield f"{key}.y: {figure.x!r} is the horizontal axis already"
    if figure.plot != "steps":  # whose axes show terms of a method's objective
        yield from unknown(f"{key}.x", filter(None, [figure.x]), (*COLUMNS, *_AXES))
        yield from unknown(f"{key}.y", figure.y, (*COLUMNS, *_AXES))


def _numbers(spec: PaperSpec) -> list[str]:
    return [table.number for table in spec.tables.values()]
