"""`fairclust status`: how far a run is."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import yaml

from fairclust.bench.config import Config, ConfigError, load_config
from fairclust.bench.grid import blocks
from fairclust.bench.progress import Progress, block_progress
from fairclust.cli import CommandError

_CONFIG = Path("config/config.yaml")


def _laid_over(base: dict[str, Any], top: dict[str, Any]) -> dict[str, Any]:
    """As Snakemake does it: mappings are joined, all else is replaced."""
    both = dict(base)
    for key, value in top.items():
        here = both.get(key)
        both[key] = _laid_over(here, value) if isinstance(here, dict) and isinstance(value, dict) else value
    return both


def _load(configfiles: list[Path]) -> Config:
    if not _CONFIG.is_file():
        raise CommandError(f"there is no {_CONFIG}: run this in the folder of the Snakefile")
    raw: dict[str, Any] = {}
    for path in (_CONFIG, *configfiles):
        try:
            raw = _laid_over(raw, yaml.safe_load(path.read_text()) or {})
        except yaml.YAMLError as error:
            raise CommandError(f"{path} is no YAML: {error}") from None
    try:
        return load_config(raw, origin=str([_CONFIG, *configfiles][-1]))
    except ConfigError as error:
        raise CommandError(str(error)) from None


def run(args: argparse.Namespace) -> list[str]:
    """Count the cells of a run.

    Parameters
    ----------
    args : Namespace
        configfile, cores.

    Returns
    -------
    list of str
        A line per data set and method that is not done, and the sums.

    Raises
    ------
    CommandError
        There is no configuration, or it is not valid.
    """
    sys.path.insert(0, str(Path.cwd()))  # classes of the user's own, beside the Snakefile
    config = _load(args.configfile)
    found: dict[tuple[str, str], Progress] = {}
    for block in blocks(config):
        at = (block.dataset, block.method)
        found[at] = found.get(at, Progress()) + block_progress(config, block)
    lines = []
    for (dataset, method), progress in found.items():
        if progress.to_go or progress.failed:
            lines.append(f"{dataset}, {method}: {progress.describe()}")
    total = sum(found.values(), Progress())
    per_method: dict[str, Progress] = {}
    for (_, method), progress in found.items():
        per_method[method] = per_method.get(method, Progress()) + progress
    left = sum(
        progress.to_go * (progress.mean_seconds or per_method[method].mean_seconds or total.mean_seconds or 0)
        for (_, method), progress in found.items()
    )
    lines.append(f"all: {total.describe()}")
    if total.to_go:
        known = (
            "no fit has ended yet: no estimate"
            if not total.timed
            else f"about {_duration(left / args.cores)}"
        )
        lines.append(f"time left on {args.cores} cores: {known}")
    return lines


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"
