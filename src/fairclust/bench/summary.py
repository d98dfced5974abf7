"""The end of a run: what was done, what is missing and why, and what the pipeline itself cost."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from fairclust.bench.provenance import provenance
from fairclust.bench.store import atomic_write


def write_summary(frame: pd.DataFrame, settings: dict[str, Any], output: Path, origin: Path) -> None:
    """Count cells by status and list what is not ok; write where everything comes from.

    Parameters
    ----------
    frame : DataFrame
        The tidy scores.
    settings : dict
        The configuration of the run, kept with the provenance.
    output : Path
        JSON of counts and failures.
    origin : Path
        JSON of versions, commit, machine and configuration.
    """
    bad = frame[frame.status != "ok"]
    missing = [
        {"dataset": d, "method": m, "status": s, "reason": r, "cells": int(n)}
        for (d, m, s, r), n in bad.groupby(["dataset", "method", "status", "reason"]).size().items()
    ]
    summary = {"cells": len(frame), "by_status": frame.status.value_counts().to_dict(), "missing": missing}
    with atomic_write(output) as file:
        file.write(json.dumps(summary, indent=2).encode())
    with atomic_write(origin) as file:
        file.write(json.dumps({**provenance(), "config": settings}, indent=2, default=str).encode())


def describe(summary: Path) -> list[str]:
    """Lines for the terminal: counts, then one line per reason for missing cells."""
    found = json.loads(Path(summary).read_text())
    counts = ", ".join(f"{n} {status}" for status, n in sorted(found["by_status"].items()))
    lines = [f"{found['cells']} cells: {counts}"]
    reasons: dict[tuple[str, str, str], list[str]] = {}
    for item in found["missing"]:
        at = (item["dataset"], item["status"], item["reason"])
        reasons.setdefault(at, []).append(f"{item['method']} ({item['cells']})")
    for (dataset, status, reason), methods in reasons.items():
        lines.append(f"  {status}: {dataset}, {', '.join(methods)}: {brief(reason)}")
        lines += [f"    {line}" for line in reason.splitlines()[1:] if line.startswith("Fix: ")]
    return lines


def brief(reason: str) -> str:
    """The first line of a reason, which the places that were tried may follow."""
    return reason.partition("\n")[0].removesuffix(" Tried:") or "no reason given"


def describe_times(runs: Path, job_records: Iterable[Path], began: float) -> list[str]:
    """What this run spent on fitting, and what the pipeline added.

    Parameters
    ----------
    runs : Path
        Parquet with the cost of every cell.
    job_records : iterable of Path
        Written beside the logs by `jobs.job`.
    began : float
        When Snakemake was started, in seconds since the epoch.

    Returns
    -------
    list of str
    """
    jobs = []
    for path in job_records:
        try:
            record = json.loads(path.read_text())
        except (OSError, ValueError):
            continue
        if record["end"] >= began:
            jobs.append(record["seconds"])
    frame = pd.read_parquet(runs)
    fitted = frame[frame.finished >= began]
    fit = float(fitted.wall_seconds.sum())
    added = max(0.0, sum(jobs) - fit)
    share = f" ({100 * added / fit:.0f} % of it)" if fit else ""
    return [
        f"{len(fitted)} cells fitted in this run, {len(frame) - len(fitted)} taken as they were",
        f"fitting {fit:.1f} s; starting, compiling, reading, scoring and drawing {added:.1f} s{share}; "
        f"from start to end {time.time() - began:.1f} s",
    ]


def require_complete(summary: Path) -> None:
    """Raise if any cell of the run is not ok.

    Raises
    ------
    RuntimeError
        Lists what is missing and why.
    """
    if json.loads(Path(summary).read_text())["missing"]:
        raise RuntimeError("strict: true, and not every cell is ok\n" + "\n".join(describe(summary)))
