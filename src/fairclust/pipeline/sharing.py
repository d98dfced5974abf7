"""What Snakemake's cache between workflows must not keep: failures."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from fairclust.temporary import temporary_beside


def forget_failures(results: str | Path) -> None:
    """Take sources and data sets that were not to be had out of the cache; a copy stays here.

    Snakemake shares whatever a job has written, and to be skipped with a reason is a result here. Another
    workflow must try for itself.

    Parameters
    ----------
    results : path
        Folder of results; what the cache holds of it are links here.
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
            _remove(folder)  # Another workflow has taken it out already: the job runs again.
        elif _is_failure(card):
            copy = temporary_beside(folder, "new")
            shutil.copytree(folder, copy)
            _remove(folder)
            copy.rename(folder)
            shutil.rmtree(entry, ignore_errors=True)


def _is_failure(card: Path) -> bool:
    try:
        return json.loads(card.read_text())["status"] != "ok"
    except (OSError, ValueError, KeyError, TypeError):  # the job that reads a damaged one says so
        return False


def _remove(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
