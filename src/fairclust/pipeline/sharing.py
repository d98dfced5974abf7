"""Keep failures out of the cache that Snakemake shares between workflows."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from fairclust.temporary import temporary_beside


def forget_failures(results: str | Path) -> None:
    """Remove failed downloads and skipped data sets from the cache, and keep a copy of each in the results.

    Snakemake caches every output, also one that only states why a data set was skipped. Outputs in the cache are
    symbolic links in the results.
    """
    place = os.environ.get("SNAKEMAKE_OUTPUT_CACHE")
    if place is None:
        return
    cache = Path(place).resolve()
    for folder in Path(results).glob("data/*/*"):
        card = folder / ("source.json" if folder.parent.name == "raw" else "card.json")
        entry = Path(os.path.realpath(card)).parent
        if cache not in entry.parents:
            continue
        if not entry.exists():
            _remove(folder)  # Another workflow has removed it from the cache already, so the job runs again.
        elif _is_failure(card):
            copy = temporary_beside(folder, "new")
            shutil.copytree(folder, copy)
            _remove(folder)
            copy.rename(folder)
            shutil.rmtree(entry, ignore_errors=True)


def _is_failure(card: Path) -> bool:
    try:
        return json.loads(card.read_text())["status"] != "ok"
    except (OSError, ValueError, KeyError, TypeError):  # the job that reads a damaged card reports it
        return False


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
