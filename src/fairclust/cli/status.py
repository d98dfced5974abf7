"""`fairclust status`: how far a run is, and which stored cells its configuration no longer asks for."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from fairclust.cli import CommandError
from fairclust.cli.configuration import load
from fairclust.cli.results import count
from fairclust.pipeline.blocks import plan_blocks, plan_jobs
from fairclust.pipeline.config import Config
from fairclust.pipeline.progress import Progress, block_progress, keyed_cells
from fairclust.pipeline.results_folder import cores_of_run, digest_file
from fairclust.pipeline.scores import read_table
from fairclust.pipeline.summary import duration


def run(args: argparse.Namespace) -> list[str]:
    """Count the cells of a run: a line for each data set and method that is not finished, the sums, unused cells.

    With `--prune`, remove the unused cells instead. CommandError if there is no configuration, it is not valid, or the
    tables still show cells that would be removed.
    """
    config = load(args.configfile)
    lines, unused = _unused(config, prune=args.prune)
    megabytes = f"{sum(path.stat().st_size for path in unused) / 2**20:.1f} MB"
    if args.prune:
        _remove(unused)
        return [*lines, f"{megabytes} removed"]
    told = [*lines, f"{megabytes} would be removed by --prune"] if unused else []
    cores = args.cores or cores_of_run(Path(config.results)) or os.cpu_count() or 1
    return [*_progress(config, cores), *told]


def _progress(config: Config, cores: int) -> list[str]:
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
            "unknown, because no fit has ended yet" if not total.timed else f"about {duration(left / cores)}"
        )
        lines.append(f"time left on {count(cores, 'core')}: {known}")
    return lines


def _unused(config: Config, *, prune: bool) -> tuple[list[str], list[Path]]:
    """The cells that the configuration does not ask for, and the outputs of jobs that it does not have, in words."""
    results = Path(config.results)
    blocks = plan_blocks(config)
    jobs = {results / "fits" / f"{name}.cells" for name in plan_jobs(config, blocks)}
    old = [path for path in sorted(results.glob("fits/*/*.cells")) if path not in jobs]
    lines = [f"{path}: belongs to no job of the configuration" for path in old]
    keys = {key for block in blocks for key, _ in keyed_cells(config, block)}
    if prune and not _are_of(results / "scores" / "scores.parquet", keys, jobs):
        raise CommandError(
            f"the scores in {results} are those of another configuration or of earlier code. Fix: run the "
            "configuration, which takes the finished fits, and then prune"
        )
    extra = [path for path in sorted(results.glob("cells/*/*.cell")) if path.stem not in keys]
    lines += [f"{results / 'cells'}: {len(extra)} cells that are not asked for"] if extra else []
    # `verify` would miss the output of a job whose digests are still there.
    logs = (results / "logs/fit" / path.relative_to(results / "fits") for path in old)
    digests = [digest for log in logs if (digest := digest_file(log)).is_file()]
    return lines, [*old, *digests, *extra]


def _are_of(scores: Path, keys: set[str], jobs: set[Path]) -> bool:
    """Whether the scores, if there are any, are those of these cells, and all outputs of the jobs exist."""
    return not scores.is_file() or (
        keys.issuperset(read_table(scores).key.dropna()) and all(job.is_file() for job in jobs)
    )


def _remove(paths: list[Path]) -> None:
    for path in paths:
        path.unlink()
    for folder in {path.parent for path in paths}:
        if not any(folder.iterdir()):
            folder.rmdir()
