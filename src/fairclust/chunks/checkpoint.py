"""A file with the last outer step of a fit, from which a fit that was stopped can be resumed."""

from __future__ import annotations

import hashlib
import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from fairclust.chunks.points import ChunkedPoints
from fairclust.chunks.sources import ChunkError, on_one_line
from fairclust.outputs import atomic_write
from fairclust.solvers.alternation import Prototypes, Run, Step


class Checkpoint:
    """A file with the centres, prices and history of the last outer step. Without a path nothing is written.

    Every outer step replaces the file. `about` holds parameters of the fit and sums over its rows. `load` refuses a
    checkpoint for which these differ.
    """

    def __init__(self, path: Path | None, about: Mapping[str, Any]) -> None:
        self.path = path
        self._digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode()).hexdigest()

    def save(self, run: Run) -> None:
        """Write the outer steps so far to the file."""
        if self.path is None:
            return
        step = run.last
        text = {
            "digest": self._digest,
            "history": run.history,
            "n_rises": run.n_rises,
            "verdict": run.verdict,
            "precise": step.labels.by.precise,
            "numbers": [step.scale, step.objective, step.clustering, step.fairness, step.n_passes],
            "more": dict(step.more),
        }
        arrays = {
            "centers": run.prototypes.centers,
            "counts": step.counts,
            "offset": step.offset,
            "sizes": step.labels.sizes,
            "sums": step.labels.sums,
        }
        if step.state is not None:
            arrays["state"] = step.state
        if run.prototypes.means is not None:
            arrays["means"] = run.prototypes.means
        # NumPy does not close its archive if the disk is full, so the archive is written as a whole.
        packed = io.BytesIO()
        np.savez(packed, text=np.array(json.dumps(text)), **arrays)
        with atomic_write(self.path) as file:
            file.write(packed.getbuffer())

    def load(self, points: ChunkedPoints) -> Run | None:
        """Read the outer steps from the file; None if there is no file.

        ChunkError if the file is not a checkpoint, or if it is the checkpoint of another fit.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            with self.path.open("rb") as opened, np.load(opened) as file:
                arrays = {name: file[name] for name in file.files}
            text = json.loads(str(arrays.pop("text")))
            digest = text["digest"]
        except (
            OSError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            EOFError,
            BadZipFile,
            RuntimeError,
            zlib.error,
        ) as error:
            raise ChunkError(
                f"{self.path} is no checkpoint, or is damaged ({on_one_line(error)}): remove it to start the fit "
                "again, or name another file"
            ) from None
        if digest != self._digest:
            raise ChunkError(
                f"{self.path} is the checkpoint of another fit, with other parameters or rows: remove it, or name "
                "another file"
            )
        scale, objective, clustering, fairness, n_passes = text["numbers"]
        points.measure(arrays["centers"])
        labels = points.labels_of_map(
            scale, arrays["offset"], text["precise"], arrays["sizes"], arrays["sums"]
        )
        last = Step(
            labels,
            arrays["counts"],
            scale,
            arrays["offset"],
            objective,
            clustering,
            fairness,
            n_passes,
            arrays.get("state"),
            text["more"],
        )
        history = text["history"]
        prototypes = Prototypes(arrays["centers"], means=arrays.get("means"))
        return Run(prototypes, last, history, len(history), text["n_rises"], text["verdict"])

    def remove(self) -> None:
        """Delete the file. A fit calls this when it has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
