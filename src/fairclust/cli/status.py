"""`fairclust status`: what a run would find in its data, how far it is, and how long it will take.

It reads tables, but does not run generators or classes that the configuration names.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fairclust.cli.options import Status
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.prepare import prepare_dataset
from fairclust.messages import UserError, count, duration
from fairclust.pipeline.config import ConfigError, user_config
from fairclust.pipeline.grids import canonical_json
from fairclust.pipeline.plan import Plan
from fairclust.pipeline.scores import read_fits
from fairclust.pipeline.summary import fits_to_make
from fairclust.report.paper_checks import paper_problems

_AGAIN = "update pending"
_WORDS = {"ok": "done", "skipped": "skipped"}


def run(args: Status) -> list[str]:
    """Describe the user's tables that are not prepared yet, and count the fits of a run.

    What is to be done is what Snakemake says. A UserError has all problems of the configuration.
    """
    from snakemake.cli import parse_config

    try:
        stated = parse_config(args.config)
    except ValueError as error:
        raise UserError(f"--config: {error}") from None
    plan = Plan(user_config(args.configfile, stated))
    described = _checked(plan)
    return [
        *described,
        *_progress(plan, args.cores or os.cpu_count() or 1, _asked_of_snakemake(args)),
    ]


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
        paths = {of: Path(str(source.path)) for of, source in sources.items()}
        try:
            card = prepare_dataset(name, config.datasets[name], paths, sources).card
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
            f"  {card['rows']:,} of {card['rows_read']:,} rows, {len(card['columns'])} features: "
            f"{_listed(card['columns'])}",
            f"  groups: {_listed(groups)}",
            *(f"  the group {group} has fewer rows than there are clusters, {most}" for group in small),
        ]
    if problems:
        raise UserError("\n".join([f"{count(len(problems), 'problem')}:", *(f"  - {p}" for p in problems)]))
    return lines


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _progress(plan: Plan, cores: int, asked: Mapping[str, str]) -> list[str]:
    """A line for each data set and method that is not finished, one for all fits, and the time left.

    `asked` says of each output whether Snakemake would make it again.
    """
    # If this workflow is a module of another one, the results lie below its prefix.
    end = f"/{plan.results}/scores/scores.parquet"
    scores = next((path for path in asked if f"/{path}".endswith(end)), end[1:])
    results = Path(scores).parents[1]
    # In the sum, a fit that a sweep makes as well is one fit.
    planned: set[tuple[Any, ...]] = set()
    missing: set[tuple[str, ...]] = set()
    other: dict[tuple[Any, ...], str] = {}
    outdated = {Path(path) for path, again in asked.items() if again == _AGAIN}
    lines, minutes = [], 0.0
    for name, fit in plan.fits.items():
        path = results / "fits" / f"{name}.parquet"
        if asked.get(path.as_posix()) == _AGAIN:
            keys = fits_to_make(plan, fit, results, outdated)
            own = Counter({"to go": len(keys), "done": len(fit.cells()) - len(keys)})
            new = {(fit.dataset, fit.method, key) for key in keys} - missing
            minutes += plan.minutes(fit, len(new))
            missing |= new
        else:
            rows = read_fits(path)
            words = [_WORDS.get(status, "failed") for status in rows.status]
            own = Counter(words)
            names = zip(rows.dataset, rows.method, rows.n_clusters, rows.params, rows.seed, strict=True)
            other |= {name: word for name, word in zip(names, words, strict=True) if word != "done"}
        planned |= {
            (fit.dataset, fit.method, cell.n_clusters, canonical_json(cell.params), cell.seed)
            for cell in fit.cells()
        }
        if own["to go"] or own["failed"]:
            lines.append(f"{fit.dataset}, {name.partition('/')[2]}: {_counted(own)}")
    known = Counter(other.values()) + Counter({"to go": len(missing)})
    known["done"] = len(planned) - known.total()
    lines.append(f"all: {_counted(known)}")
    if missing:
        lines.append(f"time left on {count(cores, 'core')}: roughly {duration(60 * minutes / cores)}")
    return lines


def _counted(known: Counter[str]) -> str:
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
