"""`fairclust fit` of a table that does not fit in memory: Parquet files, read chunk by chunk in every pass."""

from __future__ import annotations

import argparse
import glob
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from fairclust.base import Diverged
from fairclust.chunks import ChunkTable, open_chunks
from fairclust.chunks.scaling import standardized
from fairclust.chunks.scores import score_chunks
from fairclust.chunks.sources import parquet_columns, parquet_files
from fairclust.cli import CommandError
from fairclust.cli.fitting import parameters
from fairclust.cli.methods import find_method
from fairclust.cli.raw_table import describe_scale
from fairclust.cli.results import aligned
from fairclust.messages import shortened
from fairclust.methods._in_chunks import InChunks
from fairclust.metrics import balance, delta
from fairclust.outputs import OutputError, check_outputs

# Options that work only for tables in memory. They are refused for tables that are read in chunks.
_NOT_HERE = ("bins", "categories", "id", "save", "spreadsheet_safe", "thousands")


def is_asked_for(args: argparse.Namespace) -> bool:
    """Whether the table is read in chunks: an option of chunks is given, or it is a folder or a pattern of files."""
    return bool(
        args.workers is not None
        or args.scheduler
        or args.checkpoint
        or glob.has_magic(args.table)
        or Path(args.table).is_dir()
    )


def run(args: argparse.Namespace) -> list[str]:
    """Fit a method to Parquet files, score its labels, and return the lines to print (a single one with ``--json``).

    CommandError if the files cannot be read or fitted, a column does not exist, or the method or an option does not
    work with tables that are read in chunks.
    """
    cls = find_method(args.method)
    if not issubclass(cls, InChunks):
        raise CommandError(
            f"--method: {cls.__name__} needs all rows in memory; price, vfc and kmeans do not. Fix: name one of these"
        )
    given = [name for name in _NOT_HERE if getattr(args, name)]
    if given:
        raise CommandError(
            f"--{given[0].replace('_', '-')}: does not work for tables that are read in chunks. Fix: leave it out"
        )
    if args.missing != "impute":
        raise CommandError(
            "--missing: does not work for tables that are read in chunks, in which a missing cell is an error. Fix: "
            "leave it out"
        )
    if args.workers is not None and (args.scheduler or args.workers < 1):
        raise CommandError(
            "--workers: cannot be combined with --scheduler, and must be at least 1. Fix: give one of the two options"
        )
    if len(args.sensitive) > 1:
        raise CommandError(
            "--sensitive: tables that are read in chunks take one column. Fix: join several into one in the files"
        )
    if args.out and args.out.suffix != ".npy":
        raise CommandError(
            "--out: labels of tables that are read in chunks are written as .npy. Fix: end the name with .npy"
        )
    params = parameters(cls, args.n_clusters, args.seed, args.set)
    try:
        read = [*parquet_files(args.table), *([args.scheduler] if args.scheduler else [])]
        check_outputs({"--out": args.out, "--checkpoint": args.checkpoint}, read)
        with _told_steps(), _open(args) as table:
            begin = perf_counter()
            scaled = table if args.scale == "none" else standardized(table, unit_rows=args.scale == "l2")
            model = cls(**params).fit(scaled)
            seconds = perf_counter() - begin
            counts, cost = score_chunks(scaled, model.labels_, model.groups_, model.n_clusters)
    except OutputError:
        raise
    except (ValueError, TypeError, Diverged) as error:
        raise CommandError(f"{cls.__name__} cannot fit {args.table}: {error}") from None
    result = _describe(model, counts, cost, seconds, scaled.features, args)
    return [json.dumps(result, indent=2)] if args.json else _as_text(result)


@contextmanager
def _told_steps() -> Iterator[None]:
    """Print the steps of the fit on standard error, without the log messages of Dask."""
    log, handler = logging.getLogger("fairclust"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", datefmt="%H:%M:%S"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _open(args: argparse.Namespace) -> ChunkTable:
    features = [part for name in args.features for part in name.split(",")]
    excluded = [part for name in args.exclude for part in name.split(",")]
    if excluded and not features:
        given = (*args.sensitive, *excluded)
        features = [name for name in parquet_columns(args.table) if name not in given]
        if not features:
            raise CommandError("--exclude: no column is left to cluster by. Fix: leave out fewer columns")
    return open_chunks(
        args.table,
        args.sensitive[0],
        features=features or None,
        labels=args.out,
        checkpoint=args.checkpoint,
        client=args.scheduler or args.workers,
    )


def _describe(
    model: Any,
    counts: np.ndarray,
    cost: float,
    seconds: float,
    features: tuple[str, ...],
    args: argparse.Namespace,
) -> dict[str, Any]:
    names = [str(name) for name in model.groups_]
    certificate = {
        name: float(getattr(model, f"{name}_"))
        for name in ("cost", "lower_bound", "gap", "violation")
        if hasattr(model, f"{name}_")
    }
    result = {
        "method": type(model).__name__,
        "rows": int(counts.sum()),
        "features": list(features),
        "scale": describe_scale(args.scale),
        "groups": dict(zip(names, counts.sum(axis=1).tolist(), strict=True)),
        "n_clusters": model.n_clusters,
        "seconds": round(seconds, 2),
        "passes": model.n_passes_,
        "metrics": {"sse": cost, "balance": float(balance(counts)), "delta": float(delta(counts))},
        "certificate": certificate or None,
        "clusters": [
            {"cluster": k, "size": int(own.sum()), "counts": dict(zip(names, own.tolist(), strict=True))}
            for k, own in enumerate(counts.T)
        ],
    }
    if args.out:
        result["labels"] = str(args.out)
    return result


def _as_text(result: dict[str, Any]) -> list[str]:
    metrics, certificate = result["metrics"], result["certificate"]
    groups = list(result["groups"])
    rows = [["cluster", "size", *groups]]
    for own in [*result["clusters"], {"cluster": "all", "size": result["rows"], "counts": result["groups"]}]:
        shares = [f"{100 * own['counts'][name] / max(own['size'], 1):.1f} %" for name in groups]
        rows.append([str(own["cluster"]), f"{own['size']:,}", *shares])
    lines = [
        f"{result['method']}: {result['rows']:,} rows, {len(result['features'])} features, {len(groups)} groups, "
        f"{result['n_clusters']} clusters, {result['seconds']:,.1f} s, {result['passes']} passes",
        f"features: {', '.join(map(shortened, result['features']))} ({result['scale']})",
        "",
        f"sum of squared distances {metrics['sse']:,.6g}, balance {metrics['balance']:.4f}, Delta "
        f"{metrics['delta']:.4f}",
    ]
    if certificate:
        lines.append(
            "certificate: with these centres, no assignment that is as fair is cheaper by more than "
            f"{certificate['gap']:.2g} of the cost; the labels violate the bounds by "
            f"{certificate['violation']:.3g} rows"
        )
    lines += ["", *aligned(rows)]
    return [*lines, "", f"labels: {result['labels']}"] if "labels" in result else lines
