"""The progress of a run, from the files of its cells alone. The run may be going on, killed or finished."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
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
from fairclust.pipeline.provenance import package_versions, version_text


@dataclass(frozen=True)
class Progress:
    """Counts of cells, of which each is done, failed, skipped or to go. Only those to go are fitted by the next run."""

    done: int = 0
    failed: int = 0
    skipped: int = 0
    to_go: int = 0
    again: int = 0  # among those to go: a fit has failed and is tried again
    timed: int = 0  # cells whose fit was timed
    seconds: float = 0.0  # the sum of their wall seconds

    def __add__(self, other: Progress) -> Progress:
        return Progress(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def mean_seconds(self) -> float | None:
        """Mean of the timed fits; None if there is none."""
        return self.seconds / self.timed if self.timed else None

    def describe(self) -> str:
        """The counts in one line."""
        cells = self.done + self.failed + self.skipped + self.to_go
        text = f"{self.done:,} of {cells:,} cells done"
        for number, word in ((self.failed, "failed"), (self.skipped, "skipped"), (self.to_go, "to go")):
            text += f", {number:,} {word}" if number else ""
        return text + (f" ({self.again:,} of them failed before)" if self.again else "")


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
    found = keyed_cells(config, block)
    stored = [map(read_record, places_of(cell_path(results, key), reuse)) for key, _ in found]
    known = [
        (cell, next(filter(None, records), None)) for (_, cell), records in zip(found, stored, strict=True)
    ]
    return known or [(cell, None) for cell in block.cells()]


def _is_done(config: Config) -> Callable[[Mapping[str, Any]], bool]:
    """A function that says of a record whether a repeated run takes it as it is."""
    versions = version_text(package_versions()) if config.strict_versions else ""
    return partial(is_final, limits=config.limits.model_dump(), versions=versions)


def block_progress(config: Config, block: Block) -> Progress:
    """Count a block's cells."""
    total, is_done = Progress(), _is_done(config)
    with suppress(OSError, DatasetError):
        if read_card(Path(config.results, "data", "prepared", block.dataset))["status"] != "ok":
            return Progress(skipped=len(block.cells()))
    for _, record in known_records(config, block):
        if record is None:
            total += Progress(to_go=1)
            continue
        status = {"ok": "done", "skipped": "skipped"}.get(record["status"], "failed")
        if not is_done(record):
            total += Progress(again=int(status == "failed"))
            status = "to_go"
        total += Progress(**{status: 1}, timed=1, seconds=record["wall_seconds"])
    return total


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
