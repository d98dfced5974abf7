"""How far a run is, from the files of its cells alone: it may be running, killed or finished."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairclust.datasets.errors import DatasetError
from fairclust.datasets.store import read_card
from fairclust.pipeline.blocks import Block
from fairclust.pipeline.config import Config, as_list
from fairclust.pipeline.fingerprint import class_fingerprint
from fairclust.pipeline.fit_block import find_cells, input_hash, is_final


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
    """Count a block's cells by looking for each under the key of its present source; labels are not read.

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
    cells = block.cells()
    method = config.methods[block.method]
    graph = None
    try:
        card = read_card(results / "data" / "prepared" / block.dataset)
        if card["status"] != "ok":
            return Progress(done=len(cells), skipped=len(cells))
        if method.input == "graph":
            graph = results / "data" / "graphs" / block.dataset
        data_hash = input_hash(card, graph)
    except (OSError, DatasetError):
        return Progress(to_go=len(cells))
    own = f"fits/{block.dataset}/{block.method}"
    known = find_cells(results / f"{own}/{block.name}.cells", [Path(f) / own for f in as_list(config.reuse)])
    fingerprint = class_fingerprint(method.class_)
    total = Progress()
    limits = config.limits.model_dump()
    for cell in cells:
        key = cell.key(
            data_hash=data_hash,
            class_path=method.class_,
            fingerprint=fingerprint,
            n_clusters=block.n_clusters,
        )
        found = known.get(key)
        if found is None:
            total += Progress(to_go=1)
            continue
        record = found.record
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
