"""How far a run is, from the stores of its cells alone: it may be running, killed or finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairclust.bench.config import Config
from fairclust.bench.fingerprint import class_fingerprint
from fairclust.bench.grid import Block, block_cells
from fairclust.bench.runner import input_hash, is_final
from fairclust.bench.store import CellStore
from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import read_card


@dataclass(frozen=True)
class Progress:
    """Counts of cells.

    Attributes
    ----------
    done : int
        Ended for good, well or not.
    failed : int
        Those of them, or of the cells to go, whose status is neither 'ok' nor 'skipped'.
    skipped, to_go : int
    timed : int
        Cells whose fit was timed.
    seconds : float
        Their seconds.
    """

    done: int = 0
    failed: int = 0
    skipped: int = 0
    to_go: int = 0
    timed: int = 0
    seconds: float = 0.0

    def __add__(self, other: Progress) -> Progress:
        return Progress(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    @property
    def mean_seconds(self) -> float | None:
        """Mean of the timed fits; None if there is none."""
        return self.seconds / self.timed if self.timed else None

    def describe(self) -> str:
        """One line for readers."""
        text = f"{self.done} of {self.done + self.to_go} cells done"
        for number, word in ((self.failed, "failed"), (self.skipped, "skipped")):
            text += f", {number} {word}" if number else ""
        return text + (f", {self.to_go} to go" if self.to_go else "")


def block_progress(config: Config, block: Block) -> Progress:
    """Count a block's cells by looking for each in the store, under the key of its present source.

    Parameters
    ----------
    config : Config
    block : Block

    Returns
    -------
    Progress
        All cells are 'to go' while the data set, or the graph, is not prepared.
    """
    results = Path(config.results)
    cells = block_cells(config, block)
    method = config.methods[block.method]
    W = None
    try:
        card = read_card(results / "data" / "prepared" / block.dataset)
        if card["status"] != "ok":
            return Progress(done=len(cells), skipped=len(cells))
        if method.input == "graph":
            from fairclust.datasets.graph import load_graph

            W, _ = load_graph(results / "data" / "graphs" / block.dataset)
    except (OSError, DatasetError):
        return Progress(to_go=len(cells))
    store = CellStore(results / "cells" / block.dataset / block.method / f"k{block.n_clusters}")
    data_hash, fingerprint = input_hash(card, W), class_fingerprint(method.class_)
    total = Progress()
    limits = config.limits.model_dump()
    for cell in cells:
        key = cell.key(
            data_hash=data_hash,
            class_path=method.class_,
            fingerprint=fingerprint,
            n_clusters=block.n_clusters,
        )
        found = store.get(key)
        if found is None:
            total += Progress(to_go=1)
            continue
        record = found[0]
        final = is_final(record, limits)
        total += Progress(
            done=int(final),
            failed=int(record["status"] not in ("ok", "skipped")),
            skipped=int(record["status"] == "skipped"),
            to_go=int(not final),
            timed=1,
            seconds=record["wall_seconds"],
        )
    return total
