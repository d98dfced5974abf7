"""The progress of a run, from the files of its cells alone. The run may be going on, killed or finished."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from fairclust.datasets.errors import DatasetError, DatasetSkipped
from fairclust.datasets.store import read_card
from fairclust.pipeline.blocks import Block, Cell
from fairclust.pipeline.cell_store import DamagedFile, cell_path, read_output, read_record
from fairclust.pipeline.config import Config, as_list
from fairclust.pipeline.fingerprint import changed_code, class_fingerprint
from fairclust.pipeline.fit_block import input_hash, is_final, places_of
from fairclust.pipeline.provenance import required_versions


def keyed_cells(config: Config, block: Block) -> list[tuple[str, Cell]]:
    """A block's cells with their keys; empty as long as the data set, or its graph, is not prepared."""
    method = config.methods[block.method]
    data = Path(config.results) / "data"
    graph = data / "graphs" / block.dataset if method.input == "graph" else None
    try:
        data_hash = input_hash(read_card(data / "prepared" / block.dataset), graph)
    except (OSError, DatasetError, DatasetSkipped, KeyError):  # a data set that was skipped has no hash
        return []
    return block.keyed_cells(data_hash, method.class_, class_fingerprint(method.class_))


def known_records(config: Config, block: Block) -> list[tuple[Cell, dict[str, Any] | None]]:
    """A block's cells, each with its stored record if there is one for the present source."""
    results, reuse = Path(config.results), list(map(Path, as_list(config.reuse)))
    known: list[tuple[Cell, dict[str, Any] | None]] = []
    for key, cell in keyed_cells(config, block):
        records = map(read_record, places_of(cell_path(results, key), reuse))
        known.append((cell, next(filter(None, records), None)))
    return known or [(cell, None) for cell in block.cells()]


def _is_done(config: Config) -> Callable[[Mapping[str, Any]], bool]:
    """A function that says of a record whether a repeated run takes it as it is."""
    return partial(is_final, limits=config.limits.model_dump(), versions=required_versions(config))


def cell_states(config: Config, block: Block) -> list[tuple[str, float | None]]:
    """The state of each cell of a block, and the wall seconds of its fit if there was one.

    A cell is done, failed, skipped, to go, or again, if its fit has failed and is tried again. The next run fits those
    that are to go and again.
    """
    is_done = _is_done(config)
    with suppress(OSError, DatasetError):
        if read_card(Path(config.results, "data", "prepared", block.dataset))["status"] != "ok":
            return [("skipped", None)] * len(block.cells())
    found: list[tuple[str, float | None]] = []
    for _, record in known_records(config, block):
        if record is None:
            found.append(("to go", None))
            continue
        state = {"ok": "done", "skipped": "skipped"}.get(record["status"], "failed")
        if not is_done(record):
            state = "again" if state == "failed" else "to go"
        found.append((state, record["wall_seconds"]))
    return found


def why_fitted(config: Config, block: Block, earlier: Iterable[Mapping[str, Any]]) -> Counter[str]:
    """Why cells of a block would be fitted by the next run, with the number of cells for each reason.

    `earlier` are the records of its data set and method in the outputs of earlier jobs.
    """
    method, is_done = config.methods[block.method], _is_done(config)
    fitted = {_asked(record): record for record in earlier}
    fingerprint, reasons = class_fingerprint(method.class_), Counter[str]()
    for cell, found in known_records(config, block):
        if found is not None and is_done(found):
            continue
        record = fitted.get(_asked({**vars(cell), "n_clusters": block.n_clusters}))
        if found is not None:
            reasons[
                "other versions of packages have fitted it (strict_versions)"
                if found["status"] == "ok"
                else f"the status is {found['status']}, which is tried again"
            ] += 1
        elif record is None or record["status"] == "skipped":
            reasons["no run has fitted this setting"] += 1
        elif record["fingerprint"] != fingerprint:
            changed = changed_code(Path(config.results), record["fingerprint"], method.class_)
            reasons[f"the code of the method has changed: {changed}"] += 1
        else:
            reasons["the data set or its graph has changed, or is not prepared"] += 1
    return reasons


def earlier_records(results: Path) -> list[dict[str, Any]]:
    """All records in the outputs of earlier jobs; damaged files are left out."""
    found = []
    for path in sorted(results.glob("fits/*/*.cells")):
        with suppress(DamagedFile):
            found += read_output(path)
    return found


def _asked(record: Mapping[str, Any]) -> str:
    return json.dumps([record[name] for name in ("n_clusters", "params", "seed")], sort_keys=True)
