"""Reading the configuration of a run, and `fairclust explain`: where each value of it comes from."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fairclust.cli import CommandError
from fairclust.pipeline.config import (
    Config,
    ConfigError,
    as_list,
    catalogue_files,
    laid_over,
    load_config,
    read_catalogues,
    read_yaml,
)

SHIPPED = Path("config/config.yaml")


def _layers(configfiles: list[Path]) -> list[tuple[Path, dict[str, Any]]]:
    if not SHIPPED.is_file():
        raise CommandError(
            f"there is no {SHIPPED}: run this in the folder that holds `config` and `workflow`"
        )
    return [(path, read_yaml(path)) for path in (SHIPPED, *configfiles)]


def load(configfiles: list[Path]) -> Config:
    """The configuration of a run. CommandError if there is none, or if it is not valid."""
    sys.path.insert(0, str(Path.cwd()))  # for the user's classes in this folder
    try:
        layers = _layers(configfiles)
        merged: dict[str, Any] = {}
        user: dict[str, Any] = {}
        for number, (_, layer) in enumerate(layers):
            merged = laid_over(merged, layer)
            user = laid_over(user, layer) if number else user
        return load_config(merged, user=user, origin=" with ".join(str(path) for path, _ in layers))
    except ConfigError as error:
        raise CommandError(str(error)) from None


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{key}.{name}" if key else str(name))
    else:
        yield key, value


def _why_fitted(config: Config, of: str) -> list[str]:
    from fairclust.pipeline.blocks import plan_blocks
    from fairclust.pipeline.progress import earlier_records, why_fitted

    blocks = [block for block in plan_blocks(config) if f"{block.stem}/".startswith(f"{of}/" if of else "")]
    if not blocks:
        raise CommandError(f"no cell of this configuration belongs to {of!r}: name DATASET or DATASET/METHOD")
    found: dict[tuple[str, str], int] = {}
    earlier: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for record in earlier_records(Path(config.results)):
        earlier.setdefault((record["dataset"], record["method"]), []).append(record)
    for block in blocks:
        own = earlier.get((block.dataset, block.method), [])
        for reason, number in why_fitted(config, block, own).items():
            at = f"{block.dataset}/{block.method}", reason
            found[at] = found.get(at, 0) + number
    return [f"{place}, {number} cells: {reason}" for (place, reason), number in found.items()] or [
        "no cell would be fitted again"
    ]


def explain(args: argparse.Namespace) -> list[str]:
    """A line for every value in the files: key, value and file. A note marks values that another value replaces.

    `args.key` limits the lines to keys that begin with it; the key "cell" explains why the cells of `args.of` (a data
    set or DATASET/METHOD) would be fitted.
    """
    config = load(args.configfile)
    if args.key == "cell":
        return _why_fitted(config, args.of)
    layers = _layers(args.configfile)
    merged: dict[str, Any] = {}
    for _, layer in layers:
        merged = laid_over(merged, layer)
    places = [*as_list(merged.get("catalogues")), *as_list(merged.get("also"))]
    homes: dict[str, tuple[Any, Path]] = {}
    for file in dict.fromkeys(catalogue_files(places)):
        sections, _ = read_catalogues([file])
        homes |= {key: (value, file) for key, value in _leaves(sections) if value != {}}
    mine = [layer.get("run", {}) for _, layer in layers[1:]]
    lines = []
    for path, layer in layers:
        for key, value in _leaves(layer):
            homes[key] = (value, path)
    for key, (value, path) in homes.items():
        if not key.startswith(args.key):
            continue
        note = ""
        other = {"run.papers": "datasets", "run.datasets": "papers"}.get(key)
        if path == SHIPPED and other and any(other in run for run in mine):
            note = f" (not used: your file names run.{other})"
        lines.append(f"{key}: {value}  [{path}]{note}")
    return lines or [f"no file states a key that begins with {args.key!r}"]
