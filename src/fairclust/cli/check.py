"""`fairclust check`: what a run would find in a configuration and its data sets, before any run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from fairclust.cli import CommandError
from fairclust.cli.configuration import load
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.prepare import prepare_dataset
from fairclust.pipeline.blocks import count_cells, plan_blocks
from fairclust.pipeline.config import Config, ConfigError
from fairclust.pipeline.results_folder import foreign_folder
from fairclust.pipeline.rule_inputs import RuleInputs
from fairclust.report.paper_checks import paper_problems


def run(args: argparse.Namespace) -> list[str]:
    """A description of each data set of the run; CommandError with all problems if a run would fail or skip cells."""
    config = load(args.files)
    problems = paper_problems(config)
    if reason := foreign_folder(Path(config.results)):
        problems.append(reason)
    try:
        RuleInputs(config).check_classes()
    except ConfigError as error:
        problems.append(str(error))
    cells: dict[str, int] = {}
    smallest: dict[str, int] = {}
    for block in plan_blocks(config):
        cells[block.dataset] = cells.get(block.dataset, 0) + count_cells(block)
        smallest[block.dataset] = max(smallest.get(block.dataset, 0), block.n_clusters)
    lines = []
    for name, n_cells in cells.items():
        try:
            lines += [f"{name}: {n_cells:,} cells", *_described(config, name, smallest[name])]
        except DatasetError as error:
            problems.append(f"{error} (all {n_cells:,} cells of {name!r} would be skipped)")
    if problems:
        count = f"{len(problems)} problem" + ("s" if len(problems) > 1 else "")
        raise CommandError("\n".join([f"{count}:", *(f"  - {line}" for line in problems)]))
    return [*lines, "nothing would fail"]


def _described(config: Config, name: str, n_clusters: int) -> list[str]:
    sources = config.sources_of(name)
    if not all(source.reads_in_place for source in sources.values()):
        return ["  its files are downloaded by the run, and not checked here"]
    paths = {own: Path(str(source.path)) for own, source in sources.items()}
    card = prepare_dataset(name, config.datasets[name], paths, sources).card
    columns: list[str] = card["columns"]
    groups: list[dict[str, Any]] = card["groups"]
    shown = ", ".join(columns[:20]) + (" ..." if len(columns) > 20 else "")
    lines = [f"  {card['rows']:,} of {card['rows_read']:,} rows, {len(columns)} features: {shown}"]
    lines += [f"  {note}" for note in card.get("notes", ())]
    lines.append("  groups: " + ", ".join(f"{group['name']} ({group['size']:,})" for group in groups[:20]))
    lines += [
        f"  the group {group['name']} has fewer rows than there are clusters, {n_clusters}"
        for group in groups
        if group["size"] < n_clusters
    ]
    return lines
