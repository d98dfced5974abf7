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
        # A version of this package that stores other fields must not read the file.
        known = json.dumps(
            [about, Run._fields, Step._fields, Prototypes._fields], sort_keys=True, default=str
        )
        self._digest = hashlib.sha256(known.encode()).hexdigest()

    def save(self, run: Run) -> None:
        """Write the outer steps so far to the file."""
        if self.path is None:
            return
        labels, more = run.last.labels, dict(run.last.more)
        content: dict[str, Any] = (
            run._asdict() | run.last._asdict() | run.prototypes._asdict() | {"more": more}
        )
        content |= {"precise": labels.by.precise, "sizes": labels.sizes, "sums": labels.sums}
        content["digest"] = self._digest
        for name in ("last", "labels", "prototypes"):
            del content[name]
        arrays: dict[str, Any] = {
            name: value for name, value in content.items() if isinstance(value, np.ndarray)
        }
        text = {name: value for name, value in content.items() if name not in arrays}
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
                content = {name: file[name] for name in file.files}
            content |= json.loads(str(content["text"]))
            digest = content["digest"]
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
        points.measure(content["centers"])
        map_of = (content[name] for name in ("scale", "offset", "precise", "sizes", "sums"))
        content["labels"] = points.labels_of_map(*map_of)
        for name, kind in ("last", Step), ("prototypes", Prototypes):
            content[name] = kind(**{field: content[field] for field in kind._fields})
        return Run(**{field: content[field] for field in Run._fields})

    def remove(self) -> None:
        """Delete the file. A fit calls this when it has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
