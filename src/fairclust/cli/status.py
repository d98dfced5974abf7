"""`fairclust status` shows how far a run is. `fairclust prune` removes cells that the configuration no longer wants."""

from __future__ import annotations

import argparse
from pathlib import Path

from fairclust.cli.configuration import load
from fairclust.pipeline.blocks import plan_blocks
from fairclust.pipeline.cell_store import Entry, read_pack, salvage, write_pack
from fairclust.pipeline.progress import Progress, block_progress
from fairclust.pipeline.summary import duration


def run(args: argparse.Namespace) -> list[str]:
    """Count the cells of a run: a line for each data set and method that is not finished, and the sums.

    CommandError if there is no configuration, or it is not valid.
    """
    config = load(args.configfile)
    found: dict[tuple[str, str], Progress] = {}
    for block in plan_blocks(config):
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
            "unknown, because no fit has ended yet"
            if not total.timed
            else f"about {duration(left / args.cores)}"
        )
        lines.append(f"time left on {args.cores} cores: {known}")
    return lines


def prune(args: argparse.Namespace) -> list[str]:
    """Remove the cells that the configuration does not ask for, or only list them with `--dry-run`."""
    config = load(args.configfile)
    results = Path(config.results)
    blocks = {results / "fits" / f"{block.stem}.cells" for block in plan_blocks(config)}
    lines, size = [], 0
    for path in sorted((results / "fits").glob("*/*/*")):
        name = path.name.removeprefix(".").partition(".cells")[0] + ".cells"
        if path.with_name(name) not in blocks:
            lines.append(f"{path}: belongs to no block of the configuration")
            size += path.stat().st_size
            if not args.dry_run:
                path.unlink()
        elif path in blocks:
            size += _prune_pack(path, lines, args.dry_run)
    if not args.dry_run:
        for folder in sorted((results / "fits").glob("**/"), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
    would = "would be " if args.dry_run else ""
    return [*lines, f"{size / 2**20:.1f} MB {would}removed"]


def _prune_pack(path: Path, lines: list[str], dry_run: bool) -> int:
    asked = read_pack(path)
    # Cells that are not asked for follow those that are.
    extra = len([key for key in salvage(path) if key is not None]) - len(
        {e.record["key"] for e in asked} - {None}
    )
    if extra <= 0:
        return 0
    before = path.stat()
    lines.append(f"{path}: {extra} cells that are not asked for")
    if dry_run:
        return 0
    write_pack(path, [(entry.record, _labels(entry)) for entry in asked], len(asked))
    # Nothing that depends on the file has changed, so it keeps its time.
    import os

    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return before.st_size - path.stat().st_size


def _labels(entry: Entry) -> Entry | None:
    return entry if entry.length else None
