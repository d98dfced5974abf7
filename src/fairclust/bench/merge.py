"""Two or more result folders into one: finished cells, their indexes, prepared data; nothing is fitted."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairclust.bench.config import canonical_json
from fairclust.bench.gather import gather_scores
from fairclust.bench.runner import read_index
from fairclust.bench.store import CellStore, atomic_write
from fairclust.bench.summary import write_summary
from fairclust.datasets.store import read_card

# Older than any data, so that Snakemake looks at every block again and finds its cells in the store.
_LONG_AGO = 86400.0


class MergeError(ValueError):
    """The folders cannot be merged; the message says why."""


@dataclass(frozen=True)
class Merged:
    """What a merge came to.

    Attributes
    ----------
    cells, conflicts : int
        Cells of the merged folder, and those of them that several folders had fitted with other code or data.
    config : dict
        The configurations laid over each other, the first on top.
    """

    cells: int
    conflicts: int
    config: dict[str, Any]


def merge_results(folders: Sequence[Path], out: Path) -> Merged:
    """Merge result folders and gather their scores anew.

    Of a cell that several folders have, one that ended well counts, then the later one. Data and packs are
    linked where the file system can, else copied; the given folders stay as they are.

    Parameters
    ----------
    folders : sequence of Path
        Result folders; of data sets that several have prepared the first one's are taken.
    out : Path
        Must not exist, or be empty.

    Returns
    -------
    Merged

    Raises
    ------
    MergeError
        A folder holds no results, `out` holds something, or the folders prepared a data set differently.
    """
    for folder in folders:
        if not any((folder / "fits").glob("*/*/*.jsonl")):
            raise MergeError(f"{folder} holds no results: there is nothing in {folder / 'fits'}")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise MergeError(f"{out} is there already: give a folder that is not, or is empty")
    _check_data(folders)
    config = _lay_over([_config(folder) for folder in folders])
    for folder in folders:
        _link_tree(folder / "data", out / "data")
    _merge_stores(folders, out)
    indexes, conflicts = _merge_indexes(folders, out)
    scores = out / "scores"
    frame = gather_scores(indexes, scores / "scores", scores / "runs", scores / "steps.parquet")
    write_summary(frame, config, out / "summary.json", out / "provenance.json")
    return Merged(len(frame), conflicts, config)


def _check_data(folders: Iterable[Path]) -> None:
    hashes: dict[str, tuple[str, Path]] = {}
    for folder in folders:
        for prepared in sorted((folder / "data" / "prepared").glob("*")):
            card = read_card(prepared)
            if card["status"] != "ok":
                continue
            known, first = hashes.setdefault(prepared.name, (card["data_hash"], folder))
            if known != card["data_hash"]:
                raise MergeError(
                    f"data set {prepared.name!r} is not the same in {first} and {folder}: scores of "
                    "different data do not belong into one table"
                )


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _link_tree(source: Path, target: Path) -> None:
    """Link what `target` does not have; data sets and graphs as a whole, and rather one that is 'ok'."""
    for kind in ("prepared", "graphs"):
        for folder in sorted((source / kind).glob("*")):
            at = target / kind / folder.name
            if at.exists() and kind == "prepared" and read_card(at)["status"] != "ok":
                shutil.rmtree(at)
            if not at.exists():
                shutil.copytree(folder, at, copy_function=_link)
    for file in sorted((source / "raw").rglob("*")):
        at = target / "raw" / file.relative_to(source / "raw")
        if file.is_file() and not at.exists():
            at.parent.mkdir(parents=True, exist_ok=True)
            _link(str(file), str(at))


def _merge_stores(folders: Sequence[Path], out: Path) -> None:
    places = {path.parent.relative_to(f) for f in folders for path in (f / "cells").rglob("*.parquet")}
    places |= {path.parent.relative_to(f) for f in folders for path in (f / "cells").rglob("*.npz")}
    for place in sorted(places):
        target = CellStore(out / place)
        target.folder.mkdir(parents=True, exist_ok=True)
        stores = [CellStore(folder / place) for folder in folders]
        for number, store in enumerate(stores):
            for pack in sorted(store.folder.glob("*.parquet")):
                _link(str(pack), str(target.folder / f"{pack.stem}-{number}.parquet"))
        found: dict[str, int] = {}
        for store in stores:
            for key in store.list_keys():
                found[key] = found.get(key, 0) + 1
        for key, times in found.items():
            entries = [entry for store in stores if (entry := store.get(key)) is not None]
            in_packs = target.get(key)
            # A file of its own is read before any pack: where the packs would not give the best.
            best = max(entries, key=lambda entry: _rank(entry[0]), default=None)
            if best is not None and (in_packs is None or (times > 1 and in_packs[0] != best[0])):
                target.put(key, *best)


def _rank(record: dict[str, Any]) -> tuple[int, float]:
    order = {"ok": 2, "skipped": 0}
    return order.get(record.get("status", "ok"), 1), record.get("finished") or 0.0


def _merge_indexes(folders: Sequence[Path], out: Path) -> tuple[list[Path], int]:
    best: dict[tuple[Any, ...], dict[str, Any]] = {}
    conflicts = set()
    for folder in folders:
        for index in sorted((folder / "fits").glob("*/*/*.jsonl")):
            for record in read_index(index):
                block = (record["dataset"], record["method"], record["n_clusters"])
                cell = (*block, canonical_json(record["params"]), record["seed"])
                other = best.get(cell)
                if other is None or _rank(record) > _rank(other):
                    best[cell] = record
                if other and other["key"] and record["key"] and other["key"] != record["key"]:
                    conflicts.add(cell)
    blocks: dict[Path, list[dict[str, Any]]] = {}
    for (dataset, method, k, *_), record in best.items():
        blocks.setdefault(out / "fits" / dataset / method / f"k{k}.jsonl", []).append(record)
    for path, records in blocks.items():
        with atomic_write(path) as file:
            file.write("".join(json.dumps(record) + "\n" for record in records).encode())
        os.utime(path, (_LONG_AGO, _LONG_AGO))
    return list(blocks), len(conflicts)


def _config(folder: Path) -> dict[str, Any]:
    try:
        return json.loads((folder / "provenance.json").read_text())["config"]
    except (OSError, ValueError, KeyError):
        raise MergeError(f"{folder} has no readable provenance.json: let its run end first") from None


def _lay_over(configs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mappings are joined; lists too, without repeats; of all else the first counts."""
    both = dict(configs[0])
    for config in configs[1:]:
        for key, value in config.items():
            here = both.get(key)
            if isinstance(here, dict) and isinstance(value, dict):
                both[key] = _lay_over([here, value])
            elif isinstance(here, list) and isinstance(value, list):
                both[key] = here + [item for item in value if item not in here]
            else:
                both.setdefault(key, value)
    return both
