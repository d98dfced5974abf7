"""`fairclust status`: what a run would find in its data, how far it is, and how long it will take.

It reads tables, but does not run generators or classes that the configuration names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from fairclust.cli.options import Status
from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.prepare import prepare_dataset
from fairclust.datasets.store import read_card
from fairclust.messages import UserError, count, duration, listed
from fairclust.pipeline.config import ConfigError, user_config
from fairclust.pipeline.fits import cached_keys, input_hash
from fairclust.pipeline.grids import Cell, canonical_json
from fairclust.pipeline.plan import Fit, Plan
from fairclust.pipeline.scores import read_fits
from fairclust.report.paper_checks import paper_problems

_AGAIN = "update pending"
_WORDS = {"ok": "done", "skipped": "skipped"}
# What identifies a fit.
_FIT = ["dataset", "method", "n_clusters", "params", "seed"]


def run(args: Status) -> list[str]:
    """Describe the user's tables that are not prepared yet, and count the fits of a run."""
    from snakemake.cli import parse_config

    try:
        stated = parse_config(args.config)
    except ValueError as error:
        raise UserError(f"--config: {error}") from None
    plan = Plan(user_config(args.configfile, stated))
    return _checked(plan) + _progress(plan, args.cores or os.cpu_count() or 1, _asked_of_snakemake(args))


def _checked(plan: Plan) -> list[str]:
    """A description of each table of the user that is not prepared yet; UserError with all problems."""
    config = plan.config
    problems = paper_problems(config)
    try:
        plan.check()
    except ConfigError as error:
        problems.append(str(error))
    lines = []
    for name in dict.fromkeys(fit.dataset for fit in plan.fits.values()):
        sources = config.sources_of(name)
        is_read = sources and all(source.path is not None for source in sources.values())
        if not is_read or Path(config.results, "data/prepared", name).exists():
            continue
        cells = [cell for fit in plan.fits.values() if fit.dataset == name for cell in fit.cells()]
        try:
            card = prepare_dataset(name, config.datasets[name], {}, sources).card
        except DatasetError as error:
            problems.append(f"{error} (all {len(cells):,} fits of {name!r} would be skipped)")
            continue
        most = max(cell.n_clusters for cell in cells)
        if most > card["rows"]:
            problems.append(f"data set {name!r} has {card['rows']:,} rows; lower K = {most:,} (`n_clusters`)")
        groups = [f"{group['name']} ({group['size']:,})" for group in card["groups"]]
        small = [group["name"] for group in card["groups"] if group["size"] < most]
        lines += [
            f"{name}: {count(len(cells), 'fit')}",
            f"  {card['rows']:,} of {card['rows_read']:,} rows, {count(len(card['columns']), 'feature')}: "
            f"{listed(card['columns'], 20)}",
            f"  groups: {listed(groups, 20)}",
            *(f"  the group {group} has fewer rows than there are clusters, {most}" for group in small),
        ]
    if problems:
        raise UserError("\n".join([f"{count(len(problems), 'problem')}:", *(f"  - {p}" for p in problems)]))
    return lines


def _progress(plan: Plan, cores: int, asked: Mapping[str, str]) -> list[str]:
    """A line for each data set and method that is not finished, one for all fits, and the time left.

    `asked` says of each output whether Snakemake would make it again.
    """
    # If this workflow is a module of another one, the results lie below its prefix.
    end = f"/{plan.results}/scores/scores.parquet"
    scores = next((path for path in asked if f"/{path}".endswith(end)), end[1:])
    results = Path(scores).parents[1]
    outdated = {Path(path) for path, again in asked.items() if again == _AGAIN}
    # The word for each fit. One that a sweep makes as well is one fit.
    known: dict[tuple[Any, ...], str] = {}
    lines, minutes = [], 0.0
    for name, fit in plan.fits.items():
        path = results / "fits" / f"{name}.parquet"
        if path in outdated:
            to_go = dict.fromkeys(_fits(fit, _cells_to_make(plan, fit, results, outdated)), "to go")
            minutes += plan.minutes(fit, sum(known.get(one) != "to go" for one in to_go))
            own = dict.fromkeys(_fits(fit, fit.cells()), "done") | to_go
        else:
            rows = read_fits(path)
            words = (_WORDS.get(status, "failed") for status in rows.status)
            own = dict(zip(rows[_FIT].itertuples(index=False, name=None), words, strict=True))
        known |= own
        if {"to go", "failed"} & set(own.values()):
            lines.append(f"{fit.dataset}, {name.partition('/')[2]}: {_counted(own)}")
    lines.append(f"all: {_counted(known)}")
    if "to go" in known.values():
        lines.append(f"time left on {count(cores, 'core')}: roughly {duration(60 * minutes / cores)}")
    return lines


def _fits(fit: Fit, cells: Iterable[Cell]) -> list[tuple[Any, ...]]:
    """What identifies the fits of some cells, as the columns `_FIT` of their rows do."""
    job = fit.dataset, fit.method
    return [(*job, cell.n_clusters, canonical_json(cell.params), cell.seed) for cell in cells]


def _cells_to_make(plan: Plan, fit: Fit, place: Path, outdated: Collection[Path]) -> list[Cell]:
    """The cells of a job whose fits the cache does not have; the results are in the folder `place`.

    These are all cells if the data set, or its graph, is missing or `outdated`, because it will then be made first.
    """
    cells = fit.cells()
    inputs = {of: place / Path(path).relative_to(plan.results) for of, path in plan.fit_inputs(fit).items()}
    try:
        if not set(inputs.values()).isdisjoint(outdated):
            return cells
        data_hash = input_hash(read_card(inputs["data"]), inputs.get("graph"))
    except (DatasetSkipped, KeyError):  # a data set that was skipped has no hash
        return []
    except (OSError, DatasetError):
        return cells
    code = {"class_path": plan.method(fit).class_, "code": plan.fit_code(fit)}
    keys = [cell.key(data_hash=data_hash, **code) for cell in cells]
    cached = cached_keys(place / "cache", keys)
    return [cell for cell, key in zip(cells, keys, strict=True) if key not in cached]


def _counted(words: Mapping[Any, str]) -> str:
    known = Counter(words.values())
    more = [f", {known[word]:,} {word}" for word in ("failed", "skipped", "to go") if known[word]]
    return f"{known['done']:,} of {known.total():,} fits done{''.join(more)}"


def _asked_of_snakemake(args: Status) -> dict[str, str]:
    """Every output of the run with what Snakemake would do about it; UserError with its message if it cannot say."""
    command = [sys.executable, "-m", "snakemake", "--summary"]
    command += ["--configfile", *map(str, args.configfile)] if args.configfile else []
    command += ["--config", *args.config] if args.config else []
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise UserError(ended.stderr.strip())
    rows = [line.split("\t") for line in ended.stdout.splitlines()]
    return {row[0]: row[5] for row in rows if len(row) == 6}
